"""How far back each kernel call of a network finds what it reads and writes, from `main` at the phase `x86`."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

from qdialect.ir._mlir import ir
from qdialect.lowering.ir.functions import MAIN, constant, functions, inside, name_of
from qdialect.support.interface import KERNEL

# Between two uses of the same bytes a core touches other ones, and a cache that replaces what was longest unused still
# has them if these are fewer than it holds.  A call streams its buffers, so that an element halfway through a buffer
# was used when half of the call before was done, and is used again when half of this one is:
#
#   distance = bytes of the calls in between + (bytes of the call that used it last + bytes of this call) / 2
#
# and no more than all that the network uses.  The calls are walked through twice, as a network is called again and
# again: constants come back once in a round.

KERNEL_NUMBER = re.compile(rf"{KERNEL}(\d+)")


@dataclass(frozen=True)
class Reuse:
    """A stretch of bytes that a call uses, and how many other bytes were used since it was used before."""

    size: int
    distance: float


@dataclass(frozen=True)
class CallReuse:
    """A call of a kernel, by its number, and what it uses."""

    kernel: int
    parts: tuple[Reuse, ...]


@dataclass(frozen=True)
class _Range:
    """Bytes of an argument of `main`."""

    argument: int
    first: int
    end: int


@dataclass
class _Part:
    """Bytes that are always used together, and by which call last."""

    size: int
    used_until: float = -math.inf
    by_bytes: int = 0


def call_reuses(module: ir.Module) -> list[CallReuse]:
    """Of every call of `main`, in their order."""
    main = next((op for op in functions(module) if name_of(op) == MAIN), None)
    calls = list(_calls(main)) if main else []
    parts = _parts([one for _, ranges in calls for one in ranges])
    all_bytes = sum(part.size for some in parts.values() for _, part in some)
    position, found = 0.0, list[CallReuse]()
    for kernel, ranges in (*calls, *calls):
        used = {key: part for one in ranges for key, part in _inside(one, parts)}
        total = sum(part.size for part in used.values())
        back = ((part.size, position - part.used_until + (part.by_bytes + total) / 2) for part in used.values())
        found.append(CallReuse(kernel, tuple(Reuse(size, min(distance, all_bytes)) for size, distance in back)))
        position += total
        for part in used.values():
            part.used_until, part.by_bytes = position, total
    return found[len(calls) :]


def _calls(main: ir.Operation) -> Iterator[tuple[int, list[_Range]]]:
    for op in (one for one in inside(main) if one.name == "func.call"):
        number = KERNEL_NUMBER.match(ir.FlatSymbolRefAttr(op.attributes["callee"]).value)
        if number:
            ranges = (_range(value) for value in op.operands if isinstance(value.type, ir.MemRefType))
            yield int(number[1]), [one for one in ranges if one]


def _range(buffer: ir.Value) -> _Range | None:
    type_ = ir.MemRefType(buffer.type)
    element = type_.element_type
    width = element.width if isinstance(element, ir.IntegerType | ir.FloatType) else 8
    size, first = -(-math.prod(type_.shape) * width // 8), 0
    if not isinstance(buffer.owner, ir.Block):
        if buffer.owner.name != "memref.view":
            return None
        first = constant(buffer.owner.operands[1]) or 0
        buffer = buffer.owner.operands[0]
    if not isinstance(buffer.owner, ir.Block) or not size:
        return None
    return _Range(ir.BlockArgument(buffer).arg_number, first, first + size)


def _parts(ranges: list[_Range]) -> dict[int, list[tuple[int, _Part]]]:
    """By the argument, stretches between the ends of ranges, by where they begin."""
    borders: dict[int, set[int]] = {}
    for one in ranges:
        borders.setdefault(one.argument, set()).update((one.first, one.end))
    return {
        argument: [(first, _Part(end - first)) for first, end in pairwise(found)]
        for argument, found in ((argument, sorted(found)) for argument, found in borders.items())
    }


def _inside(one: _Range, parts: dict[int, list[tuple[int, _Part]]]) -> Iterator[tuple[tuple[int, int], _Part]]:
    for first, part in parts[one.argument]:
        if one.first <= first < one.end:
            yield (one.argument, first), part
