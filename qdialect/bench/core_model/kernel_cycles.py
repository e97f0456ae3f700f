"""The cycles that a kernel needs at least on the busiest port of a core, from its code at the phase `x86`.

Of every op on vectors, times the trips of the loops around it, there are counted in whole vectors

  products      dot products, at the core's dot products a cycle
  loads         reads of memory, at its loads a cycle
  stores        writes, one a cycle
  instructions  dot products and all that computes or moves lanes, at its instructions a cycle

and the longest of the four is the bound: no order of instructions is faster, if LLVM needs as many.  Constants, casts
and extensions, which loads do on the way, count nothing; neither do addresses and the loops themselves.

Where it was measured which pipes of a core take which instructions (`qdialect/targets/machine.py`), the bound is that
of the busiest set of pipes, of the ports of loads and stores or of the divider, as `occupations` counts them, on a
CSE'd copy of the code (`simplified`).

A core looks some hundred instructions ahead, so that the body of one loop overlaps with itself and little with that of
the next.  What a kernel is predicted to take is therefore the sum of the bounds of its loop bodies, each for itself:

  predicted(body) = trips * (bound of what is in no inner loop + sum of predicted(inner loops)),

and at least the transfer time of its bytes: those that exceed L1 at half of L2's bandwidth, as
data and results share it, and those that exceed L2 at a quarter.  If the bandwidth of L3
was measured, the waiting time is added instead, see `KernelCycles.awaited`.

Where the pipes were measured, a loop takes no less than the chain of what its iterations hand on (`latency`), and
instructions that alternate are distributed less evenly among the pipes than they could be.  Where memory was measured,
too, a call waits for its bytes as `qdialect/targets/machine.py` describes, from where the calls before it have left
them (`memory_traffic.py`).

Kernels of matrix tiles are predicted otherwise.  Loads of tiles are hidden behind products and stores of tiles, or
these behind them, but vector code is not:

  predicted = max(products + stores, loads of tiles) + vector code + 200 for each configuration
  products    16 cycles each, a cycle less for each row less than 16, down to 9
  stores      a cycle for each row
  loads       rows / (loads a cycle)
  vector code max(multiplications, instructions / (instructions a cycle))

In the 256 cycles after an instruction on tiles, a Xeon of the fourth generation starts one 512-bit multiplication,
conversion, shift or minimum of integers a cycle, not two: 512 independent fused multiply-adds behind one `tilezero`
took 387 cycles, 256 + 256 / 2, and 256 or fewer as many cycles as they are.  A `tdpbusd` with 32 additions took 16.5
cycles, one with 32 fused multiply-adds 32.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from qdialect.bench.core_model.memory_traffic import KERNEL_NUMBER, Reuse
from qdialect.bench.core_model.occupations import LOADS, SHUFFLES, STORES, bits, latency, occupied, simplified
from qdialect.ir._mlir import ir
from qdialect.lowering.cost.matrix_tiles import CONFIGURATION_CYCLES, LEAST_ROWS, ROWS
from qdialect.lowering.instructions.tiles import CONFIGURE, LOAD, LOAD_PAST, STORE, TILE_ROWS
from qdialect.lowering.ir.functions import TRIPS, bounds, contraction_of, functions, inside, name_of
from qdialect.targets.machine import Machine

_FREE = ("arith.constant", "arith.index_cast", "arith.index_castui", "arith.extui", "arith.extsi")
_PRODUCT = re.compile(r"vpdp|pmadd|dpbf16")
_TILE_PRODUCT = re.compile(r"tdpb")
_LOOP, _BRANCH = "scf.for", "scf.if"
_PORTS = ("loads", "stores", "divisions")
MUCH = 1.1
"""How much longer something takes that limits a kernel."""
# The work of one of two units while matrix tiles are multiplied.
_MULTIPLICATIONS = (
    *("arith.mulf", "math.fma", "arith.muli", "arith.sitofp", "arith.uitofp", "arith.fptosi", "arith.fptoui"),
    *("arith.maximumf", "arith.minimumf", "arith.maxnumf", "arith.minnumf"),
    *("arith.maxsi", "arith.minsi", "arith.maxui", "arith.minui", "arith.shli", "arith.shrsi", "arith.shrui"),
)
_MULTIPLICATION = re.compile(r"vpdp|pmadd|dpbf16|pmul|cvt|vfmadd")
_PAIRS = re.compile(r"pmadd\.?ub")


@dataclass(frozen=True)
class KernelCycles:
    """The cycles of a kernel's instructions."""

    bound: float
    """At least."""
    predicted: float
    """Loop by loop, with all data in L1."""
    limit: str = field(default="", compare=False)
    """The bottleneck with all data in L1: the busiest port, or latency where iterations wait."""

    def with_memory(self, size: int, machine: Machine) -> float:
        """Cycles predicted for a call that reads and writes `size` bytes."""
        return max(self.predicted, memory_cycles(size, machine))

    def in_a_network(self, size: int, uses: Sequence[Reuse], machine: Machine) -> tuple[float, float]:
        """At least, and as predicted, of a call that finds the buffers that it uses so far back."""
        total = sum(one.size for one in uses)
        if not machine.levels or not total:
            return self.bound, self.with_memory(size, machine)
        # Of a buffer whose borders alone are written it uses a part.
        part = min(size / total, 1.0)
        waited, expected = machine.levels.cycles(self.predicted, ((one.size * part, one.distance) for one in uses))
        return max(self.bound, waited), expected


