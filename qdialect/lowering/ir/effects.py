"""Effects on memory: the operands that an op reads and writes, and the memory that a loop writes."""

from __future__ import annotations

from dataclasses import dataclass

from qdialect.ir._mlir import ir

# The effects of an op itself, without those of the ops in its regions.
#
# Unknown ops are assumed to read and write everything; known ops and intrinsics are listed with their effects.  MLIR's
# bindings tell that an op has effects, but not which, so that its interfaces cannot be queried.


@dataclass(frozen=True)
class Effects:
    """The operands, by number, whose memory is read and written."""

    reads: tuple[int, ...] = ()
    writes: tuple[int, ...] = ()
    is_known: bool = True
    """Else it may read and write any memory."""


NONE = Effects()
UNKNOWN = Effects(is_known=False)

_INTRINSIC = "llvm.call_intrinsic"
_PURE_DIALECTS = ("arith", "index", "math", "ub")
_OF_DIALECTS = {
    NONE: {
        "vector": """
            bitcast broadcast constant_mask contract create_mask deinterleave extract extract_strided_slice
            extractelement flat_transpose fma from_elements insert insert_strided_slice insertelement interleave mask
            matrix_multiply multi_reduction outerproduct reduction scan shape_cast shuffle splat step to_elements
            transpose type_cast vscale yield
        """,
        "memref": """
            alloc alloca alloca_scope alloca_scope.return assume_alignment cast collapse_shape dim expand_shape
            extract_aligned_pointer_as_index extract_strided_metadata get_global memory_space_cast prefetch rank
            reinterpret_cast subview transpose view
        """,
        "affine": "apply delinearize_index for if linearize_index max min parallel prefetch yield",
        "scf": """
            condition execute_region for forall forall.in_parallel if index_switch parallel reduce reduce.return while
            yield
        """,
        "llvm": """
            add and ashr bitcast extractelement extractvalue fadd fmul fsub getelementptr icmp insertelement insertvalue
            inttoptr lshr mlir.addressof mlir.constant mlir.poison mlir.undef mlir.zero mul or ptrtoint select sext shl
            shufflevector sub trunc xor zext
        """,
        "builtin": "unrealized_conversion_cast",
        "func": "return",
        "omp": "parallel terminator",
    },
    Effects(reads=(0,)): {
        "vector": "expandload gather load maskedload transfer_read",
        "memref": "load",
        "affine": "load vector_load",
        "llvm": "load",
    },
    Effects(writes=(0,)): {"vector": "compressstore maskedstore scatter", "memref": "dealloc"},
    Effects(writes=(1,)): {
        "vector": "store transfer_write",
        "memref": "store",
        "affine": "store vector_store",
        "llvm": "store",
    },
    Effects(reads=(0,), writes=(0,)): {"memref": "generic_atomic_rmw", "llvm": "atomicrmw cmpxchg"},
    Effects(reads=(1,), writes=(1,)): {"memref": "atomic_rmw"},
    Effects(reads=(0,), writes=(1,)): {"memref": "copy"},
}
_BY_NAME = {
    f"{dialect}.{name}": found
    for found, dialects in _OF_DIALECTS.items()
    for dialect, names in dialects.items()
    for name in names.split()
}
_INTRINSICS = {
    **dict.fromkeys(("llvm.x86.tileloadd64", "llvm.x86.tileloaddt164"), Effects(reads=(1,))),
    "llvm.x86.tilestored64": Effects(writes=(1,)),
    "llvm.x86.ldtilecfg": Effects(reads=(0,)),
    **dict.fromkeys(("llvm.x86.tilezero", "llvm.x86.tdpbusd", "llvm.x86.tilerelease"), NONE),
}


def effects_of(op: ir.Operation) -> Effects:
    """The effects of `op` itself on memory."""
    found = _BY_NAME.get(op.name)
    if found is not None:
        return found
    if op.name == _INTRINSIC:
        # The effects of an intrinsic; one not listed that has a result and no pointer operands has none.
        name = ir.StringAttr(op.attributes["intrin"]).value
        if name in _INTRINSICS:
            return _INTRINSICS[name]
        is_value = len(op.results) > 0 and not any(str(value.type).startswith("!llvm.ptr") for value in op.operands)
        return NONE if is_value else UNKNOWN
    return NONE if op.name.partition(".")[0] in _PURE_DIALECTS else UNKNOWN


def only_reads(op: ir.Operation) -> bool:
    """Whether `op`, which has no region, writes nothing."""
    found = effects_of(op)
    return found.is_known and not found.writes and not len(op.regions)
