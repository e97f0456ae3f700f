"""Which elements of its buffers a kernel reads and writes, at the vector phase.

An access is a `Run`: a start and, for each loop around it and each dimension of its vector, a stride and an extent.
What a run cannot describe, an access at a position read from a table or one by an op unknown here, covers its whole
buffer.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np

from qdialect._mlir import ir
from qdialect.late_dataclass import dataclass
from qdialect.lowering.indexing_maps import loops_of
from qdialect.lowering.memory.strides import static_strides

_VIEWS = ("memref.cast", "memref.reinterpret_cast", "memref.view")
# Ops that write or read, by the operand they do it to; indices come after it.
_WRITES = {"vector.transfer_write": 1, "vector.store": 1, "memref.store": 1, "memref.copy": 1}
_READS = {"vector.transfer_read": 0, "vector.load": 0, "memref.load": 0, "memref.copy": 0}
_DYNAMIC = ir.ShapedType.get_dynamic_stride_or_offset()


@dataclass(frozen=True)
class Run:
    """Elements at `start` plus a multiple of each stride: ``(stride, extent)``, the multiples below the extent."""

    start: int
    dims: tuple[tuple[int, int], ...]

    @property
    def end(self) -> int:
        """One past the last element."""
        return self.start + sum(stride * (extent - 1) for stride, extent in self.dims) + 1

    @property
    def is_injective(self) -> bool:
        """Whether no element is reached twice; false also where the strides do not show it."""
        span = 1
        for stride, extent in sorted(self.dims):
            if stride < span:
                return False
            span = stride * (extent - 1) + span
        return True

    def meets(self, other: Run) -> bool:
        """Whether both have an element."""
        return self.count_in_common(other) > 0

    def count_in_common(self, other: Run) -> int:
        """How many elements both have."""
        low, high = max(self.start, other.start), min(self.end, other.end)
        return int((self._mask(low, high) & other._mask(low, high)).sum()) if low < high else 0

    def mask(self, extent: int) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
        """Which elements of a buffer of `extent` it has."""
        found = np.zeros(extent, np.bool_)
        found[self.start : self.end] = self._mask(self.start, self.end)
        return found

    def scaled(self, size: int, offset: int) -> Run:
        """The bytes of elements of `size` bytes, in a block where the buffer starts at `offset`."""
        return Run(offset + self.start * size, ((1, size), *((stride * size, extent) for stride, extent in self.dims)))

    def _mask(self, low: int, high: int) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
        """Which of the elements in [low, high) it has."""
        length, outer = _blocks(self.dims)
        mask = np.zeros(self.end - self.start, np.bool_)
        starts = np.zeros(1, np.int64)
        for stride, extent in outer:
            starts = np.unique(starts[:, None] + np.arange(extent) * stride)
        for start in starts:
            mask[start : start + length] = True
        return mask[low - self.start : high - self.start]


@dataclass(frozen=True)
class Access:
    """A read or a write of the buffer that is argument `argument` of a kernel; without run it covers the whole."""

    argument: int
    is_write: bool
    run: Run | None
    op: ir.Operation
    loops: tuple[tuple[ir.Operation, int], ...]
    """The loops around it that move it, and by how much in an iteration."""
    extent: int
    """Elements of the buffer."""


def accesses(function: ir.Operation) -> list[Access]:
    """All accesses of the kernel `function` to its buffers."""
    arguments = function.regions[0].blocks[0].arguments
    return [found for argument in arguments for found in _of_buffer(argument, argument)]


def constant(value: ir.Value) -> int | None:
    """The value of a constant index."""
    owner = value.owner
    if isinstance(owner, ir.Block) or owner.name != "arith.constant":
        return None
    return ir.IntegerAttr(owner.attributes["value"]).value


def loop_of(variable: ir.Value) -> ir.Operation | None:
    """The `scf.for` whose index is `variable`."""
    block = variable.owner
    holder = block.owner if isinstance(block, ir.Block) else None
    return holder.operation if holder and holder.name == "scf.for" else None


def bounds(loop: ir.Operation) -> tuple[int, int, int] | None:
    """(first index, step, trip count) of an `scf.for` where they are known."""
    lower, upper, step = (constant(value) for value in list(loop.operands)[:3])
    if lower is None or upper is None or step is None:
        return None
    return lower, step, max(-(-(upper - lower) // step), 0)


def _of_buffer(buffer: ir.Value, argument: ir.BlockArgument) -> Iterator[Access]:
    for use in buffer.uses:
        op = use.owner.operation
        if op.name in _VIEWS and use.operand_number == 0:
            yield from _of_buffer(op.results[0], argument)
        elif isinstance(buffer.type, ir.MemRefType):
            is_write = _WRITES.get(op.name) == use.operand_number
            is_read = _READS.get(op.name) == use.operand_number or op.name == "vector.gather"
            found = _extent_of(op, use.operand_number) if op.name in _WRITES | _READS else None
            run, loops = found or (None, ())
            number, extent = argument.arg_number, math.prod(ir.MemRefType(argument.type).shape)
            if is_write or not is_read:
                yield Access(number, True, run, op, loops, extent)
            if is_read or not is_write:
                yield Access(number, False, run, op, loops, extent)


def _extent_of(op: ir.Operation, position: int) -> tuple[Run, tuple[tuple[ir.Operation, int], ...]] | None:
    """The elements that a read or write touches, and the loops that move it."""
    buffer = op.operands[position]
    type_ = ir.MemRefType(buffer.type)
    strides = static_strides(type_)
    address = _start_of(buffer)
    if address is None or strides is None:
        return None
    is_copy = op.name == "memref.copy"
    values = [] if is_copy else list(op.operands)[position + 1 :][: type_.rank]
    for value, stride in zip(values, strides, strict=not is_copy):
        index = _linear(value)
        if index is None:
            return None
        address = _sum(address, _times(index, stride))
    dims = list(zip(strides, type_.shape, strict=True)) if is_copy else _vector_dims(op, strides)
    loops: list[tuple[ir.Operation, int]] = []
    start = address.constant
    for variable, factor in address.factors.items():
        loop = loop_of(variable)
        found = bounds(loop) if loop else None
        if loop is None or found is None:
            return None
        first, step, count = found
        start += factor * first
        dims.append((factor * step, count))
        if factor:
            loops.append((loop, factor * step))
    if any(stride < 0 or extent < 1 for stride, extent in dims):
        return None
    return Run(start, tuple(dim for dim in dims if dim[1] > 1)), tuple(loops)


def _vector_dims(op: ir.Operation, strides: Sequence[int]) -> list[tuple[int, int]]:
    types = [value.type for value in (*op.results, *op.operands)]
    vectors = [ir.VectorType(type_) for type_ in types if isinstance(type_, ir.VectorType)]
    if not vectors:
        return []
    extents = list(vectors[0].shape)
    if "permutation_map" not in op.attributes:
        return list(zip(strides[len(strides) - len(extents) :], extents, strict=True))
    pairs = zip(loops_of(op.attributes["permutation_map"]), extents, strict=True)
    # A constant result is a broadcast: it reads one element.
    return [(strides[dimension], extent) for dimension, extent in pairs if dimension is not None]


@dataclass(frozen=True)
class _Linear:
    """A constant plus multiples of loops' indices."""

    constant: int
    factors: dict[ir.Value, int]