def kernel_cycles(module: ir.Module, machine: Machine) -> dict[int, KernelCycles]:
    """Cycles by the number of a kernel, of the kernels of a module of the phase `x86`."""
    found: dict[int, KernelCycles] = {}
    if machine.vector_pipes:
        module = simplified(module)
    for function in functions(module):
        number = KERNEL_NUMBER.match(name_of(function))
        if number:
            has_tiles = any(TILE_ROWS in op.attributes for op in inside(function))
            # What competes with products of tiles was not measured.
            core = replace(machine, pipes=None) if has_tiles else machine
            counts = counted(function, core)
            if has_tiles:
                time, waits = _predicted_tiles(counts, core), False
            else:
                time = predicted(function, core)
                waits = time > MUCH * predicted(function, core, waits=False)
            limit = "latency" if waits else busiest_port(counts, core)
            found[int(number[1])] = KernelCycles(cycles(counts, core), time, limit)
    return found


def predicted(op: ir.Operation, machine: Machine, *, waits: bool = True) -> float:
    """Cycles of a function or a loop, the sum of what its loop bodies take; without `waits`, no iteration waits."""
    outside, inside = _outside_of_loops(op, machine)
    body = cycles(outside, machine, mixed=True) + sum(predicted(loop, machine, waits=waits) for loop in inside)
    pipes = machine.vector_pipes
    if waits and pipes and op.name == _LOOP:
        body = max(body, Chains(lambda link: latency(link, pipes), _trips).cycles(op))
    return _trips(op) * body


def _predicted_tiles(counts: Mapping[str, float], machine: Machine) -> float:
    """Cycles of a kernel of tiles, whose loads find all in L1."""
    instructions = counts.get("instructions", 0) / machine.vector_instructions
    loads = counts.get("tile loads", 0) / machine.loads
    products = counts.get("tiles", 0) + counts.get("tile stores", 0)
    configurations = CONFIGURATION_CYCLES * counts.get("configurations", 0)
    return max(products, loads) + max(counts.get("multiplications", 0), instructions) + configurations


def memory_cycles(size: int, machine: Machine) -> float:
    """Cycles until `size` bytes that a kernel reads and writes have come."""
    if size <= machine.l1_bytes:
        return 0.0
    return size / (machine.l2_bandwidth / (2 if size <= machine.l2_bytes else 4))


def kernels_of_kinds(module: ir.Module) -> tuple[set[int], set[int]]:
    """Numbers of the kernels of a module of the phase `x86` that sum products in pairs, and that multiply tiles."""
    return _kernels_with(_PAIRS, module), _kernels_with(_TILE_PRODUCT, module)


