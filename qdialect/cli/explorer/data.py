"""A network as the explorer shows it: its graphs, its kernels in every phase, and what the core does with them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from qdialect.aot.object_file import disassembly, object_code
from qdialect.bench.core_model.kernel_cycles import KernelCycles, counted, kernel_cycles, resources
from qdialect.bench.core_model.occupations import simplified
from qdialect.bench.core_model.profile import CallProfile, Profile, core_of, profile_ops
from qdialect.dialect import AnyFused
from qdialect.dialect.constants import CONSTANT_OPS
from qdialect.driver.fallback import division_of, region_of
from qdialect.driver.report import NodeReport, nodes_report, ops_by_name
from qdialect.driver.tuning import candidates_number, tunables
from qdialect.frontends.model_files import format_of
from qdialect.frontends.planning.partition import divide
from qdialect.ir import context
from qdialect.ir._mlir import ir
from qdialect.ir.context import key_of, names_of
from qdialect.ir.module_text import Printing
from qdialect.lowering.cost import variants
from qdialect.lowering.ir.functions import entry, functions, has_body, name_of
from qdialect.lowering.ir.lowered import Lowered, Phase
from qdialect.lowering.pipeline.phases import lower
from qdialect.lowering.qnn_to_linalg.to_linalg import main_function
from qdialect.runtime.base import Region
from qdialect.runtime.comparison import random_inputs
from qdialect.support.diagnostics import CompileError, ImportModelError
from qdialect.support.interface import KERNEL, KernelCall, kernel_names, node_names
from qdialect.support.options import ImportOptions
from qdialect.targets import Target

Json = dict[str, Any]

_PRINTING = Printing(large_elements_limit=16, large_resource_limit=16, use_local_scope=True)
# The first of the scales of channels.
_LONG = re.compile(r"(array<\w+:(?:[^,>]*,){8})[^>]*>")
_KERNEL = re.compile(rf"  \w+\.func .*?@({KERNEL}\w*)\(.*\{{$")
_PHASES = (Phase.LINALG, Phase.VECTOR, Phase.X86, Phase.LLVM)


@dataclass
class Explored:
    """The data of the page."""

    title: str
    target: str
    nodes: list[Json]
    """The nodes of the model, with the numbers of the calls that compute them."""
    regions: list[Json]
    ops: list[Json] = field(default_factory=list[Json])
    """The ops of the fused network."""
    calls: list[Json] = field(default_factory=list[Json])
    kernels: dict[str, Json] = field(default_factory=dict[str, Json])
    texts: dict[str, Json] = field(default_factory=dict[str, Json])
    """By kernel: its text in each phase, its whole assembly, and its op."""
    summary: Json = field(default_factory=dict[str, Any])

    def page(self) -> Json:
        """All but the texts."""
        return {name: value for name, value in vars(self).items() if name != "texts"}


def explored(
    path: Path, target: Target, options: ImportOptions, *, is_measured: bool, progress: Callable[[str], None]
) -> Explored:
    """A model file in all phases; where its framework runs a part, the others in all phases.

    Raises what reading, lowering and measuring raise.
    """
    progress("reading")
    regions, modules = modules_of(path, target, options)
    found = Explored(path.name, target.name, [], [_region(region) for region in regions])
    imported: dict[str, list[str]] = {}
    calls: dict[str, list[int]] = {}
    profiles: list[Profile] = []
    producers: dict[str, int] = {}
    for number, module in enumerate(modules):
        if module is None:
            found.ops.append(_foreign(len(found.ops), number, regions[number], producers))
            continue
        for name, ops in ops_by_name(module).items():
            imported.setdefault(name, []).extend(ops)
        network = _Network(module, target, f"region {number}: " if regions else "", len(found.calls))
        for one, call in enumerate(network.calls, start=len(found.calls)):
            for name in call.names:
                calls.setdefault(name, []).append(one)
        progress("predicting variants")
        network.predict()
        if is_measured:
            progress("measuring")
            profiles.append(profile_ops(module, random_inputs(network.graph.inputs, 0), target=target))
        network.add_to(found, profiles[-1] if is_measured else None, number if regions else None, producers)
    homes = {title: number for number, region in enumerate(regions) for title in region.nodes}
    for index, node in enumerate(nodes_report(format_of(path).nodes(path, options), imported, calls)):
        home = homes.get(node.node.title)
        is_compiled = home is None or regions[home].is_compiled
        found.nodes.append(_node(index, node if is_compiled else NodeReport(node.node), home))
    found.summary = _summary(found.calls, profiles)
    return found


def modules_of(
    path: Path, target: Target, options: ImportOptions
) -> tuple[tuple[Region, ...], Sequence[ir.Module | None]]:
    """The whole network, or the regions of a divided one and the modules of those that are compiled."""
    try:
        return (), [format_of(path).read(path, options)]
    except ImportModelError as error:
        division = division_of(path, options, error, "framework")

    def checked(module: ir.Module) -> ir.Module:
        lower(module, target, Phase.LINALG)
        return module

    found, modules = divide(division, checked)
    return tuple(region_of(division, found, part) for part in found.parts), modules


def _region(region: Region) -> Json:
    return {
        "runner": region.runner,
        "compiled": region.is_compiled,
        "products": region.products,
        "inputs": region.inputs,
        "outputs": region.outputs,
        "reasons": dict(region.reasons),
    }


def _node(index: int, report: NodeReport, region: int | None) -> Json:
    node = report.node
    return {
        "id": index,
        "title": node.title,
        "kind": node.kind,
        "inputs": node.inputs,
        "outputs": node.outputs,
        "ops": report.ops,
        "within": report.within,
        "calls": report.calls,
        "region": region,
    }


def _summary(calls: Sequence[Json], profiles: Sequence[Profile]) -> Json:
    macs = sum(call["macs"] for call in calls)
    if not profiles:
        return {"macs": macs}
    seconds = sum(profile.seconds for profile in profiles)
    first = profiles[0]
    return {"macs": macs, "seconds": seconds, "peak": first.peak, "loop": first.loop, "frequency": first.frequency}


class _Network:
    """A module in every phase."""

    def __init__(self, module: ir.Module, target: Target, prefix: str, first: int) -> None:
        self._target, self._prefix, self._first = target, prefix, first
        self._fused = lower(module, target, Phase.FUSED).module
        self.graph = self._lowered({}, Phase.LINALG)
        self.calls = self.graph.calls
        self._names = kernel_names(self.calls)
        self._phases = {Phase.LINALG: self.graph}
        for phase in _PHASES[1:]:
            self._phases[phase] = lower(list(self._phases.values())[-1].module, target, phase)
        self._machine = core_of(target)
        self._cycles: Mapping[int, KernelCycles] = {}
        self._variants: dict[str, dict[str, float]] = {}

    def _lowered(self, wanted: Mapping[str, str], phase: Phase) -> Lowered:
        copy = context.copy(self._fused)
        variants.set_wanted_variants(copy, self._target, wanted)
        return lower(copy, self._target, phase)

    def predict(self) -> None:
        if self._machine is None:
            return
        self._cycles = kernel_cycles(self._phases[Phase.X86].module, self._machine)
        found = tunables(self.calls)
        for number in range(max((len(one.candidates) for one in found), default=0)):
            wanted = candidates_number(found, number)
            other = self._lowered(wanted, Phase.X86)
            cycles = kernel_cycles(other.module, self._machine)
            for call in other.calls:
                if call.tunable and call.tunable.kernel in wanted and call.kernel in cycles:
                    own = self._variants.setdefault(call.tunable.kernel, {})
                    own[wanted[call.tunable.kernel]] = cycles[call.kernel].predicted

    def add_to(self, found: Explored, profile: Profile | None, region: int | None, producers: dict[str, int]) -> None:
        """Add ops, calls and kernels; `producers` are the ops that give the tensors between regions, by name."""
        first = len(found.ops)
        locations = self._locations()
        numbers: dict[ir.Value, int] = {}
        main = main_function(self._fused)
        block = main.regions[0].blocks[0]
        for port, value in zip(self.graph.inputs, block.arguments, strict=True):
            if port.name in producers:
                numbers[value] = producers[port.name]
        for op, text in zip(block.operations, _lines(main), strict=True):
            if op.operation.name == "func.return":
                given = zip(self.graph.outputs, op.operation.operands, strict=True)
                producers.update({port.name: numbers[value] for port, value in given if value in numbers})
            if op.operation.name in (*CONSTANT_OPS, "func.return"):
                continue
            own = [self._first + number for number, key in enumerate(locations) if key == key_of(op.operation.location)]
            known = {"text": text, "calls": own or self._calls_of(op.operation), "region": region}
            found.ops.append({**_op(first, op, numbers), **known})
            for result in op.operation.results:
                numbers[result] = first
            first += 1
        profiled = profile.calls if profile else [None] * len(self.calls)
        titles = node_names(self.calls)
        for number, (call, one) in enumerate(zip(self.calls, profiled, strict=True)):
            known = {"id": self._first + number, "title": titles[number], "region": region}
            name = self._prefix + self._names[number]
            found.calls.append({**known, "kernel": name, **_call(call), **_measured(one, profile)})
        self._add_kernels(found)

    def _locations(self) -> list[Any]:
        main = entry(self.graph.module)
        calls = [op.operation for op in main.regions[0].blocks[0].operations if op.operation.name == "func.call"]
        return [key_of(call.location) for call in calls]

    def _calls_of(self, op: ir.Operation) -> list[int]:
        """The calls that compute its nodes, where several ops are one kernel."""
        names = set(names_of(op.location))
        return [self._first + number for number, call in enumerate(self.calls) if names & set(call.names)]

    def _add_kernels(self, found: Explored) -> None:
        code = {name: body for name, body in bodies_of_functions(self._disassembly()) if name.startswith(KERNEL)}
        texts = {phase: _texts(self._phases[phase].module) for phase in _PHASES}
        used = self._resources()
        for number, name in dict(zip((call.kernel for call in self.calls), self._names, strict=True)).items():
            call, body = self.calls[number], code.get(name, [])
            loop = hottest(name, body)
            cycles = self._cycles.get(number)
            found.kernels[self._prefix + name] = {
                "tile": self._tile(call, cycles),
                "resources": used.get(name, {}),
                "bound": cycles.bound if cycles else None,
                "predicted": cycles.predicted if cycles else None,
                "instructions": len(body),
                "loop": loop.counts if loop else {},
            }
            found.texts[self._prefix + name] = {
                **{str(phase): texts[phase].get(name, "") for phase in _PHASES},
                "loop": _assembly(loop.body) if loop else "",
                "asm": _assembly(body),
            }

    def _tile(self, call: KernelCall, cycles: KernelCycles | None) -> Json | None:
        if call.tunable is None:
            return None
        tried = self._variants.get(call.tunable.kernel, {})
        own = {call.tunable.own: cycles.predicted} if cycles else {}
        return {"kernel": call.tunable.kernel, "own": call.tunable.own, "cycles": {**own, **tried}}

    def _resources(self) -> dict[str, dict[str, float]]:
        if self._machine is None:
            return {}
        machine, module = self._machine, self._phases[Phase.X86].module
        if machine.vector_pipes:
            module = simplified(module)
        return {name_of(one): resources(counted(one, machine), machine) for one in functions(module) if has_body(one)}

    def _disassembly(self) -> str:
        try:
            return disassembly(object_code(self._phases[Phase.LLVM].module, self._target))
        except CompileError:
            # Without binutils the page has no assembly.
            return ""


def _foreign(number: int, index: int, region: Region, producers: dict[str, int]) -> Json:
    """The part that a framework runs, as one op."""
    reads = list(dict.fromkeys(producers[name] for name in region.inputs if name in producers))
    producers.update(dict.fromkeys(region.outputs, number))
    nodes = list(region.nodes)
    known = {"id": number, "name": region.runner, "stages": [], "nodes": nodes, "reads": reads, "calls": []}
    return {**known, "type": f"{len(nodes)} node{'s' * (len(nodes) != 1)}", "text": "\n".join(nodes), "region": index}


def _op(number: int, op: ir.OpView, numbers: Mapping[ir.Value, int]) -> Json:
    operation = op.operation
    return {
        "id": number,
        "name": operation.name,
        "stages": [stage.name for stage in op.epilogue] if isinstance(op, AnyFused) else [],
        "nodes": names_of(operation.location),
        "reads": list(dict.fromkeys(numbers[value] for value in operation.operands if value in numbers)),
        "type": ", ".join(str(result.type) for result in operation.results),
    }


def _call(call: KernelCall) -> Json:
    return {"label": call.label, "nodes": call.names, "macs": call.macs, "bytes": call.bytes_moved}


def _measured(one: CallProfile | None, profile: Profile | None) -> Json:
    if one is None or profile is None:
        return {}
    shares = {"peak": one.share_of_peak, "bound": one.share_of_bound, "loop": profile.loop_of(one)}
    return {"seconds": one.seconds, "predicted": one.predicted, **shares}


def _texts(module: ir.Module) -> dict[str, str]:
    """The kernels by name, from one print: that of a single op numbers the values of its whole module too."""
    found: dict[str, str] = {}
    name, lines = "", list[str]()
    for line in _PRINTING.text(module).splitlines():
        if start := _KERNEL.match(line):
            name, lines = start[1], []
        lines.append(line.removeprefix("  "))
        if line == "  }" and name:
            found[name], name = "\n".join(lines), ""
    return found


def _lines(function: ir.Operation) -> list[str]:
    """The text of each op of a function: a line, where none has regions."""
    operations = [op.operation for op in function.regions[0].blocks[0].operations]
    lines = _PRINTING.text(function).splitlines()[1:-1]
    texts = lines if len(lines) == len(operations) else map(_PRINTING.text, operations)
    return [_LONG.sub(r"\1 ...>", text.strip()) for text in texts]


def _assembly(body: Sequence[Instruction]) -> str:
    return "\n".join(f"{one.address:6x}  {one.mnemonic:16} {one.operands}".rstrip() for one in body)


# The loops of compiled functions, from their disassembly.

_FUNCTION = re.compile(r"^[0-9a-f]+ <(\w+)>:$")
_INSTRUCTION = re.compile(r"^\s*([0-9a-f]+):\t((?:data16 |cs )*\S+)\s*(.*)$")
_NOTHING = re.compile(r"(?:data16 |cs )*nop[wl]?|xchg")
_DOTS = re.compile(r"vpdp|tdp|v?pmadd")
_PRODUCT = re.compile(r"v?pmul|vfn?m(?:add|sub)|v?mulp")
_VECTOR = re.compile(r"v|p[a-z]|tile|tdp|[a-z]+ps$")


@dataclass(frozen=True)
class Instruction:
    """A line of a disassembly."""

    address: int
    mnemonic: str
    operands: str

    @property
    def goes_back_to(self) -> int | None:
        """Where a jump backwards ends; None for everything else."""
        if not self.mnemonic.startswith("j") or not self.operands.split():
            return None
        target = self.operands.split()[0]
        found = int(target, 16) if re.fullmatch(r"[0-9a-f]+", target) else self.address + 1
        return found if found <= self.address else None


@dataclass(frozen=True)
class Loop:
    """A loop of a function, without what only fills space."""

    function: str
    body: tuple[Instruction, ...]

    def count(self, mnemonic: str) -> int:
        """How many of its instructions are of this kind."""
        return sum(instruction.mnemonic == mnemonic for instruction in self.body)

    @property
    def counts(self) -> dict[str, int]:
        """How many instructions it has of each kind, the most first."""
        return dict(Counter(instruction.mnemonic for instruction in self.body).most_common())

    @property
    def work(self) -> tuple[int, ...]:
        """How many of its instructions are dot products, other products and others on vectors."""
        kinds = (_DOTS, _PRODUCT, _VECTOR)
        return tuple(sum(bool(kind.match(one.mnemonic)) for one in self.body) for kind in kinds)


def bodies_of_functions(disassembly: str) -> Iterator[tuple[str, list[Instruction]]]:
    """Name and instructions of each function of objdump's output."""
    name, body = "", list[Instruction]()
    for line in disassembly.splitlines():
        if start := _FUNCTION.match(line):
            yield name, body
            name, body = start[1], []
        elif found := _INSTRUCTION.match(line):
            body.append(Instruction(int(found[1], 16), found[2], found[3]))
    yield name, body


def innermost_loops(name: str, body: Sequence[Instruction]) -> Iterator[Loop]:
    """The loops of a function that have no loop inside: what lies between a jump backwards and where it ends."""
    spans = [(start, one.address) for one in body if (start := one.goes_back_to) is not None]
    for start, end in spans:
        if not any(start <= other[0] and other[1] <= end and other != (start, end) for other in spans):
            inside = (one for one in body if start <= one.address <= end)
            yield Loop(name, tuple(one for one in inside if not _NOTHING.fullmatch(one.mnemonic)))


def hottest(name: str, body: Sequence[Instruction]) -> Loop | None:
    """The innermost loop with the most dot products, or else products, or vectors; None where there is no loop."""
    return max(innermost_loops(name, body), key=lambda loop: (*loop.work, -len(loop.body)), default=None)
