"""The public functions of a file, and their callees, as text of the LLVM dialect.

Symbols with a dot are internal: C has none.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum

from qdialect.aot import cpu_dispatch
from qdialect.aot.cpu_dispatch import symbol_part
from qdialect.aot.record import ALIGNMENT, Batch, Network, target_titles
from qdialect.support.interface import State
from qdialect.targets import Target

RUN = "run"
RUN_THREADS = "run_threads"
FUNCTIONS = (RUN, RUN_THREADS, "network", "workspace_size", "version", "strerror", "reset")
"""The suffixes of the public functions, after the network's name."""
_IS_NEGATIVE = '%is_negative = llvm.icmp "slt" %batch, %zero : i64'


@dataclass(frozen=True)
class Body:
    """The compiled `main` of a version."""

    symbol: str
    constants: str
    """The symbol of its constants."""
    is_divided: bool
    """Whether it takes how many threads it may ask for."""
    clock: int | None = None
    """Where in the workspace it writes the readings of a clock, if it has one."""


def text(network: Network, targets: Sequence[Target], versions: Sequence[Sequence[Body]]) -> str:
    """A module with the public functions; the bodies and constants of the versions are declared in it.

    A version has a body for each size of batches that its code is for.
    """
    name = network.name
    kinds = [RUN, *([RUN_THREADS] if network.threads > 1 else [])]
    # Versions may share their constants.
    bodies = [body for version in versions for body in version]
    constants = dict.fromkeys(body.constants for body in bodies)
    functions = [f"llvm.mlir.global external constant @{symbol}() : !llvm.array<1 x i8>" for symbol in constants]
    functions += [_declaration(network, body) for body in bodies]
    calls = [_call(network, target, version) for target, version in zip(targets, versions, strict=True)]
    functions += [call.function for call in calls if call.function]
    for kind in kinds:
        symbols = _run_symbols(network, kind, targets)
        functions += [_run(network, kind, symbol, call) for symbol, call in zip(symbols, calls, strict=False)]
        if network.is_chosen:
            functions += _chosen(network, kind, symbols)
    if network.is_chosen:
        functions.append(cpu_dispatch.choose(f"{name}.choose", targets))
    functions += [
        _record(name),
        _constant_function(
            f"{name}_workspace_size", "i64", network.workspace_bytes, "%batch: i64" if network.batch else ""
        ),
        _version(network),
        _strerror(network),
        *([_reset(network)] if network.states else []),
    ]
    return "\n".join(functions)


def _run_symbols(network: Network, kind: str, targets: Sequence[Target]) -> list[str]:
    """The function of each version and, if a CPU may lack the features of all, one that reports that."""
    if not network.is_chosen:
        return [f"{network.name}_{kind}"]
    found = [f"{network.name}.{symbol_part(target)}.{kind}" for target in targets]
    return found if network.runs_everywhere else [*found, f"{network.name}.none.{kind}"]


def _declaration(network: Network, body: Body) -> str:
    count = len(network.inputs) + len(network.outputs) + 2 + body.is_divided + (body.clock is not None)
    return f"llvm.func @{body.symbol}({', '.join(['!llvm.ptr'] * count)})"


def _parameters(network: Network, kind: str) -> str:
    size = ", %batch: i64" if network.batch else ""
    limit = ", %threads: i32" if kind == RUN_THREADS else ""
    return f"(%inputs: !llvm.ptr, %outputs: !llvm.ptr, %workspace: !llvm.ptr{size}{limit}) -> i32"


@dataclass(frozen=True)
class _Call:
    """The lines that call a version, and the function that they call where there is one more."""

    lines: Sequence[str]
    is_divided: bool
    function: str = ""