def _kernels_with(instruction: re.Pattern[str], module: ir.Module) -> set[int]:
    numbered = ((KERNEL_NUMBER.match(name_of(function)), function) for function in functions(module))
    return {int(number[1]) for number, function in numbered if number and _has(instruction, function)}


def _has(instruction: re.Pattern[str], function: ir.Operation) -> bool:
    named = {"llvm.call_intrinsic": "intrin", "llvm.inline_asm": "asm_string"}
    texts = (ir.StringAttr(op.attributes[named[op.name]]).value for op in inside(function) if op.name in named)
    return any(map(instruction.search, texts))


def cycles(counts: Mapping[str, float], machine: Machine, *, mixed: bool = False) -> float:
    """Cycles of the busiest port; `mixed` is with pipes among which instructions are distributed as a core does it."""
    totals = Counter(counts)
    if machine.vector_pipes:
        ports = (totals[name] for name in _PORTS)
        return max(machine.vector_pipes.cycles(counts, mixed=mixed), *ports)
    return max(resources(counts, machine).values())


def busiest_port(counts: Mapping[str, float], machine: Machine) -> str:
    """The port that is busy for longest, the narrowest kind where several are."""
    found = resources(counts, machine)
    return max(reversed(found), key=lambda name: found[name]) if any(found.values()) else ""


def resources(counts: Mapping[str, float], machine: Machine) -> dict[str, float]:
    """Cycles for which each port is busy."""
    totals, pipes = Counter(counts), machine.vector_pipes
    if pipes:
        vector = {f"{kind} pipes": totals[kind] / len(own) for kind, own in pipes.of_kind.items()}
        return {"all vector pipes": pipes.cycles(counts), **vector, **{n: totals[n] for n in _PORTS}}
    return {
        "products": totals["products"] / machine.dot_products,
        "loads": (totals["loads"] + totals["tile loads"]) / machine.loads,
        "stores": totals["stores"] + totals["tile stores"],
        "vector instructions": totals["instructions"] / machine.vector_instructions,
        "matrix tiles": totals["tiles"],
    }


def counted(op: ir.Operation, machine: Machine) -> dict[str, float]:
    """The load of `op` and the ops inside it on each port."""
    total: dict[str, float] = {}
    trips = _trips(op)
    for counts in (_own(op, machine), *(counted(child, machine) for child in _children(op))):
        _add(total, counts, trips)
    return total


def _add(total: dict[str, float], counts: Mapping[str, float], trips: float = 1) -> None:
    """Add `counts`, which are asked for so often."""
    for name, count in counts.items():
        total[name] = total.get(name, 0) + trips * count


def _outside_of_loops(op: ir.Operation, machine: Machine) -> tuple[dict[str, float], list[ir.Operation]]:
    """The load on each port of `op` and the ops inside it but not in inner loops; and the outermost of these loops."""
    total, loops = dict[str, float](_own(op, machine)), list[ir.Operation]()
    for child in _children(op):
        if child.name == _LOOP and TRIPS not in child.attributes:
            loops.append(child)
            continue
        own, inner = _outside_of_loops(child, machine)
        _add(total, own, _trips(child))
        loops += inner
    return total, loops


def _children(op: ir.Operation) -> Iterator[ir.Operation]:
    """Of two branches, those of the second: patterns put into the first what is rare."""
    regions = [region for region in op.regions if len(region.blocks)]
    taken = regions[-1:] if op.name == _BRANCH else regions
    return (child.operation for region in taken for block in region.blocks for child in block.operations)


def _trips(op: ir.Operation) -> float:
    if TRIPS in op.attributes:
        return ir.FloatAttr(op.attributes[TRIPS]).value
    found = bounds(op) if op.name == _LOOP else None
    # Of a loop whose end is known when it runs, once is certain.
    return found[2] if found else 1


