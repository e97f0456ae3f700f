"""Row fusion: one kernel computes several ops, one block of rows after the other, so that intermediates stay in cache.

A softmax or a normalization of rows is a reduction, element-wise ops of its result and its input, and so on.  Computed
tensor by tensor, each intermediate goes through memory; computed block by block of rows, it stays in L1.  Each op uses
the same kernel code as without fusion, so results have the same bits.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from enum import Enum, auto
from math import inf, prod
from typing import Any

from qdialect import dialect as qnn
from qdialect.dialect.constants import CONSTANT_OPS, constant_value
from qdialect.dialect.op_base import QnnOp
from qdialect.dialect.type_constraints import shape_of
from qdialect.ir._mlir import ir
from qdialect.lowering.ir.functions import only_user, owner_of
from qdialect.lowering.qnn_to_linalg.bodies.scalar_ops import SCALAR_OPS
from qdialect.lowering.qnn_to_linalg.program.operands import picked_matrices, source_of
from qdialect.passes.pattern import produced_by

_REDUCTIONS = tuple(op_class.OPERATION_NAME for op_class in (qnn.F32MaxOp, qnn.F32MinOp, qnn.F32ProdOp, qnn.F32SumOp))
_PRODUCTS = tuple(op_class.OPERATION_NAME for op_class in (qnn.F32MatmulOp, qnn.FusedMatMulOp, qnn.MatMulOp))
_MAX_OPS = 64
"""Ops of a fusion: a kernel of more is compiled no faster than several."""
_F32_BYTES = 4
_MIN_PRODUCTS = 2
"""Products of matrices in one fusion: the intermediate between two of them need not leave the caches."""


_APART_BYTES = 32 << 20
"""Of a matrix between two products that are apart, a third-level cache."""
_FAR_BYTES = 256 * 1024
"""Of a matrix between two products: a larger one does not fit in L2 together with the other operand."""
_READS = (qnn.BroadcastOp.OPERATION_NAME, qnn.DequantizeOp.OPERATION_NAME)
"""Ops that every kernel recomputes for itself."""


class Scope(Enum):
    """The part of a network that a function computes."""

    NETWORK = auto()
    MATRICES = auto()
    """One of several matrices, where rows of a product by the whole of another matrix may join what they meet."""
    ROWS = auto()
    """A block of rows, which is not divided further."""


@dataclass(frozen=True)
class FusedRows:
    """Ops that compute `rows` independent rows, in order; `has_rows` tells which `inputs` are divided into rows."""

    rows: int
    members: tuple[ir.Operation, ...]
    inputs: tuple[ir.Value, ...]
    has_rows: tuple[bool, ...]
    outputs: tuple[ir.Value, ...]
    first: ir.Operation
    """The member at which all are computed: after everything they read, before every reader of their results."""
    views: Views
    """Transposed inputs and outputs that are read and written as they are on the other side of the transposition."""

    @property
    def products(self) -> int:
        """How many products of matrices a row has: two in a head of an attention."""
        return sum(member.name in _PRODUCTS for member in self.members)

    @property
    def is_of_matrices(self) -> bool:
        """Whether a row is a matrix."""
        product = next((member for member in self.members if member.name in _PRODUCTS), None)
        return product is not None and leading(shape_of(product.operands[1].type)[:-2], self.rows) is not None


class RowFusion:
    """The partition of a function's ops into `FusedRows` and others."""

    def __init__(
        self,
        operations: Sequence[ir.Operation],
        is_in_rows: Callable[[ir.Value], bool],
        scope: Scope,
        is_apart: Callable[[ir.Operation], bool],
    ) -> None:
        """Inputs and outputs of a fusion must be stored row after row, which `is_in_rows` tells.

        A product that `is_apart` is faster by itself while its matrices stay in the last cache.
        """
        self._scope, self._is_apart = scope, is_apart
        self._order = {op: index for index, op in enumerate(operations)}
        self._is_in_rows = is_in_rows
        self.starting: dict[ir.Operation, FusedRows] = {}
        """By the op at which they are computed."""
        self._places: dict[ir.Operation, ir.Operation] = {}
        """By the ops that only fused kernels compute: the op in whose place that is."""
        self.viewed: set[ir.Operation] = set()
        """The transpositions that products read and write through."""
        self.read: set[ir.Value] = set()
        """The stored values that fused kernels read."""
        if scope is Scope.ROWS:
            return
        for op in operations:
            if op.name in _PRODUCTS and op not in self.computed:
                self._found(op, self._rows_of_product(op), _MIN_PRODUCTS)
        for op in operations:
            if op.name in _REDUCTIONS and op not in self.computed:
                view: Any = op.opview
                self._found(op, prod(shape_of(view.input.type)[: view.axes[0]]))

    @property
    def computed(self) -> Set[ir.Operation]:
        """The ops that only fused kernels compute."""
        return self._places.keys()

    def _found(self, seed: ir.Operation, rows: int, products: int = 0) -> None:
        """Form the fusion that grows from `seed`, if it has at least `products` products."""
        if rows == 1 or roles(seed, rows) is None:
            return
        group = self._group(rows, self._trimmed(self._grown(rows, seed)))
        if group is None or len(group.members) == 1 or group.products < products:
            return
        members = set(group.members)
        computed = {op for op in members if not self._is_repeated(op, members)}
        viewed = {view.operation for view in group.views.values()}
        computed |= viewed
        self.viewed |= viewed
        self._places |= dict.fromkeys(computed, group.first)
        self.read |= set(group.inputs)
        self.starting[group.first] = group

    def _rows_of_product(self, op: ir.Operation) -> int:
        """Number of matrices of a product; number of their rows if the matrix or its result is large; 1 if apart."""
        shape = shape_of(op.operands[0].type)
        largest = max(prod(shape), prod(shape_of(op.results[0].type)))
        if largest * _F32_BYTES <= _APART_BYTES and self._is_apart(op):
            return 1
        is_far = self._scope is Scope.MATRICES and largest * _F32_BYTES > _FAR_BYTES
        return prod(shape[:-1] if is_far else shape[:-2])

    def _grown(self, rows: int, seed: ir.Operation) -> set[ir.Operation]:
        group, left = {seed}, [seed]
        while left and len(group) < _MAX_OPS:
            last = left.pop()
            owners = [owner for owner in map(owner_of, last.operands) if owner is not None]
            for op in (*owners, *_users(last)):
                joins = op not in group and self._joins(op, rows) and _exchanges_rows(op, group, rows)
                if joins and self._first_of(group | {op}) is not None:
                    group.add(op)
                    left.append(op)
        return group

    def _joins(self, op: ir.Operation, rows: int) -> bool:
        """Whether `op` computes rows independently; so must the ops that it would recompute for itself."""
        found = roles(op, rows)
        if op in self.computed or op not in self._order or found is None:
            return False
        if op.name in _PRODUCTS and self._rows_of_product(op) != rows:
            return False
        reads = [owner for owner in map(owner_of, op.operands) if owner is not None and owner.name in _READS]
        return all(roles(read, rows) is not None for read in reads)

    def _trimmed(self, group: set[ir.Operation]) -> set[ir.Operation]:
        """`group` without the free ops at its ends: reshapes, and reads that no member uses."""
        for op in sorted(group, key=self._order.__getitem__, reverse=True):
            is_unread = not any(user in group for user in _users(op))
            is_reshape = op.name == qnn.ReshapeOp.OPERATION_NAME
            is_end = is_unread or (is_reshape and owner_of(op.operands[0]) not in group)
            if is_end and (is_reshape or op.name in _READS) and self._first_of(group - {op}) is not None:
                group = group - {op}
        return group

    def _is_repeated(self, op: ir.Operation, group: set[ir.Operation]) -> bool:
        """Whether other kernels recompute `op` for themselves."""
        return op.name in _READS and next(_readers(op, group), None) is not None

    def _outside_users(self, op: ir.Operation, group: set[ir.Operation]) -> list[ir.Operation]:
        return [] if op.name in _READS else list(_readers(op, group))

    def _first_of(self, group: set[ir.Operation]) -> ir.Operation | None:
        """The member at which the fused rows can be computed; None if there is none."""
        owners = [owner_of(value) for op in group for value in op.operands]
        last_source = max((self._index(owner) for owner in owners if owner not in group), default=-1)
        users = [user for op in group for user in self._outside_users(op, group)]
        next_user = min((self._order[user] for user in users), default=len(self._order))
        after = [op for op in group if self._order[op] > last_source and not self._is_repeated(op, group)]
        first = min(after, key=self._order.__getitem__, default=None)
        return first if first is not None and self._order[first] < next_user else None

    def _index(self, owner: ir.Operation | None) -> int:
        """The index at which the result of `owner` is available; -1 for arguments and constants."""
        return -1 if owner is None or owner.name in CONSTANT_OPS else self._order[self._places.get(owner, owner)]

    def _group(self, rows: int, group: set[ir.Operation]) -> FusedRows | None:
        members = tuple(sorted(group, key=self._order.__getitem__))
        inputs: dict[ir.Value, bool] = {}
        for op in members:
            for value, has_rows in zip(op.operands, roles(op, rows) or (), strict=True):
                if owner_of(value) not in group and inputs.setdefault(value, has_rows) != has_rows:
                    return None
        outputs = tuple(op.results[0] for op in members if self._outside_users(op, group))
        first = self._first_of(group)
        moving = [*outputs, *(value for value, has_rows in inputs.items() if has_rows)]
        if first is None or not all(self._is_in_rows(value) and _has_whole_rows(value, rows) for value in moving):
            return None
        found = FusedRows(rows, members, tuple(inputs), tuple(inputs.values()), outputs, first, {})
        if not found.is_of_matrices:
            return found
        return replace(found, views=views(rows, members, moving[len(outputs) :], outputs, self._is_in_rows))