def _call(network: Network, target: Target, bodies: Sequence[Body]) -> _Call:
    limit = ["%limit"] if bodies[0].is_divided else []
    arrays = [f"%in{i}" for i in range(len(network.inputs))] + [f"%out{i}" for i in range(len(network.outputs))]
    if network.batch is None:
        clock = bodies[0].clock
        arguments = [*arrays, *([] if clock is None else ["%clock"]), "%constants", "%workspace", *limit]
        types = ", ".join(["!llvm.ptr"] * len(arguments))
        lines = [
            f"  %clock = llvm.getelementptr %workspace[{clock or 0}] : (!llvm.ptr) -> !llvm.ptr, i8",
            f"  %constants = llvm.mlir.addressof @{bodies[0].constants} : !llvm.ptr",
            f"  llvm.call @{bodies[0].symbol}({', '.join(arguments)}) : ({types}) -> ()",
        ]
        return _Call(lines, bool(limit))
    symbol = f"{network.name}.{symbol_part(target)}.batch"
    limited = any(body.is_divided for body in bodies)
    limit = ["%limit"] if limited else []
    pointers = [*arrays, "%workspace", *limit]
    types = ", ".join(["!llvm.ptr"] * len(pointers))
    lines = [f"  llvm.call @{symbol}({', '.join(pointers)}, %batch) : ({types}, i64) -> ()"]
    return _Call(lines, limited, _batch_loop(symbol, network, network.batch, bodies))


def _chosen(network: Network, kind: str, symbols: Sequence[str]) -> list[str]:
    name = network.name
    types = "ptr, ptr, ptr" + (", i64" if network.batch else "") + (", i32" if kind == RUN_THREADS else "")
    found = [
        cpu_dispatch.resolver(f"{name}.resolve.{kind}", f"{name}.choose", symbols),
        f"llvm.mlir.ifunc external @{name}_{kind} : !llvm.func<i32 ({types})>, !llvm.ptr @{name}.resolve.{kind}",
    ]
    if not network.runs_everywhere:
        lines = [f"llvm.func internal @{symbols[-1]}{_parameters(network, kind)} {{", *_returned(Error.CPU), "}"]
        found.append("\n".join(lines))
    return found


def _run(network: Network, kind: str, symbol: str, call: _Call) -> str:
    linkage = "internal " if network.is_chosen else ""
    counts = len(network.inputs), len(network.outputs)
    checked = [f"%{kind}" for kind, count in zip(("inputs", "outputs"), counts, strict=True) if count]
    arrays = [f"%in{i}" for i in range(counts[0])] + [f"%out{i}" for i in range(counts[1])]
    limits = _limit(network, kind) if call.is_divided else []
    threads, externals = ["  llvm.br ^run", "^run:"], list[str]()
    if kind == RUN_THREADS:
        few = '%too_few = llvm.icmp "slt" %threads, %fewest : i32'
        threads = ["  %fewest = llvm.mlir.constant(1 : i32) : i32", *_refused(few, "^too_few", Error.THREADS, "^run")]
    if network.external_calls:
        # The workspace begins with what the first function of another library that failed has returned.
        failed = '%has_failed = llvm.icmp "ne" %status, %zero : i64'
        externals = [
            "  %status = llvm.load %workspace : !llvm.ptr -> i64",
            *_refused(failed, "^failed", Error.EXTERNAL, "^done"),
        ]
    return "\n".join(
        [
            f"llvm.func {linkage}@{symbol}{_parameters(network, kind)} {{",
            "  %null = llvm.mlir.zero : !llvm.ptr",
            *_is_any_null("lists", [*checked, "%workspace"]),
            "  llvm.cond_br %lists, ^null, ^lists",
            "^null:",
            *_returned(Error.NULL),
            "^lists:",
            *_loads("in", "%inputs", counts[0]),
            *_loads("out", "%outputs", counts[1]),
            *_is_any_null("arrays", arrays),
            "  llvm.cond_br %arrays, ^null, ^aligned",
            "^aligned:",
            f"  %lowest = llvm.mlir.constant({ALIGNMENT - 1} : i64) : i64",
            "  %zero = llvm.mlir.constant(0 : i64) : i64",
            "  %address = llvm.ptrtoint %workspace : !llvm.ptr to i64",
            "  %odd = llvm.and %address, %lowest : i64",
            *_refused('%is_odd = llvm.icmp "ne" %odd, %zero : i64', "^odd", Error.ALIGNMENT, "^threads"),
            *threads,
            *(_refused(_IS_NEGATIVE, "^negative", Error.BATCH, "^batch") if network.batch else []),
            *limits,
            *call.lines,
            *externals,
            *_returned(Error.OK),
            "}",
        ]
    )


