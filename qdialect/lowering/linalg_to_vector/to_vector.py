"""`qnn-to-vector`: kernels of linalg become loops over vectors."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import prod
from typing import ClassVar

from qdialect.dialect.type_constraints import shape_of
from qdialect.ir._mlir import arith, ir, loop_transform, math, structured_transform, tensor_transform, transform, vector
from qdialect.lowering.ir import phase_pass
from qdialect.lowering.ir.building import spread
from qdialect.lowering.ir.functions import contraction_of, error_at, functions, has_body, name_of, op_error, ops_named
from qdialect.lowering.ir.lowered import Phase
from qdialect.lowering.ir.phase_pass import PhasePass
from qdialect.passes.registry import register


@register
@dataclass(frozen=True)
class ToVectorPass(PhasePass):
    """Tile, fuse and vectorize every kernel by the transform dialect, by the tile sizes in its ops' attributes."""

    name: ClassVar[str] = "qnn-to-vector"
    starts: ClassVar[tuple[Phase, ...]] = (Phase.LINALG,)
    end: ClassVar[Phase] = Phase.VECTOR

    def lower(self, module: ir.Module) -> None:
        to_vector(module)
        phase_pass.check_vector(module)


# linalg -> vector: tile, fuse and vectorize every micro-kernel by the transform dialect.
#
# A micro-kernel is a root generic (the epilogue: it writes the destination) and the producers it reads.  The schedule
# tiles the root by its tile sizes, pulls each producer into the innermost loop, tiles the producers' reduction loops,
# vectorizes the result, and hoists accumulators out of the reduction loops into loop-carried vectors.  Tile sizes
# are attributes of the ops (`qnn.tiles`), which this lowering step only reads.

# Region simplification never applies here and costs more than the patterns.
_NO_REGIONS = "{region-simplify=disabled}"
_CANONICALIZE = f"func.func(canonicalize{_NO_REGIONS})"
_BUFFERIZE = f"builtin.module({_CANONICALIZE},one-shot-bufferize,canonicalize{_NO_REGIONS},cse,{_CANONICALIZE})"
_PASS = "qnn-to-vector"
_ROOT = "root"
# Bytes of a copy that is written as one vector; longer copies were tiled.
_WIDEST_COPY = 1024


@dataclass(frozen=True)
class _Tagged:
    """A linalg op of a micro-kernel, as its tag describes it."""

    op: ir.Operation
    micro_kernel: int
    role: str
    tiles: tuple[int, ...]


def to_vector(module: ir.Module) -> None:
    """Replace every micro-kernel of `module` by loops over vectors on buffers, in place.

    Raises `CompileError` for an op whose tag is not that of a micro-kernel, and where a schedule does not apply.
    """
    phase_pass.load_kernel_dialects(module)
    propagate_call_constants(module)
    with module.context, ir.Location.unknown():
        for function in functions(module):
            micro_kernels = _micro_kernels(function)
            if micro_kernels:
                phase_pass.apply_schedule(
                    function, lambda target, micro_kernels=micro_kernels: _tiling(target, micro_kernels), _PASS
                )
        vectorize_f32_products(module)
        with phase_pass.grouped(module) as group:
            # No canonicalization yet: it would turn a generic that copies into a buffer copy, which nothing vectorizes.
            fold = tensor_transform.ApplyFoldTensorEmptyPatternsOp
            phase_pass.apply_schedule(group, lambda target: phase_pass.apply_patterns(target, fold), _PASS)
        phase_pass.apply_schedule(module.operation, _vectorization, _PASS)
        phase_pass.run_passes(module, _BUFFERIZE, _PASS)
        _vectorize_copies(module)


def _micro_kernels(function: ir.Operation) -> list[list[_Tagged]]:
    """The tagged ops of each micro-kernel, in program order; each has a root."""
    micro_kernels: dict[int, list[_Tagged]] = {}
    for op in _walk(function):
        if "qnn.micro_kernel" in op.attributes:
            tagged = _read_tag(op)
            micro_kernels.setdefault(tagged.micro_kernel, []).append(tagged)
    for number, micro_kernel in micro_kernels.items():
        if all(one.role != _ROOT for one in micro_kernel):
            roles = ", ".join(one.role for one in micro_kernel)
            raise error_at(micro_kernel[0].op.location, f"micro-kernel {number} must have a root, but has only {roles}")
    return list(micro_kernels.values())


def _walk(op: ir.Operation) -> Iterator[ir.Operation]:
    """The ops inside `op`, down to the loops of its kernel."""
    for region in op.regions:
        for block in region.blocks:
            for child in block.operations:
                yield child.operation
                if child.operation.name == "scf.for":
                    yield from _walk(child.operation)