def _exchanges_rows(op: ir.Operation, group: set[ir.Operation], rows: int) -> bool:
    """Whether neither `op` nor a member of `group` reads the other's result as a whole, of which a block is there."""
    readers = group.intersection(_users(op))
    return group.isdisjoint(_read_whole(op, rows)) and not any(op in _read_whole(one, rows) for one in readers)


def _read_whole(op: ir.Operation, rows: int) -> set[ir.Operation | None]:
    """The ops of whose results each block of the rows of `op` reads all."""
    pairs = zip(op.operands, roles(op, rows) or (), strict=False)
    return {owner_of(value) for value, has_rows in pairs if not has_rows}


def _has_whole_rows(value: ir.Value, rows: int) -> bool:
    """Whether a row has all of the last dimension, which may end with padding lanes."""
    shape = shape_of(value.type)
    return len(shape) == 1 or leading(shape, rows) != len(shape)


def _readers(op: ir.Operation, group: set[ir.Operation]) -> Iterator[ir.Operation]:
    """The ops outside of `group` that read the result of `op`, also through a member that they recompute."""
    for user in _users(op):
        if user not in group:
            yield user
        elif user.name in _READS:
            yield from _readers(user, group)


def _users(op: ir.Operation) -> list[ir.Operation]:
    return [use.owner.operation for use in op.results[0].uses]