def _refused(condition: str, block: str, error: Error, after: str) -> list[str]:
    """Return `error`, in the block of this name, where a condition is true; else go on with the block `after`."""
    branch = f"  llvm.cond_br {condition.partition(' ')[0]}, {block}, {after}"
    return [f"  {condition}", branch, f"{block}:", *_returned(error), f"{after}:"]


def _limit(network: Network, kind: str) -> list[str]:
    all_threads = f"  %threads = llvm.mlir.constant({network.threads} : i32) : i32"
    return [
        *([all_threads] if kind == RUN else []),
        "  %one = llvm.mlir.constant(1 : i32) : i32",
        "  %limit = llvm.alloca %one x i32 : (i32) -> !llvm.ptr",
        "  llvm.store %threads, %limit : i32, !llvm.ptr",
    ]


def _is_any_null(name: str, pointers: Sequence[str]) -> list[str]:
    """Whether one of `pointers` is null, as ``%name``."""
    lines = [f"  %{name}_start = llvm.mlir.constant(false) : i1"]
    found = f"%{name}_start"
    for i, pointer in enumerate(pointers):
        until = f"%{name}" if i == len(pointers) - 1 else f"%{name}_until{i}"
        lines += [
            f'  %{name}{i}_is_null = llvm.icmp "eq" {pointer}, %null : !llvm.ptr',
            f"  {until} = llvm.or {found}, %{name}{i}_is_null : i1",
        ]
        found = until
    return lines


def _loads(name: str, list_: str, count: int) -> list[str]:
    return [line for i in range(count) for line in _load(name, list_, i)]


def _load(name: str, list_: str, index: int) -> list[str]:
    return [
        f"  %{name}{index}_at = llvm.getelementptr {list_}[{index}] : (!llvm.ptr) -> !llvm.ptr, !llvm.ptr",
        f"  %{name}{index} = llvm.load %{name}{index}_at : !llvm.ptr -> !llvm.ptr",
    ]


def _returned(error: Error) -> list[str]:
    return [
        f"  %error{error.value} = llvm.mlir.constant({error.value} : i32) : i32",
        f"  llvm.return %error{error.value} : i32",
    ]


def _record(name: str) -> str:
    return (
        f"llvm.mlir.global external constant @{name}.record() : !llvm.array<1 x i8>\n"
        f"llvm.func @{name}_network() -> !llvm.ptr {{\n"
        f"  %record = llvm.mlir.addressof @{name}.record : !llvm.ptr\n"
        "  llvm.return %record : !llvm.ptr\n}"
    )


def _constant_function(symbol: str, type_: str, value: int, parameters: str = "") -> str:
    return (
        f"llvm.func @{symbol}({parameters}) -> {type_} {{\n"
        f"  %value = llvm.mlir.constant({value} : {type_}) : {type_}\n"
        f"  llvm.return %value : {type_}\n}}"
    )


def _version(network: Network) -> str:
    """A function that returns the index of the version that runs, -1 where none does."""
    name = network.name
    if not network.is_chosen:
        return _constant_function(f"{name}_version", "i32", 0)
    return (
        f"llvm.func @{name}_version() -> i32 {{\n"
        f"  %choice = llvm.call @{name}.choose() : () -> i32\n"
        f"  %count = llvm.mlir.constant({len(network.versions)} : i32) : i32\n"
        "  %none = llvm.mlir.constant(-1 : i32) : i32\n"
        '  %is_none = llvm.icmp "eq" %choice, %count : i32\n'
        "  %version = llvm.select %is_none, %none, %choice : i1, i32\n"
        "  llvm.return %version : i32\n}"
    )