def _read_tag(op: ir.Operation) -> _Tagged:
    """The tag of `op`; raises `CompileError` if one of its attributes is invalid."""
    micro_kernel, role, tiles = (op.attributes.get(name) for name in ("qnn.micro_kernel", "qnn.role", "qnn.tiles"))
    if not isinstance(micro_kernel, ir.IntegerAttr):
        raise op_error(op, f"qnn.micro_kernel must be an integer, but got {micro_kernel}")
    if not isinstance(role, ir.StringAttr):
        raise op_error(op, f"qnn.role must be a string, but got {role or 'nothing'}")
    if tiles is not None and not isinstance(tiles, ir.DenseI64ArrayAttr):
        raise op_error(op, f"qnn.tiles must be an array of i64, but got {tiles}")
    sizes = tuple(tiles or ())
    loops = len(ir.ArrayAttr(op.attributes["iterator_types"])) if "iterator_types" in op.attributes else 0
    if min(sizes, default=0) < 0:
        raise op_error(op, f"qnn.tiles must not be negative, but got {list(sizes)}")
    if len(sizes) > loops:
        raise op_error(op, f"qnn.tiles must have at most {loops} entries, one for each loop, but got {len(sizes)}")
    if role.value == _ROOT and not any(sizes):
        raise op_error(op, "qnn.tiles of a root must have a tile size above 0")
    return _Tagged(op, micro_kernel.value, role.value, sizes)


def _tiling(function: ir.Value, micro_kernels: Sequence[Sequence[_Tagged]]) -> None:
    """Write the schedule that tiles the micro-kernels of one function."""
    for micro_kernel in micro_kernels:
        # Tile the root, with each producer and the fill it starts from in the innermost loop.
        root = next(one for one in micro_kernel if one.role == _ROOT)
        loop = structured_transform.FuseOp(_matched(function, root), tile_sizes=list(root.tiles)).results[-1]
        for one in reversed(micro_kernel):
            if one is not root and any(one.tiles):
                # The one in the loop: the fused op is also left before it, dead.
                structured_transform.TileUsingForOp(_matched(loop, one), sizes=list(one.tiles))


def _vectorization(module: ir.Value) -> None:
    """Write the schedule of the rest, once for all functions: MLIR takes milliseconds to gather its patterns."""
    # A table read, tensor.extract at a data-dependent index, becomes vector.gather.
    vectorized = structured_transform.VectorizeChildrenAndApplyPatternsOp(module, vectorize_nd_extract=True).result
    loops = structured_transform.MatchOp.match_op_names(vectorized, ["scf.for"]).result
    # The accumulator tile leaves memory: it is carried through the reduction loops as vectors.
    loop_transform.HoistLoopInvariantSubsetsOp(loops)


def _matched(function: ir.Value, one: _Tagged) -> ir.Value:
    tag = {name: one.op.attributes[name] for name in ("qnn.micro_kernel", "qnn.role")}
    # The name is compared first, because matching attributes collects all of an op.
    return structured_transform.MatchOp(
        transform.AnyOpType.get(), function, ops=[one.op.name], op_attrs=ir.DictAttr.get(tag)
    ).result


def _vectorize_copies(module: ir.Module) -> None:
    """Write copies of one tile as a vector read and write, which is all that remains if the tile covers its views."""
    for op in ops_named(module, "memref.copy"):
        type_ = ir.MemRefType(op.operands[0].type)
        if type_.rank and type_.has_static_shape and prod(type_.shape) <= _WIDEST_COPY:
            with ir.InsertionPoint(op), op.location:
                tile = ir.VectorType.get(list(type_.shape), type_.element_type)
                start = [arith.constant(ir.IndexType.get(), 0)] * type_.rank
                order, inside = ir.AffineMap.get_identity(type_.rank), [True] * type_.rank
                padding = ir.Operation.create("ub.poison", results=[type_.element_type]).result
                read = vector.transfer_read(tile, op.operands[0], start, order, padding, inside)
                vector.transfer_write(None, read, op.operands[1], start, order, in_bounds=inside)
            op.erase()


# Parameters that are the same constant in all calls of a kernel are propagated into it if they affect instructions.
#
# A zero point of 0 needs no subtraction, bounds of 0 and 255 are those of a saturating store, and the smaller of a
# float and 6 needs no instructions for zeros and NaN: patterns cannot see through a kernel parameter.  Scales stay
# parameters, because they affect no instruction: kernels that differ in nothing else are shared by networks.