# Ops that compute the rows of their results independently, and the part of each operand that a row reads.
#
# If the extents of a tensor's leading dimensions multiply up to a number of rows, they divide it into that number of
# rows, one after the other in memory.  A block of rows is a tensor of the same rank: the last of its leading dimensions
# is the number of its rows, the others are 1.

Shape = tuple[int, ...]
Roles = tuple[bool, ...]
"""By operand: whether a block reads only its own rows of it; else the block reads all of it."""


def leading(shape: Shape, rows: int) -> int | None:
    """How many leading dimensions divide a tensor into `rows` rows; None where none do."""
    return next((count for count in range(1, len(shape) + 1) if prod(shape[:count]) == rows), None)


def block_shape(shape: Shape, rows: int, block: int) -> Shape:
    """The shape of `block` of the `rows` rows of a tensor of `shape`."""
    count = leading(shape, rows)
    assert count is not None, "the tensor has rows"
    return (*(1,) * (count - 1), block, *shape[count:])


def roles(op: ir.Operation, rows: int) -> Roles | None:
    """The roles of the operands of `op`, if it computes `rows` independent rows; else None."""
    if len(op.results) != 1 or leading(shape_of(op.results[0].type), rows) is None:
        return None
    if op.name in SCALAR_OPS:
        return (True,) * len(op.operands)
    view = op.opview
    found = next((_ROLES[one] for one in type(view).__mro__ if one in _ROLES), None)
    return found(view, rows) if found else None


def _broadcast(op: qnn.BroadcastOp, rows: int) -> Roles | None:
    before, after = shape_of(op.input.type), shape_of(op.output.type)
    count = leading(after, rows)
    assert count is not None, "the result has rows"
    aligned = (1,) * (len(after) - len(before)) + before
    if aligned[:count] == (1,) * count:
        return (False,)
    return (True,) if aligned[:count] == after[:count] else None


def _along(axis: float, input_: ir.Value, rows: int) -> Roles | None:
    """Of an op with one input whose elements are alike but for where they are along `axis` and behind it."""
    count = leading(shape_of(input_.type), rows)
    return (True,) if count is not None and axis >= count else None