def _strerror(network: Network) -> str:
    texts = [text.encode() + b"\0" for text in (*messages(network), UNKNOWN)]
    starts = [sum(map(len, texts[:i])) for i in range(len(texts))]
    whole = b"".join(texts)
    literal = "".join(chr(byte) if 32 <= byte < 127 and byte not in b'"\\' else f"\\{byte:02X}" for byte in whole)
    lines = [
        f'llvm.mlir.global internal constant @{network.name}.messages("{literal}") : !llvm.array<{len(whole)} x i8>',
        f"llvm.func @{network.name}_strerror(%error: i32) -> !llvm.ptr {{",
        f"  %messages = llvm.mlir.addressof @{network.name}.messages : !llvm.ptr",
        f"  %start_unknown = llvm.mlir.constant({starts[-1]} : i64) : i64",
    ]
    found = "%start_unknown"
    for number, start in enumerate(starts[:-1]):
        lines += [
            f"  %number{number} = llvm.mlir.constant({number} : i32) : i32",
            f"  %start{number} = llvm.mlir.constant({start} : i64) : i64",
            f'  %is{number} = llvm.icmp "eq" %error, %number{number} : i32',
            f"  %found{number} = llvm.select %is{number}, %start{number}, {found} : i1, i64",
        ]
        found = f"%found{number}"
    at = f"  %text = llvm.getelementptr %messages[{found}] : (!llvm.ptr, i64) -> !llvm.ptr, i8"
    return "\n".join([*lines, at, "  llvm.return %text : !llvm.ptr", "}"])


def start_symbol(network: Network, state: State) -> str:
    """The constant with what a state holds before the first call."""
    return f"{network.name}.state{state.output}"


def _reset(network: Network) -> str:
    """A function that writes what states hold before the first call into those outputs."""
    states = [(f"%out{one.output}", one) for one in network.states]
    stored = [start_symbol(network, one) for _, one in states if one.start >= 0]
    lines = [f"llvm.mlir.global external constant @{symbol}() : !llvm.array<1 x i8>" for symbol in stored]
    lines += [
        f"llvm.func @{network.name}_reset(%outputs: !llvm.ptr) -> i32 {{",
        "  %null = llvm.mlir.zero : !llvm.ptr",
        "  %zero = llvm.mlir.constant(0 : i8) : i8",
        *_is_any_null("list", ["%outputs"]),
        "  llvm.cond_br %list, ^null, ^list",
        "^null:",
        *_returned(Error.NULL),
        "^list:",
        *(line for _, one in states for line in _load("out", "%outputs", one.output)),
        *_is_any_null("arrays", [name for name, _ in states]),
        "  llvm.cond_br %arrays, ^null, ^arrays",
        "^arrays:",
    ]
    for name, one in states:
        port = network.outputs[one.output]
        size = math.prod(port.shape) * port.dtype.itemsize
        lines.append(f"  {name}_size = llvm.mlir.constant({size} : i64) : i64")
        if one.start < 0:
            flags = "<{isVolatile = false}> : (!llvm.ptr, i8, i64) -> ()"
            lines.append(f'  "llvm.intr.memset"({name}, %zero, {name}_size) {flags}')
            continue
        flags = "<{isVolatile = false}> : (!llvm.ptr, !llvm.ptr, i64) -> ()"
        lines.append(f"  {name}_start = llvm.mlir.addressof @{start_symbol(network, one)} : !llvm.ptr")
        lines.append(f'  "llvm.intr.memcpy"({name}, {name}_start, {name}_size) {flags}')
    return "\n".join([*lines, *_returned(Error.OK), "}"])


# The function that computes a batch of any size by the bodies of a few sizes, the largest first, as text.