_Constant = ir.IntegerAttr | ir.FloatAttr
_BOUNDS = ("arith.maximumf", "arith.minimumf")


def propagate_call_constants(module: ir.Module) -> None:
    """Replace in each kernel the integer and index parameters that are the same constant in all of its calls.

    Of those in float32 it replaces bounds. The parameters stay, unused. A function that others than those of `module`
    may call keeps its own.
    """
    private = {name_of(function): function for function in functions(module) if _is_private(function)}
    found: dict[str, dict[int, _Constant]] = {}
    for call in ops_named(module, "func.call"):
        callee = ir.FlatSymbolRefAttr(call.attributes["callee"]).value
        constants = _constants(call)
        known = found.setdefault(callee, constants)
        found[callee] = {index: one for index, one in known.items() if index in constants and constants[index] == one}
    with module.context, ir.Location.unknown():
        for name in (name for name in found if name in private):
            for index, constant in found[name].items():
                _replace(private[name], index, constant)


def _is_private(function: ir.Operation) -> bool:
    attributes = function.attributes
    visibility = attributes.get("sym_visibility")
    return has_body(function) and isinstance(visibility, ir.StringAttr) and visibility.value == "private"


def _constants(call: ir.Operation) -> dict[int, _Constant]:
    """The operands that are constants, by index."""
    found: dict[int, _Constant] = {}
    for index, operand in enumerate(call.operands):
        owner = operand.owner
        if isinstance(owner, ir.Block) or owner.name != "arith.constant":
            continue
        value = owner.attributes["value"]
        if isinstance(value, _Constant):
            found[index] = value
    return found


def _replace(kernel: ir.Operation, index: int, constant: _Constant) -> None:
    block = kernel.regions[0].blocks[0]
    uses = [(use.owner.operation, use.operand_number) for use in block.arguments[index].uses]
    if isinstance(constant, ir.FloatAttr):
        uses = [(op, number) for op, number in uses if op.name in _BOUNDS]
    if not uses:
        return
    with ir.InsertionPoint.at_block_begin(block):
        value = arith.constant(constant.type, constant)
    for op, number in uses:
        op.operands[number] = value


# Linalg: tiles of sums of f32 products -> vector ops, with the roundings of the body.


def vectorize_f32_products(module: ir.Module) -> None:
    """Replace each tiled reduction that adds f32 products, in place; needs a current context and location."""
    for generic in ops_named(module, "linalg.generic"):
        body = [op.operation.name for op in generic.regions[0].blocks[0].operations]
        # Ops that were fused into a loop are also left before it, dead.
        is_used = len(list(generic.results[0].uses)) > 0
        if is_used and body in (_FUSED, _ROUNDED) and "reduction" in str(generic.attributes["iterator_types"]):
            with ir.InsertionPoint(generic), generic.location:
                generic.results[0].replace_all_uses_with(_sum(generic, is_fused=body == _FUSED))
            generic.erase()


_FUSED = ["math.fma", "linalg.yield"]
_ROUNDED = ["arith.mulf", "arith.addf", "linalg.yield"]


def _sum(generic: ir.Operation, *, is_fused: bool) -> ir.Value:
    """The tensor of the sums, with the products added."""
    loops = contraction_of(generic)
    lhs, rhs, total = (_read(value) for value in generic.operands)
    tile = shape_of(generic.operands[2].type)
    left, right = spread(lhs, loops.lhs, loops, tile), spread(rhs, loops.rhs, loops, tile)
    added = math.fma(left, right, total) if is_fused else arith.addf(total, arith.mulf(left, right))
    # `target` with other elements, all of them.
    target = generic.operands[2]
    shape = shape_of(target.type)
    into = _start(shape), _identity(shape)
    written: ir.Value = vector.transfer_write(target.type, added, target, *into, in_bounds=_inside(shape))
    return written


def _read(value: ir.Value) -> ir.Value:
    """All of a tensor."""
    type_ = ir.RankedTensorType(value.type)
    padding = ir.Operation.create("ub.poison", results=[type_.element_type]).result
    tile = ir.VectorType.get(type_.shape, type_.element_type)
    return vector.transfer_read(tile, value, _start(type_.shape), _identity(type_.shape), padding, _inside(type_.shape))


def _start(shape: Sequence[int]) -> list[ir.Value]:
    return [arith.constant(ir.IndexType.get(), 0)] * len(shape)


def _identity(shape: Sequence[int]) -> ir.AffineMap:
    return ir.AffineMap.get_identity(len(shape))


def _inside(shape: Sequence[int]) -> list[bool]:
    return [True] * len(shape)