def _quantization(op: qnn.QuantizeOp | qnn.DequantizeOp, rows: int) -> Roles | None:
    return _along(inf if len(op.scales) == len(op.zero_points) == 1 else op.axis, op.input, rows)


def _product(op: qnn.F32MatmulOp | qnn.MatMulOp | qnn.FusedMatMulOp, rows: int) -> Roles | None:
    """Products of `rows` pairs of matrices; parameters per column have no rows."""
    if any(source_of(value) for value in op.operation.operands):
        # Operands read through a transposition are walked as a whole, in another order.
        return None
    operands = [shape_of(value.type) for value in op.operation.operands]
    counts = [leading(shape[:-2], rows) for shape in operands]
    if counts[0] is None or counts[1] is None or operands[0][: counts[0]] != operands[1][: counts[1]]:
        return None
    return tuple(count is not None for count in counts)


def _f32_product(op: qnn.F32MatmulOp, rows: int) -> Roles | None:
    """Also rows of one matrix, each by the whole of the other."""
    if picked_matrices(op.matrix):
        return None
    data, matrix = shape_of(op.data.type), shape_of(op.matrix.type)
    if op.bias is not None:
        return None
    if leading(data, rows) == len(data) - 1 and prod(matrix[:-2]) == 1:
        return True, False
    return _product(op, rows)


_ROLES: Mapping[type[QnnOp], Callable[[Any, int], Roles | None]] = {
    qnn.BroadcastOp: _broadcast,
    qnn.DequantizeOp: _quantization,
    qnn.F32MatmulOp: _f32_product,
    qnn.F32ReduceOp: lambda op, rows: _along(op.axes[0], op.input, rows),
    qnn.FusedMatMulOp: _product,
    qnn.MatMulOp: _product,
    qnn.QuantizeOp: _quantization,
    qnn.ReshapeOp: lambda op, rows: _along(inf, op.input, rows),
    qnn.SoftmaxOp: lambda op, rows: _along(op.axis, op.input, rows),
}


# Transpositions around fused rows that their products read and write through.
#
# The heads of an attention lie side by side in the rows of the matrices before and after it.  A head is a matrix of
# some columns of each row, so that a product of heads can read and write it in place:
#
#     x[row, head, column]     the row of a head begins `heads * columns` elements after its previous row

Views = Mapping[ir.Value, qnn.TransposeOp]
"""By input or output: the transposition that produces it, or that reads it."""
_PRODUCT = qnn.F32MatmulOp.OPERATION_NAME


def views(
    rows: int,
    members: Collection[ir.Operation],
    inputs: Sequence[ir.Value],
    outputs: Sequence[ir.Value],
    is_in_rows: Callable[[ir.Value], bool],
) -> Views:
    """The transpositions that the `members`, which compute `rows` matrices, read and write through."""
    read = {value: produced_by(value, qnn.TransposeOp) for value in inputs}
    found = {value: op for value, op in read.items() if op is not None and _is_read_through(op, members, is_in_rows)}
    written = {value: only_user(value) for value in outputs if produced_by(value, qnn.F32MatmulOp)}
    found |= {v: op for v, op in written.items() if isinstance(op, qnn.TransposeOp) and is_in_rows(op.output)}
    return {value: op for value, op in found.items() if _keeps_columns(op, value, rows)}


def steps(op: qnn.TransposeOp, value: ir.Value, own: Sequence[int]) -> list[int]:
    """Elements between neighbours along each dimension of `value`, where the other side of `op` has strides `own`."""
    if value == op.output:
        return [own[axis] for axis in op.permutation]
    found = dict(zip(op.permutation, own, strict=True))
    return [found[axis] for axis in range(len(own))]


def _is_read_through(
    op: qnn.TransposeOp, members: Collection[ir.Operation], is_in_rows: Callable[[ir.Value], bool]
) -> bool:
    """Whether only products of the group read the result, and the input is stored row after row."""
    is_stored = constant_value(op.input) is None and is_in_rows(op.input)
    return is_stored and all(use.owner in members and use.owner.name == _PRODUCT for use in op.output.uses)


def _keeps_columns(op: qnn.TransposeOp, value: ir.Value, rows: int) -> bool:
    """Whether columns stay side by side, and one dimension counts the matrices."""
    shape = shape_of(value.type)
    return op.permutation[-1] == len(shape) - 1 and [extent for extent in shape[:-2] if extent > 1] == [rows]
