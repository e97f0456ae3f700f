"""The pipes that an op of phase `x86` occupies on a core model, and kernels after CSE and hoisting."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping

from qdialect.ir import context
from qdialect.ir._mlir import ir
from qdialect.lowering.ir import building as b
from qdialect.lowering.ir.accesses import effects_of
from qdialect.lowering.ir.functions import constant, contraction_of, functions, inside, owner_of
from qdialect.lowering.ir.phase_pass import load_kernel_dialects, run_passes
from qdialect.lowering.ir.views import behind, static_strides
from qdialect.targets.machine import Kind, Pipes

# The pipes that an op at the phase `x86` occupies, by the instructions that LLVM generates for it.
#
#   kinds      pipes times cycles of what computes or moves lanes, by the `Kind`
#   loads      cycles of the load ports: two loads a cycle, or one that is wider than they are; elements of a gather
#   stores     cycles of the store port: one store a cycle, two cycles for one that is wider
#   divisions  cycles of the unit that divides and takes roots
#
# Ops for which LLVM needs no instruction count nothing: a comparison and a selection of the same two floats are one
# minimum or maximum, a selection of what is computed for it alone is a mask of that instruction, a product of 64 bits
# ignores what its operands have above 32, and what takes a vector apart or views its bits otherwise is a name.

LOADS = ("vector.load", "vector.transfer_read", "vector.maskedload", "llvm.load")
SHUFFLES = ("vector.shuffle", "llvm.shufflevector")
STORES = ("vector.store", "vector.transfer_write", "vector.maskedstore")
_SCALARS: Mapping[str, Counter[str]] = {"memref.load": Counter({"loads": 0.5}), "memref.store": Counter({"stores": 1})}
_PRODUCTS = ("arith.mulf", "arith.muli", "math.fma")
_SUMS = (
    *("arith.addf", "arith.subf", "arith.maxnumf", "arith.minnumf"),
    *("arith.sitofp", "arith.uitofp", "arith.fptosi", "arith.fptoui", "arith.extf", "arith.truncf"),
    *("math.roundeven", "math.floor", "math.ceil", "math.trunc"),
    *("arith.shli", "arith.shrsi", "arith.shrui"),
)
_SIMPLE = (
    *("arith.addi", "arith.subi", "arith.andi", "arith.ori", "arith.xori", "arith.select"),
    *("arith.maxsi", "arith.minsi", "arith.maxui", "arith.minui", "arith.negf"),
    *("math.absf", "math.absi", "math.copysign", "math.ctlz"),
)
_ONCE = {
    **dict.fromkeys(_PRODUCTS, Kind.MULTIPLY),
    **dict.fromkeys(_SUMS, Kind.ADD),
    **dict.fromkeys(_SIMPLE, Kind.SIMPLE),
    **dict.fromkeys(("arith.cmpf", "arith.cmpi"), Kind.MULTIPLY),
    "arith.trunci": Kind.PERMUTE,
}
_KINDS: Mapping[str, tuple[Kind, ...]] = {
    **{name: (kind,) for name, kind in _ONCE.items()},
    # A minimum that hands a NaN on is compared with itself and selected, too.
    **dict.fromkeys(("arith.maximumf", "arith.minimumf"), (Kind.ADD, Kind.MULTIPLY, Kind.SIMPLE)),
}
_INTRINSICS: Mapping[str, tuple[Kind, ...]] = {
    "vpdp": (Kind.MULTIPLY,),
    "dpbf16": (Kind.MULTIPLY,),
    "pmadd": (Kind.MULTIPLY,),
    "pmul": (Kind.MULTIPLY,),
    "cvt": (Kind.ADD,),
    "scalef": (Kind.ADD, Kind.ADD),
    "rndscale": (Kind.ADD,),
    "pack": (Kind.PERMUTE,),
    "perm": (Kind.PERMUTE,),
    "pshuf": (Kind.PERMUTE,),
    "punpck": (Kind.INTERLEAVE,),
}
_WIDENED = ("arith.extsi", "arith.extui")
_WIDENED_BITS = (8, 16)
_LANE = 128
_LONG = 64
# Of a gather this long each element takes a cycle; LLVM makes loads of a shorter one.
_GATHERED = 8


def occupied(op: ir.Operation, pipes: Pipes) -> Counter[str]:
    """The occupations of `op` for each kind of pipe and port."""
    if op.name in LOADS:
        return Counter({"loads": _accesses(op.results[0].type, op.operands[0].type, pipes) / 2})
    if op.name in STORES:
        return Counter({"stores": _accesses(op.operands[0].type, op.operands[1].type, pipes)})
    if op.name == "vector.gather":
        count = math.prod(ir.VectorType(op.results[0].type).shape)
        return Counter({"loads": count if count >= _GATHERED else count / 2})
    if op.name in ("arith.divf", "math.sqrt"):
        cycles = pipes.division_cycles if op.name == "arith.divf" else pipes.root_cycles
        return Counter({"divisions": cycles * max(_pieces(op.results[0].type, pipes), 1)})
    return _SCALARS.get(op.name) or _computed(op, pipes)


def latency(op: ir.Operation, pipes: Pipes) -> int:
    """Cycles from the operands of `op` to its results."""
    if op.name != "vector.multi_reduction":
        return max((pipes.latencies[Kind(kind)] for kind in _computed(op, pipes)), default=0)
    one = sum(pipes.latencies[kind] for kind in _reduced(op))
    return one + (pipes.latencies[Kind.PERMUTE] + one) * _steps(op)


def bits(type_: ir.Type) -> int:
    """Bits of a vector; none of a scalar."""
    if not isinstance(type_, ir.VectorType):
        return 0
    element = type_.element_type
    width = element.width if isinstance(element, ir.IntegerType | ir.FloatType) else 8
    return math.prod(type_.shape) * width


def _accesses(vector: ir.Type, buffer: ir.Type, pipes: Pipes) -> int:
    """How many pieces, each as wide as a port and of elements that follow each other, hold a vector in memory."""
    strides = static_strides(ir.MemRefType(buffer)) if isinstance(buffer, ir.MemRefType) else None
    if not isinstance(vector, ir.VectorType) or not strides or vector.rank > len(strides) or strides[-1] != 1:
        return max(_pieces(vector, pipes), 1)
    length, count = 1, math.prod(vector.shape)
    for extent, stride in zip(reversed(vector.shape), reversed(strides), strict=False):
        if extent > 1 and stride != length:
            break
        length *= extent
    return count // length * -(-length * bits(vector) // count // pipes.width)


def _pieces(type_: ir.Type, pipes: Pipes) -> int:
    """Pieces as wide as a pipe that hold a value; none for a scalar."""
    return -(-bits(type_) // pipes.width)


def _computed(op: ir.Operation, pipes: Pipes) -> Counter[str]:
    if op.name == "vector.contract":
        return Counter({Kind.MULTIPLY: math.prod(contraction_of(op).extents) * 8 // pipes.width})
    if op.name == "llvm.call_intrinsic":
        return _intrinsic(op, pipes)
    if op.name in SHUFFLES:
        return _shuffle(op, pipes)
    if op.name == "vector.multi_reduction":
        return _reduction(op, pipes)
    if op.name == "vector.transpose":
        return _transpose(op, pipes)
    if op.name in _WIDENED:
        return _widened(op, pipes)
    if op.name not in _KINDS or _is_folded(op):
        return Counter()
    kinds = (Kind.ADD,) if op.name == "arith.select" and _is_minimum(op) else _KINDS[op.name]
    pieces = max(_pieces(value.type, pipes) for value in (*op.operands, *op.results))
    return Counter(dict.fromkeys(kinds, pieces)) if pieces else Counter()


def _is_folded(op: ir.Operation) -> bool:
    """Whether LLVM computes it with another op in one instruction."""
    users = [use.owner.operation for use in op.results[0].uses]
    if op.name == "arith.cmpf":
        return all(user.name == "arith.select" and _is_minimum(user) for user in users)
    if op.name == "arith.andi":
        # Two operations on bits are one `vpternlogd`.
        is_of_three = all(user.name == "arith.ori" for user in users)
        return is_of_three or (_is_of_64_bits(op) and all(user.name == "arith.muli" for user in users))
    if op.name == "arith.shli":
        return _is_of_64_bits(op) and all(user.name == "arith.shrsi" and _is_folded(user) for user in users)
    if op.name == "arith.shrsi" and _is_of_64_bits(op):
        source = op.operands[0].owner
        is_extended = not isinstance(source, ir.Block) and source.name == "arith.shli"
        return is_extended and all(user.name == "arith.muli" for user in users)
    return op.name == "arith.select" and not _is_minimum(op) and any(map(_is_masked, list(op.operands)[1:]))


def _is_of_64_bits(op: ir.Operation) -> bool:
    type_ = op.results[0].type
    element = type_.element_type if isinstance(type_, ir.VectorType) else None
    return isinstance(element, ir.IntegerType) and element.width == _LONG


def _is_minimum(select: ir.Operation) -> bool:
    """Whether the smaller or larger of two floats is selected, as `minps` does."""
    compared = select.operands[0].owner
    if isinstance(compared, ir.Block) or compared.name != "arith.cmpf":
        return False
    return set(compared.operands) == set(list(select.operands)[1:])


def _is_masked(value: ir.Value) -> bool:
    """Whether the instruction that computes `value` can leave out what is not selected."""
    return not isinstance(value.owner, ir.Block) and value.owner.name in _KINDS and len(list(value.uses)) == 1


def _intrinsic(op: ir.Operation, pipes: Pipes) -> Counter[str]:
    if not op.results:
        return Counter()
    name = ir.StringAttr(op.attributes["intrin"]).value
    kinds = next((kinds for part, kinds in _INTRINSICS.items() if part in name), (Kind.SIMPLE,))
    return Counter({kind: kinds.count(kind) * _pieces(op.results[0].type, pipes) for kind in set(kinds)})


def _shuffle(op: ir.Operation, pipes: Pipes) -> Counter[str]:
    type_ = op.results[0].type
    if bits(type_) < bits(op.operands[0].type):
        return Counter()
    return Counter({Kind.INTERLEAVE if _is_interleaved(op) else Kind.PERMUTE: _pieces(type_, pipes)})


def _is_interleaved(op: ir.Operation) -> bool:
    """Whether elements of the two operands alternate, those of a half of each 128 bits."""
    indices = ir.DenseI64ArrayAttr if op.name == "vector.shuffle" else ir.DenseI32ArrayAttr
    mask = [int(index) for index in indices(op.attributes["mask"])]
    count = len(mask)
    lane = _LANE * count // max(bits(op.results[0].type), 1)
    if lane < 2 or mask[0] not in (0, lane // 2):
        return False
    return mask == [i // lane * lane + mask[0] + i % lane // 2 + i % 2 * count for i in range(count)]


def _reduction(op: ir.Operation, pipes: Pipes) -> Counter[str]:
    """Whole vectors first; then, for every result, halves of what is left: a permutation and a sum for each."""
    results = max(math.prod(ir.VectorType(op.results[0].type).shape), 1) if bits(op.results[0].type) else 1
    halves = results * _steps(op)
    pieces = _pieces(op.operands[0].type, pipes)
    return Counter[str]({**dict.fromkeys(_reduced(op), pieces + halves), Kind.PERMUTE: halves})


def _reduced(op: ir.Operation) -> tuple[Kind, ...]:
    """The occupations of one step of a reduction."""
    name = str(op.attributes["kind"])
    if "imumf" in name:
        return _KINDS["arith.minimumf"]
    type_ = ir.VectorType(op.operands[0].type)
    return (Kind.ADD,) if isinstance(type_.element_type, ir.FloatType) else (Kind.SIMPLE,)


def _steps(op: ir.Operation) -> int:
    """How often lanes are halved; never where other dimensions than the last are reduced."""
    type_ = ir.VectorType(op.operands[0].type)
    dims = [int(dim) for dim in ir.DenseI64ArrayAttr(op.attributes["reduction_dims"])]
    return math.ceil(math.log2(type_.shape[-1])) if type_.rank - 1 in dims else 0


def _transpose(op: ir.Operation, pipes: Pipes) -> Counter[str]:
    """A step of all vectors for each halving of the last dimension; a repeated vector needs none."""
    order = [int(dim) for dim in ir.DenseI64ArrayAttr(op.attributes["permutation"])]
    type_, source = ir.VectorType(op.results[0].type), op.operands[0].owner
    repeated = not isinstance(source, ir.Block) and source.name == "vector.broadcast"
    if repeated or order[-1] == len(order) - 1:
        return Counter()
    rows, last = math.prod(list(type_.shape)[:-1]), type_.shape[-1]
    pieces = -(-bits(type_) // rows // pipes.width)
    return Counter({Kind.PERMUTE: int(math.log2(last)) * rows * pieces})


def _widened(op: ir.Operation, pipes: Pipes) -> Counter[str]:
    """Bytes and words are widened by an instruction, also on their way from memory."""
    type_ = op.operands[0].type
    element = type_.element_type if isinstance(type_, ir.VectorType) else None
    if not isinstance(element, ir.IntegerType) or element.width not in _WIDENED_BITS:
        return Counter()
    return Counter({Kind.PERMUTE: _pieces(op.results[0].type, pipes)})


# Kernels at the phase `x86` after CSE, as LLVM will do it later.
#
# Upstream's passes find equal ops and loop invariants.  In addition, reads of the same bytes are one: rows of a window
# overlap, and their addresses are equal as sums of multiples of the same indices.

_PASSES = "builtin.module(func.func(lower-affine,canonicalize,cse,loop-invariant-code-motion,canonicalize,cse))"
_ONCE_MORE = "builtin.module(func.func(cse))"
_NAME = "simplify-kernels"
_DYNAMIC = ir.ShapedType.get_dynamic_stride_or_offset()
Sum = Counter[ir.Value | None]
"""How often each value is in it; None counts for 1."""


def simplified(module: ir.Module) -> ir.Module:
    """A copy of `module` after CSE and hoisting of loop invariants."""
    copy = context.copy(module)
    load_kernel_dialects(copy)
    run_passes(copy, _PASSES, _NAME)
    for function in functions(copy):
        _merge_reads(function)
    run_passes(copy, _ONCE_MORE, _NAME)
    return copy


def _merge_reads(function: ir.Operation) -> None:
    """Replace what reads the same bytes as an op before it in its block, from a buffer that nothing writes."""
    ops = [(op, effects_of(op)) for op in inside(function)]
    if not all(effects.is_known for _, effects in ops):
        return
    written = {_root(op.operands[number]) for op, effects in ops for number in effects.writes}
    for block in _blocks(function):
        known: dict[tuple[object, ...], ir.Operation] = {}
        for op in [op.operation for op in block.operations if op.name in LOADS]:
            buffer, position = _where(op)
            if buffer is None or buffer in written or position is None:
                continue
            first = known.setdefault((op.name, buffer, str(op.results[0].type), frozenset(position.items())), op)
            if first != op:
                op.results[0].replace_all_uses_with(first.results[0])


def _root(buffer: ir.Value) -> ir.BlockArgument | None:
    """The argument that `buffer` is a view of."""
    found = behind(buffer)
    return ir.BlockArgument(found) if isinstance(found.owner, ir.Block) else None


def _blocks(op: ir.Operation) -> Iterator[ir.Block]:
    for region in op.regions:
        for block in region.blocks:
            yield block
            for inner in block.operations:
                yield from _blocks(inner.operation)


def _where(read: ir.Operation) -> tuple[ir.BlockArgument | None, Sum | None]:
    """The buffer that is read, and the byte of it that the read begins with; None where that is not known."""
    if read.name == "llvm.load":
        return _pointed(read.operands[0])
    buffer = _root(read.operands[0])
    return buffer, None if buffer is None else _position(read)


def _pointed(pointer: ir.Value) -> tuple[ir.BlockArgument | None, Sum]:
    """The buffer that `pointer` points into, and at which byte of it."""
    total, op = Sum(), owner_of(pointer)
    while op is not None and op.name == "llvm.getelementptr":
        size = b.integer_bits(ir.TypeAttr(op.attributes["elem_type"]).value) // 8
        (number,) = ir.DenseI32ArrayAttr(op.attributes["rawConstantIndices"])
        if len(op.operands) == 1:
            total[None] += size * number
        else:
            _add(total, op.operands[1], size)
        op = owner_of(op.operands[0])
    if op is None or op.name != "llvm.extractvalue":
        return None, total
    descriptor = owner_of(op.operands[0])
    is_cast = descriptor is not None and descriptor.name == "builtin.unrealized_conversion_cast"
    return (_root(descriptor.operands[0]) if descriptor is not None and is_cast else None), total


def _position(op: ir.Operation) -> Sum | None:
    """The byte that a read begins with, counted from the start of its buffer; None if its view does not tell."""
    type_ = ir.MemRefType(op.operands[0].type)
    strides = static_strides(type_)
    _, offset = type_.get_strides_and_offset() if strides is not None else ((), _DYNAMIC)
    if strides is None or offset == _DYNAMIC or not isinstance(type_.element_type, ir.IntegerType | ir.FloatType):
        return None
    total = Sum({None: offset})
    for index, stride in zip(list(op.operands)[1 : 1 + type_.rank], strides, strict=True):
        _add(total, index, stride)
    size = math.ceil(type_.element_type.width / 8)
    return Sum({value: factor * size for value, factor in total.items() if factor})


def _add(total: Sum, value: ir.Value, factor: int) -> None:
    """Add `factor` times `value`, a sum itself where it is computed as one."""
    number = constant(value)
    if number is not None:
        total[None] += factor * number
        return
    op = owner_of(value)
    if op is not None and op.name == "arith.index_cast":
        _add(total, op.operands[0], factor)
        return
    if op is not None and op.name == "arith.addi":
        for operand in op.operands:
            _add(total, operand, factor)
        return
    scale = constant(op.operands[1]) if op is not None and op.name == "arith.muli" else None
    if op is not None and scale is not None:
        _add(total, op.operands[0], factor * scale)
        return
    total[value] += factor