def _batch_loop(symbol: str, network: Network, batch: Batch, bodies: Sequence[Body]) -> str:
    """A function of the arrays, the workspace, the number of entries and, if a body is divided, the thread limit.

    `bodies` are those for each of `batch.rows`. Of a network that calls other libraries the workspace begins with the
    status of these calls: what is not 0 ends the batch.
    """
    steps, may_fail = network.steps, bool(network.external_calls)
    arrays = [f"%array{i}" for i in range(len(steps))]
    limit = ["%limit"] if any(body.is_divided for body in bodies) else []
    parameters = [f"{name}: !llvm.ptr" for name in (*arrays, "%workspace", *limit)]
    lines = [
        f"llvm.func internal @{symbol}({', '.join(parameters)}, %batch: i64) {{",
        "  %start = llvm.mlir.constant(0 : i64) : i64",
        # An empty batch calls nothing that clears it.
        *(["  llvm.store %start, %workspace : i64, !llvm.ptr"] if may_fail else []),
        "  llvm.br ^head0(%start : i64)",
    ]
    for number, (rows, body) in enumerate(zip(batch.rows, bodies, strict=True)):
        at = [f"%at{number}_{i}" if step else name for i, (step, name) in enumerate(zip(steps, arrays, strict=True))]
        operands = [*at, f"%constants{number}", "%workspace", *(limit if body.is_divided else [])]
        lines += [
            f"^head{number}(%first{number}: i64):",
            f"  %rows{number} = llvm.mlir.constant({rows} : i64) : i64",
            f"  %left{number} = llvm.sub %batch, %first{number} : i64",
            f'  %has{number} = llvm.icmp "sge" %left{number}, %rows{number} : i64',
            f"  llvm.cond_br %has{number}, ^body{number}, ^head{number + 1}(%first{number} : i64)",
            f"^body{number}:",
            *(line for i, step in enumerate(steps) if step for line in _moved(number, i, step)),
            f"  %constants{number} = llvm.mlir.addressof @{body.constants} : !llvm.ptr",
            f"  llvm.call @{body.symbol}({', '.join(operands)}) : ({', '.join(['!llvm.ptr'] * len(operands))}) -> ()",
            f"  %next{number} = llvm.add %first{number}, %rows{number} : i64",
            *_next(number, f"^head{len(bodies)}", may_fail),
        ]
    return "\n".join([*lines, f"^head{len(bodies)}(%end: i64):", "  llvm.return", "}"])


def _next(number: int, end: str, may_fail: bool) -> list[str]:
    """Go on with the next entries, or to the block `end` where a call of another library has failed."""
    if not may_fail:
        return [f"  llvm.br ^head{number}(%next{number} : i64)"]
    return [
        f"  %status{number} = llvm.load %workspace : !llvm.ptr -> i64",
        f'  %has_failed{number} = llvm.icmp "ne" %status{number}, %start : i64',
        f"  llvm.cond_br %has_failed{number}, {end}(%next{number} : i64), ^head{number}(%next{number} : i64)",
    ]


def _moved(number: int, array: int, step: int) -> list[str]:
    return [
        f"  %step{number}_{array} = llvm.mlir.constant({step} : i64) : i64",
        f"  %offset{number}_{array} = llvm.mul %first{number}, %step{number}_{array} : i64",
        f"  %at{number}_{array} = llvm.getelementptr %array{array}[%offset{number}_{array}] : "
        "(!llvm.ptr, i64) -> !llvm.ptr, i8",
    ]


# The results of `NAME_run`, and their texts by `NAME_strerror`.


class Error(IntEnum):
    """The errors of the C interface."""

    OK = 0
    CPU = 1
    NULL = 2
    ALIGNMENT = 3
    THREADS = 4
    EXTERNAL = 5
    BATCH = 6


UNKNOWN = "unknown error"


def messages(network: Network) -> tuple[str, ...]:
    """The message of each error for `network`, in the order of their numbers."""
    lacking = f"this CPU can execute none of the versions of '{network.name}': {target_titles(network.versions)}"
    return (
        "no error",
        lacking,
        "inputs, outputs, each of their entries and the workspace must not be null",
        f"the address of the workspace must be a multiple of {ALIGNMENT}",
        "threads must be at least 1",
        "a function of another library that the network calls has failed",
        "batch must be at least 0",
    )