def _own(op: ir.Operation, machine: Machine) -> Counter[str]:
    if machine.vector_pipes:
        return occupied(op, machine.vector_pipes)
    if op.name == "vector.contract":
        vectors = math.prod(contraction_of(op).extents) * 8 // machine.vector_bits
        return Counter(products=vectors, instructions=vectors, multiplications=vectors)
    if op.name == "llvm.call_intrinsic":
        return _instruction(op, machine)
    if op.name in LOADS:
        return Counter(loads=_vectors(op.results[0].type, machine))
    if op.name in STORES:
        return Counter(stores=_vectors(op.operands[0].type, machine))
    if op.name.startswith(("arith.", "math.")) and op.name not in _FREE and op.results:
        vectors = max(_vectors(value.type, machine) for value in (*op.operands, *op.results))
        return Counter(instructions=vectors, multiplications=vectors if op.name in _MULTIPLICATIONS else 0)
    if op.name in SHUFFLES and bits(op.results[0].type) >= bits(op.operands[0].type):
        return Counter(instructions=_vectors(op.results[0].type, machine))
    return Counter()


def _instruction(op: ir.Operation, machine: Machine) -> Counter[str]:
    name = ir.StringAttr(op.attributes["intrin"]).value
    if TILE_ROWS in op.attributes:
        return _tile_instruction(name, ir.IntegerAttr(op.attributes[TILE_ROWS]).value, machine)
    if name == CONFIGURE:
        return Counter(configurations=1)
    vectors = _vectors(op.results[0].type, machine) if op.results else 0
    return Counter(
        instructions=vectors,
        products=vectors if _PRODUCT.search(name) else 0,
        multiplications=vectors if _MULTIPLICATION.search(name) else 0,
    )


def _tile_instruction(name: str, rows: int, machine: Machine) -> Counter[str]:
    if name in (LOAD, LOAD_PAST, STORE):
        return Counter({"tile stores" if name == STORE else "tile loads": rows})
    return Counter(tiles=machine.tile_product_cycles * max(rows, LEAST_ROWS) // ROWS)


def _vectors(type_: ir.Type, machine: Machine) -> int:
    """Vectors that hold a value; none for a scalar."""
    return -(-bits(type_) // machine.vector_bits)


# The cycles that a loop waits for itself: from what an iteration takes over from the one before to what it hands on.
#
#   chain = max over carried values of (latencies of the ops from a carried value to what the loop yields)
#
# An iteration cannot end before the chain through the one before it has, however many units are idle: a loop of n trips
# takes n * chain at least.  What is taken from a vector of sums and put back at another place is no link of the chain.


class Chains:
    """The chains of loops, given the latency of an op and the trips of a loop."""

    def __init__(self, latency: Callable[[ir.Operation], float], trips: Callable[[ir.Operation], float]) -> None:
        self._latency, self._trips = latency, trips

    def cycles(self, loop: ir.Operation) -> float:
        """From the values that an iteration of `loop` takes over to those that it yields."""
        block = loop.regions[0].blocks[0]
        carried = list[ir.Value](block.arguments)[1:]
        depths = dict.fromkeys(carried, 0.0)
        if not depths:
            return 0.0
        *body, last = (op.operation for op in block.operations)
        for op in body:
            self._follow(op, depths)
        return max((depths.get(value, 0.0) for value in last.operands), default=0.0)

    def _follow(self, op: ir.Operation, depths: dict[ir.Value, float]) -> None:
        """Add how deep the results of `op` are, where they depend on a carried value."""
        sources = [_found(op)] if op.name == "vector.extract" else list(op.operands)
        found = [depths[value] for value in sources if value in depths]
        if not found:
            return
        longer = self._trips(op) * self.cycles(op) if op.name == _LOOP else self._latency(op)
        for result in op.results:
            depths[result] = max(found) + longer


def _found(extract: ir.Operation) -> ir.Value:
    """The operand of a `vector.extract`: the value inserted there, or the vector if none was."""
    position, source = extract.attributes["static_position"], extract.operands[0]
    while not isinstance(source.owner, ir.Block) and source.owner.name == "vector.insert":
        insert = source.owner.operation
        if insert.attributes["static_position"] == position:
            return insert.operands[0]
        source = insert.operands[1]
    return source
