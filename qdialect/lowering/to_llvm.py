"""x86 -> llvm: the rest of the way with upstream's conversions."""

from __future__ import annotations

from functools import partial

from qdialect._mlir import ir, memref_transform, vector_transform
from qdialect.lowering.functions import function_of, ops_named
from qdialect.lowering.neutral_starts import drop_neutral_starts
from qdialect.lowering.strided_slices import shuffle_slices
from qdialect.lowering.to_gomp import add_entry, outline
from qdialect.lowering.unroll_loops import unroll_loops
from qdialect.lowering.upstream import apply_patterns, apply_schedule, grouped, load_kernel_dialects, run_passes
from qdialect.lowering.vector_rows import unroll_transfers

_TO_LLVM = "convert-to-llvm{filter-dialects=arith,cf,index,math,memref,ub,vector}"
# Function by function: the ops of one stay in the cache from pass to pass, and functions are apart for several threads.
_CONTROL_FLOW = ("convert-scf-to-cf", "lower-affine")
_OF_FUNCTIONS = (
    # In one pass: each looks at every op there is.
    _TO_LLVM,
    # What is dead goes before the next function is converted: half of all ops, which would lie in memory together.
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
# What is left of them only `convert-vector-to-llvm` knows; `convert-to-llvm` converts the other vector ops.
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
    load_kernel_dialects(module)
    team = outline(module)
    unroll_loops(module, "qnn-to-llvm")
    with module.context, ir.Location.unknown():
        for function in dict.fromkeys(map(function_of, unroll_transfers(module))):
            apply_schedule(function, _transfers, "qnn-to-llvm")
        with grouped(module) as group:
            apply_schedule(group, _expansion, "qnn-to-llvm")
        shuffle_slices(module)
        drop_neutral_starts(module)
        _declare_allocation(module)
        run_passes(module, f"builtin.module({','.join(_passes(module))})", "qnn-to-llvm")
        _keep_kernels_apart(module)
    if team:
        add_entry(module, team)


def _transfers(function: ir.Value) -> None:
    """Write that transfers of several dimensions become transfers of their rows.

    Not in a group: from the last op to the first, upstream's pattern inserts rows before there is what they belong to.
    """
    apply_patterns(function, partial(vector_transform.ApplyTransferToScfPatternsOp, full_unroll=True))


def _expansion(module: ir.Value) -> None:
    """Write that ops of many vectors and views become ops of one vector and index arithmetic."""
    # All at once, and once for all functions: each application looks at every op, and gathers its patterns anew.
    apply_patterns(
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
    # It looks at every op once more, and kernels have none of these.
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
    """Say of each kernel that `main` alone calls it, and that it is never copied into it.

    Of a function that others may call, the execution engine writes and compiles a caller of its own. Of a note on a
    parameter that LLVM does not know it writes a warning with all of the function's text.
    """
    linkage = ir.Attribute.parse("#llvm.linkage<internal>")
    for op in module.body.operations:
        is_kernel = op.operation.name == "llvm.func" and len(op.regions[0].blocks)
        if is_kernel and "sym_visibility" in op.attributes:
            op.attributes["no_inline"] = ir.UnitAttr.get()
            op.attributes["linkage"] = linkage
            if "arg_attrs" in op.attributes:
                del op.attributes["arg_attrs"]