def _start_of(buffer: ir.Value) -> _Linear | None:
    """Offset of a view's first element in the kernel's buffer."""
    owner = buffer.owner
    if isinstance(owner, ir.Block):
        return _Linear(0, {})
    if owner.name == "memref.cast":
        return _start_of(owner.operands[0])
    if owner.name == "memref.view":
        # Its elements are others than those of the buffer.
        return None
    offset = ir.DenseI64ArrayAttr(owner.attributes["static_offsets"])[0]
    if offset != _DYNAMIC:
        return _Linear(offset, {})
    return _linear(owner.operands[1])


def _linear(value: ir.Value) -> _Linear | None:
    """`value` as a sum of multiples of the indices of loops; None where it is something else."""
    owner = value.owner
    if isinstance(owner, ir.Block):
        return _Linear(0, {value: 1}) if loop_of(value) else None
    number = constant(value)
    if number is not None:
        return _Linear(number, {})
    if owner.name not in ("arith.addi", "arith.muli"):
        return None
    lhs, rhs = (_linear(operand) for operand in owner.operands)
    if lhs is None or rhs is None:
        return None
    if owner.name == "arith.addi":
        return _sum(lhs, rhs)
    if rhs.factors:
        lhs, rhs = rhs, lhs
    return None if rhs.factors else _times(lhs, rhs.constant)


def _sum(lhs: _Linear, rhs: _Linear) -> _Linear:
    factors = {key: lhs.factors.get(key, 0) + rhs.factors.get(key, 0) for key in (*lhs.factors, *rhs.factors)}
    return _Linear(lhs.constant + rhs.constant, factors)


def _times(value: _Linear, factor: int) -> _Linear:
    return _Linear(value.constant * factor, {key: old * factor for key, old in value.factors.items()})


def _blocks(dims: tuple[tuple[int, int], ...]) -> tuple[int, list[tuple[int, int]]]:
    """Length of the stretches that lie side by side, and the dimensions that repeat them."""
    length = 1
    outer: list[tuple[int, int]] = []
    for stride, extent in sorted(dims):
        if stride <= length:
            length += stride * (extent - 1)
        else:
            outer.append((stride, extent))
    return length, outer
