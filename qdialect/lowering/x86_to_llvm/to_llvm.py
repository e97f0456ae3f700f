"""x86 -> llvm: upstream's conversions to the LLVM dialect, and patterns that they lack."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from math import prod
from operator import mul
from typing import ClassVar

import numpy as np

from qdialect import targets
from qdialect.ir._mlir import (
    arith,
    ir,
    loop_transform,
    memref,
    memref_transform,
    rewrite,
    structured_transform,
    transform,
    vector_transform,
)
from qdialect.lowering.ir import building as b
from qdialect.lowering.ir import phase_pass
from qdialect.lowering.ir.flat_address import FlatAddress, flat_address, transfer_problem
from qdialect.lowering.ir.functions import MAIN, constant, function_of, kind_of, name_of, ops_named
from qdialect.lowering.ir.lowered import CONSTANTS, Phase, read, target_name_of
from qdialect.lowering.ir.phase_pass import PhasePass
from qdialect.lowering.ir.views import static_strides
from qdialect.lowering.x86_to_llvm.openmp import add_entry, outline
from qdialect.passes.registry import register
from qdialect.support.large_constants import ROW, table_of
from qdialect.support.late_imports import UNINTERRUPTED
from qdialect.targets import Target

# x86 -> llvm: the rest of the way with upstream's conversions.

_TO_LLVM = "convert-to-llvm{filter-dialects=arith,cf,index,math,memref,ub,vector}"
# Function by function: the ops of one stay in the cache from pass to pass, and functions are apart for several threads.
_CONTROL_FLOW = ("convert-scf-to-cf", "lower-affine")
_OF_FUNCTIONS = (
    # In one pass: each looks at every op there is.
    _TO_LLVM,
    # Erases dead ops, half of all, before the next function is converted: they would lie in memory together.
    "canonicalize{max-iterations=1 region-simplify=disabled}",
    "cse",
)
_OF_LLVM_FUNCTIONS = (
    "reconcile-unrealized-casts",
    # A third look at every op finds nothing, and blocks are as they should be.
    "canonicalize{max-iterations=2 region-simplify=disabled}",
    "cse",
)
_GLOBAL = "memref.global"
# Only `convert-vector-to-llvm` converts these; `convert-to-llvm` converts the other vector ops.
_OF_VECTOR_PASS = (
    *("vector.insert_strided_slice", "vector.extract_strided_slice", "vector.fma", "vector.outerproduct"),
    *("vector.contract", "vector.mask", "vector.transpose", "vector.interleave", "vector.deinterleave", "vector.scan"),
)
_OF_ONE_DIMENSION = ("vector.bitcast", "vector.gather", "vector.maskedload", "vector.expandload", "vector.step")
_INNER_REDUCTION = 1
_MULTI_REDUCTIONS = (
    vector_transform.ApplyReorderMultiReductionPatternsOp,
    vector_transform.ApplyMultiReductionFlatteningPatternsOp,
    vector_transform.ApplyMultiReductionUnrollingPatternsOp,
)


def to_llvm(module: ir.Module) -> None:
    """Lower everything that is left to the LLVM dialect, in place.

    Raises `CompileError` for a module without a function `main`, and for what upstream's conversions refuse.
    """
    phase_pass.load_kernel_dialects(module)
    _find_large_constants(module)
    pool = outline(module)
    unroll_loops(module, "qnn-to-llvm")
    with module.context, ir.Location.unknown():
        for function in dict.fromkeys(map(function_of, unroll_transfers(module))):
            phase_pass.apply_schedule(function, _transfers, "qnn-to-llvm")
        with phase_pass.grouped(module) as group:
            phase_pass.apply_schedule(group, _expansion, "qnn-to-llvm")
        shuffle_slices(module)
        drop_neutral_starts(module)
        _declare_allocation(module)
        phase_pass.run_passes(module, f"builtin.module({','.join(_passes(module))})", "qnn-to-llvm")
        _keep_kernels_apart(module)
        # Move each float product to the sum that it is added to, so that it needs no register before.
        for product in ops_named(module, "llvm.fmul"):
            users = [use.owner.operation for use in product.results[0].uses]
            if len(users) == 1 and users[0].name == "llvm.fadd" and users[0].block == product.block:
                product.move_before(users[0])
    if pool:
        add_entry(module, pool)


def _find_large_constants(module: ir.Module) -> None:
    """Views of large constants in `main` get their offsets from the table."""
    if CONSTANTS not in module.operation.attributes:
        return
    found = read(module)
    rows = table_of(found.constants)
    if not len(rows):
        return
    offsets, start = rows["offset"].tolist(), found.constants.size - (len(rows) + 1) * ROW.itemsize
    main = next(op for op in module.body.operations if name_of(op.operation) == MAIN)
    block = main.regions[0].blocks[0].arguments[len(found.inputs) + len(found.outputs) + found.clocked]
    i64 = ir.IntegerType.get_signless(64, module.context)
    for view in ops_named(module, "memref.view"):
        wanted = constant(view.operands[1]) if view.operands[0] == block else None
        index = -1 if wanted is None else bisect_right(offsets, wanted) - 1
        if wanted is None or index < 0 or wanted >= offsets[index] + int(rows[index]["size"]):
            continue
        with ir.InsertionPoint(view), view.location:
            at, *known = (
                arith.constant(ir.IndexType.get(), number)
                for number in (start + index * ROW.itemsize, 0, wanted - offsets[index])
            )
            row = ir.Operation.create("memref.view", [ir.MemRefType.get([1], i64)], [block, at]).result
            first = arith.index_cast(ir.IndexType.get(), memref.load(row, known[:1]))
            view.operands[1] = arith.addi(first, known[1])


def _transfers(function: ir.Value) -> None:
    """Write that transfers of several dimensions become transfers of their rows.

    Not in a group: from the last op to the first, upstream's pattern inserts rows before there is what they belong to.
    """
    phase_pass.apply_patterns(function, partial(vector_transform.ApplyTransferToScfPatternsOp, full_unroll=True))


def _expansion(module: ir.Value) -> None:
    """Write that ops of many vectors and views become ops of one vector and index arithmetic."""
    # All at once, and once for all functions: each application looks at every op, and gathers its patterns anew.
    phase_pass.apply_patterns(
        module,
        # A reduction of float numbers stays one chain, in their order.
        *(partial(pattern, lowering_strategy=_INNER_REDUCTION) for pattern in _MULTI_REDUCTIONS),
        memref_transform.ApplyExpandStridedMetadataPatternsOp,
        vector_transform.ApplyLowerBitCastPatternsOp,
        vector_transform.ApplyLowerBroadcastPatternsOp,
        partial(vector_transform.ApplyLowerContractionPatternsOp, lowering_strategy=0),
        vector_transform.ApplyLowerMasksPatternsOp,
        vector_transform.ApplyLowerShapeCastPatternsOp,
        vector_transform.ApplyLowerInterleavePatternsOp,
        vector_transform.ApplyLowerTransposePatternsOp,
        partial(vector_transform.ApplyLowerTransferPatternsOp, max_transfer_rank=1),
        vector_transform.ApplyMaterializeMasksPatternsOp,
        partial(vector_transform.ApplyLowerStepPatternsOp, index_bitwidth=64),
        vector_transform.ApplyUnrollFromElementsPatternsOp,
        vector_transform.ApplyUnrollToElementsPatternsOp,
    )


def _passes(module: ir.Module) -> list[str]:
    has_globals = any(op.operation.name == _GLOBAL for op in module.body.operations)
    # The pass walks every op once more, and most kernels have no op for it.
    is_needed = ops_named(module, *_OF_VECTOR_PASS) or any(map(_is_nested, ops_named(module, *_OF_ONE_DIMENSION)))
    of_vectors = ["convert-vector-to-llvm"] if is_needed else []
    return [
        f"func.func({','.join((*_CONTROL_FLOW, *of_vectors, *_OF_FUNCTIONS))})",
        # Constants that belong to the module: it looks into every function for them.
        *([_TO_LLVM] if has_globals else []),
        "convert-func-to-llvm{use-bare-ptr-memref-call-conv}",
        f"llvm.func({','.join(_OF_LLVM_FUNCTIONS)})",
    ]


def _declare_allocation(module: ir.Module) -> None:
    """Declare what memory is allocated with, where it is: functions are converted side by side, and none may add it."""
    if not ops_named(module, "memref.alloc", "memref.dealloc"):
        return
    known = {ir.StringAttr(op.attributes["sym_name"]).value for op in module.body.operations}
    for name, type_ in (("malloc", "(i64) -> !llvm.ptr"), ("free", "(!llvm.ptr)")):
        if name not in known:
            ir.InsertionPoint.at_block_begin(module.body).insert(ir.Operation.parse(f"llvm.func @{name}{type_}"))


def _is_nested(op: ir.Operation) -> bool:
    """Whether the result of `op` has several dimensions."""
    type_ = op.results[0].type
    return isinstance(type_, ir.VectorType) and type_.rank > 1


def _keep_kernels_apart(module: ir.Module) -> None:
    """Make each kernel internal and never inlined.

    For each public function the execution engine compiles a wrapper. For an argument attribute that LLVM does not know
    it prints a warning with the whole text of the function.
    """
    linkage = ir.Attribute.parse("#llvm.linkage<internal>")
    for op in module.body.operations:
        is_kernel = op.operation.name == "llvm.func" and len(op.regions[0].blocks)
        if is_kernel and "sym_visibility" in op.attributes:
            op.attributes["no_inline"] = ir.UnitAttr.get()
            op.attributes["linkage"] = linkage
            if "arg_attrs" in op.attributes:
                del op.attributes["arg_attrs"]


# `qnn-to-llvm`: the rest of the way, to the LLVM dialect alone.


@register
@dataclass(frozen=True)
class ToLlvmPass(PhasePass):
    """Convert all remaining ops to the LLVM dialect; functions take bare pointers, as functions in C do."""

    name: ClassVar[str] = "qnn-to-llvm"
    starts: ClassVar[tuple[Phase, ...]] = (Phase.X86,)
    end: ClassVar[Phase] = Phase.LLVM

    def lower(self, module: ir.Module) -> None:
        phase_pass.check_products(module)
        to_llvm(module)
        phase_pass.check_llvm(module)


# Reads and writes of vectors of several dimensions -> loads and stores of their rows.
#
# Upstream's pattern does the same. It needs a driver that looks at all ops several times, and leaves each row its own
# address, of all indices and strides. Here a row is a constant distance away from the first one.

READ, WRITE = "vector.transfer_read", "vector.transfer_write"
_EXTRACT = "vector.extract"

_Row = tuple[tuple[int, ...], int]


def unroll_transfers(module: ir.Module) -> list[ir.Operation]:
    """Replace transfers of several dimensions, in place; those that are left, which are not of contiguous rows.

    A transfer of one such row stays, and is not among them.
    """
    left: list[ir.Operation] = []
    pointers: dict[ir.Value, ir.Value] = {}
    for op in ops_named(module, READ, WRITE):
        vector = ir.VectorType((op.results[0] if op.name == READ else op.operands[0]).type)
        buffer = op.operands[0 if op.name == READ else 1]
        if vector.rank == 0 or not _has_rows(op, buffer):
            left.append(op)
            continue
        if vector.rank == 1:
            continue
        with ir.InsertionPoint(op), op.location:
            if op.name == READ:
                _read(op, vector, flat_address(buffer, list(op.operands)[1:-1], pointers))
            else:
                address = flat_address(buffer, list(op.operands)[2:], pointers)
                for position, distance in _rows(op.operands[1], vector):
                    address.further(distance).store(b.extract(op.operands[0], position))
        op.erase()
    return left


def _has_rows(op: ir.Operation, buffer: ir.Value) -> bool:
    """Whether the rows are all there, each side by side in memory."""
    if not isinstance(buffer.type, ir.MemRefType) or buffer.type.memory_space is not None:
        return False
    element = buffer.type.element_type
    if not isinstance(element, ir.IntegerType | ir.FloatType) or element.width % 8:
        return False
    strides = static_strides(buffer.type)
    if strides is None or strides[-1] != 1 or min(strides) < 0:
        return False
    return transfer_problem(op, buffer) is None


def _rows(buffer: ir.Value, vector: ir.VectorType) -> Sequence[_Row]:
    strides = static_strides(ir.MemRefType(buffer.type)) or ()
    return _placed(tuple(vector.shape)[:-1], strides[-vector.rank : -1])


@cache
def _placed(extents: tuple[int, ...], strides: tuple[int, ...]) -> Sequence[_Row]:
    """The position of each row in a vector, and how far it is from the first one."""
    return [(position, sum(map(mul, position, strides))) for position in np.ndindex(extents)]


def _read(op: ir.Operation, vector: ir.VectorType, address: FlatAddress) -> None:
    lanes, read = vector.shape[-1], op.results[0]
    rows = {position: address.further(distance).load(lanes) for position, distance in _rows(op.operands[0], vector)}
    for user in {use.owner.operation for use in read.uses}:
        is_extract = user.name == _EXTRACT
        row = rows.get(tuple(ir.DenseI64ArrayAttr(user.attributes["static_position"]))) if is_extract else None
        if row is not None:
            user.results[0].replace_all_uses_with(row)
            user.erase()
    if any(True for _ in read.uses):
        whole = b.emit("ub.poison", vector)
        for position, row in rows.items():
            whole = b.insert(row, whole, position)
        read.replace_all_uses_with(whole)


# Slices of vectors -> shuffles: upstream's conversion to the LLVM dialect has no pattern for them.
#
# A slice of n elements is put into a vector of m from element s on by two shuffles: the first makes the slice as long
# as the vector, the second takes element i - s of it for s <= i < s + n, and element i of the vector elsewhere.

_INSERT_SLICE, _EXTRACT_SLICE = "vector.insert_strided_slice", "vector.extract_strided_slice"


def shuffle_slices(module: ir.Module) -> None:
    """Replace slices of vectors of one dimension, in place."""
    patterns = rewrite.RewritePatternSet(module.context)
    patterns.add(_INSERT_SLICE, _insert)
    patterns.add(_EXTRACT_SLICE, _extract)
    rewrite.walk_and_apply_patterns(module.operation, patterns.freeze())


def _insert(op: ir.OpView, rewriter: rewrite.PatternRewriter) -> bool:
    """Replace one op; truthy where it is left alone, as the bindings want it."""
    source, target = op.operation.operands
    start = _start(op, source, target)
    if start is None:
        return True
    count, whole = (ir.VectorType(value.type).shape[0] for value in (source, target))
    with rewriter.ip, op.location:
        longer = _shuffle(source, source, [i if i < count else 0 for i in range(whole)])
        order = [i - start if start <= i < start + count else whole + i for i in range(whole)]
        rewriter.replace_op(op, [_shuffle(longer, target, order)])
    return False


def _extract(op: ir.OpView, rewriter: rewrite.PatternRewriter) -> bool:
    """The same for a slice that is taken."""
    source, result = op.operation.operands[0], op.operation.results[0]
    start = _start(op, source, result)
    if start is None:
        return True
    with rewriter.ip, op.location:
        rewriter.replace_op(op, [_shuffle(source, source, range(start, start + ir.VectorType(result.type).shape[0]))])
    return False


def _start(op: ir.OpView, *vectors: ir.Value) -> int | None:
    """The first element of the slice; None where it is of several dimensions, or of elements apart."""
    if any(ir.VectorType(vector.type).rank != 1 for vector in vectors):
        return None
    offsets, strides = (ir.ArrayAttr(op.attributes[name]) for name in ("offsets", "strides"))
    return ir.IntegerAttr(offsets[0]).value if ir.IntegerAttr(strides[0]).value == 1 else None


def _shuffle(left: ir.Value, right: ir.Value, order: Sequence[int]) -> ir.Value:
    result = ir.VectorType.get([len(order)], ir.VectorType(left.type).element_type)
    attributes = {"mask": ir.DenseI64ArrayAttr.get(list(order))}
    return ir.Operation.create("vector.shuffle", [result], [left, right], attributes).result


# Reductions of integers that start from what changes nothing -> reductions without a start.
#
# Upstream converts a start to a scalar operation of its own, which for a minimum is a comparison and a jump.

_REDUCTION = "vector.reduction"
_NEUTRAL: Mapping[str, int] = {"add": 0, "or": 0, "xor": 0, "maxui": 0, "and": -1, "minui": -1}
"""By the kind of reduction, as signed numbers of any width."""


def drop_neutral_starts(module: ir.Module) -> None:
    """Rewrite such reductions, in place."""
    patterns = rewrite.RewritePatternSet(module.context)
    patterns.add(_REDUCTION, _drop)
    with UNINTERRUPTED:
        rewrite.walk_and_apply_patterns(module.operation, patterns.freeze())


def _drop(op: ir.OpView, rewriter: rewrite.PatternRewriter) -> bool:
    """Replace one op; truthy where it is left alone, as the bindings want it."""
    operation = op.operation
    neutral = _NEUTRAL.get(kind_of(operation))
    if len(operation.operands) == 1 or neutral is None or constant(operation.operands[1]) != neutral:
        return True
    with rewriter.ip, operation.location:
        attributes = {"kind": operation.attributes["kind"]}
        results = [result.type for result in operation.results]
        rewriter.replace_op(op, [ir.Operation.create(_REDUCTION, results, [operation.operands[0]], attributes).result])
    return False


# Short innermost loops are unrolled, so that counting and branching cost little compared with their bodies.
#
# LLVM's own unrolling is part of optimizations that take as long as generating code, and find nothing else to do in
# loops that are vector code already.

_LOOP, _MULTIPLY_ADD = "scf.for", "math.fma"
_FACTOR = "qnn.unroll"
# Ops of an unrolled body, and the copies that it has at most.
_MAX_OPS = 32
_MAX_COPIES = 16


def unroll_loops(module: ir.Module, name: str) -> None:
    """Unroll the innermost loops of few ops, in place, for the pass `name`.

    A loop of T iterations with B ops in its body becomes one with F copies of the body, where F is the largest divisor
    of T with F * B <= 32 and F <= 16: no iteration is left over.
    """
    phase_pass.load_kernel_dialects(module)
    with module.context, ir.Location.unknown():
        factors: set[int] = set()
        for loop in ops_named(module, _LOOP):
            factor = _factor(loop) if _is_short(loop) else 1
            if factor > 1:
                loop.attributes[_FACTOR] = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), factor)
                factors.add(factor)
        if factors:
            phase_pass.apply_schedule(module.operation, lambda target: _unroll(target, sorted(factors)), name)


def _is_short(loop: ir.Operation) -> bool:
    """Whether the body is so short that two copies may be written, and has no op with a region."""
    ops = loop.regions[0].blocks[0].operations
    return 2 * _size(loop) <= _MAX_OPS and not any(len(op.operation.regions) for op in ops)


def _size(loop: ir.Operation) -> int:
    """Ops of the body, a fused multiply-add of several vectors once for each."""
    ops = [op.operation for op in loop.regions[0].blocks[0].operations]
    sums = [op.results[0].type for op in ops if op.name == _MULTIPLY_ADD]
    return len(ops) + sum(prod(one.shape[:-1]) - 1 for one in sums if isinstance(one, ir.VectorType))


def _factor(loop: ir.Operation) -> int:
    """How often the body is to be written."""
    first, last, step = (constant(operand) for operand in list(loop.operands)[:3])
    if first is None or last is None or step is None:
        return 1
    trips = -(-(last - first) // step)
    most = min(_MAX_COPIES, _MAX_OPS // _size(loop))
    return next((factor for factor in range(most, 1, -1) if trips % factor == 0), 1) if trips > 0 else 1


def _unroll(module: ir.Value, factors: Iterable[int]) -> None:
    """Write that each tagged loop is unrolled by its factor."""
    for factor in factors:
        tag = ir.DictAttr.get({_FACTOR: ir.IntegerAttr.get(ir.IntegerType.get_signless(64), factor)})
        # The name is compared first: all attributes of an op are collected to look for one.
        loops = structured_transform.MatchOp(transform.AnyOpType.get(), module, ops=[_LOOP], op_attrs=tag).result
        loop_transform.LoopUnrollOp(loops, factor=factor)


# How a module of the LLVM dialect is compiled: for which CPU, as attributes of its functions, and how thoroughly.

_FUNCTION = "llvm.func"
_ALL, _NOTHING = 3, 0


def name_target(module: ir.Module, target: Target) -> None:
    """Set the CPU and features of each function."""
    with module.context:
        # Without any, this machine's would be taken.
        names = [f"+{name}" for name in sorted(target.code_features)] or ["+sse2"]
        attribute = ir.Attribute.parse(f"#llvm.target_features<{names}>".replace("'", '"'))
        for op in module.body.operations:
            if op.operation.name == _FUNCTION:
                # A CPU's name would stand for features that others of its kind lack; it is what code is timed for.
                op.operation.attributes["target_cpu"] = ir.StringAttr.get("x86-64")
                op.operation.attributes["tune_cpu"] = ir.StringAttr.get(target.cpu)
                op.operation.attributes["target_features"] = attribute


def keep_to_target(module: ir.Module, target: Target) -> None:
    """Let code for this machine use no instruction that `target` lacks.

    Vector code that asks for no instruction may use all that there are.
    """
    if not target.is_generic and not target.is_portable and target.kind != targets.host().kind:
        name_target(module, target)


def optimization_level(module: ir.Module) -> int:
    """The level of LLVM's optimizations of its own language, before it selects instructions.

    Code of the target's instructions leaves them nothing to find, and they take as long as all that comes after. Plain
    vector ops, for targets without instructions, and modules that were not lowered here get all of them. Instructions
    are selected, scheduled and given registers alike at each level.
    """
    return _NOTHING if is_left_as_it_is(module) else _ALL


def is_left_as_it_is(module: ir.Module) -> bool:
    """Whether LLVM selects instructions for a module, from phase `linalg` on, without optimizing it before."""
    name = target_name_of(module)
    target = targets.resolve(name) if name else targets.GENERIC
    return not target.is_generic and not target.is_portable
