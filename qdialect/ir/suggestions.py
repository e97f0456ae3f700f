"""The nearest op to one that is not known, and the passes of MLIR."""

from __future__ import annotations

import re

from qdialect.support.diagnostics import did_you_mean
from qdialect.support.late_imports import LATE_IMPORTS

_UPSTREAM = """
affine-data-copy-generate affine-expand-index-ops affine-expand-index-ops-as-affine
affine-fold-memref-alias-ops affine-loop-coalescing affine-loop-fusion affine-loop-invariant-code-motion
affine-loop-normalize affine-loop-tile affine-loop-unroll affine-loop-unroll-jam affine-parallelize
affine-pipeline-data-transfer affine-raise-from-memref affine-scalrep affine-simplify-min-max
affine-simplify-structures affine-simplify-with-bounds affine-super-vectorize arith-expand
arith-int-range-narrowing arith-unsigned-when-equivalent bubble-down-memory-space-casts
buffer-deallocation-simplification buffer-hoisting buffer-loop-hoisting buffer-results-to-out-params
bufferization-lower-deallocations canonicalize control-flow-sink convert-arith-to-llvm
convert-bufferization-to-memref convert-cf-to-llvm convert-elementwise-to-linalg convert-func-to-llvm
convert-linalg-to-affine-loops convert-linalg-to-loops convert-linalg-to-parallel-loops
convert-linalg-to-std convert-math-to-funcs convert-math-to-libm convert-math-to-llvm convert-scf-to-cf
convert-tensor-to-linalg convert-to-llvm convert-ub-to-llvm convert-vector-to-llvm convert-vector-to-scf
cse drop-equivalent-buffer-results eliminate-empty-tensors empty-tensor-to-alloc-tensor expand-realloc
expand-strided-metadata flatten-memref fold-tensor-subset-ops generate-runtime-verification inline
int-range-optimizations lift-cf-to-scf linalg-fold-into-elementwise linalg-fold-unit-extent-dims
linalg-fuse-elementwise-ops linalg-generalize-named-ops linalg-morph-ops llvm-request-c-wrappers
loop-invariant-code-motion loop-invariant-subset-hoisting lower-affine lower-host-to-llvm lower-quant-ops
lower-vector-mask lower-vector-multi-reduction lower-vector-to-from-elements-to-shuffle-tree
math-expand-ops math-extend-to-supported-types mem2reg memref-elide-reinterpret-cast memref-expand
normalize-memrefs normalize-quant-types one-shot-bufferize ownership-based-buffer-deallocation print-ir
print-op-stats promote-buffers-to-stack raise-scf-to-affine reconcile-unrealized-casts remove-dead-values
scalarize-single-element-tensor-return sccp scf-for-loop-canonicalization scf-for-loop-peeling
scf-for-loop-range-folding scf-for-loop-specialization scf-for-to-while scf-forall-to-for
scf-forall-to-parallel scf-parallel-for-to-nested-fors scf-parallel-loop-fusion
scf-parallel-loop-specialization scf-parallel-loop-tiling set-llvm-module-datalayout
simplify-depthwise-conv snapshot-op-locations sroa static-memory-planner-analysis strip-debuginfo
strip-func-quant-types symbol-dce symbol-privatize topological-sort transform-dialect-check-uses
transform-infer-effects transform-interpreter transform-preload-library trivial-dce view-op-graph
"""
UPSTREAM_PASSES = tuple(_UPSTREAM.split())
"""Passes of MLIR that networks meet; the bindings do not list all of them."""

# The message of MLIR's parser for an unknown op.
_UNKNOWN_OPS = (
    re.compile(r"unregistered operation '([\w.]+)' found in dialect"),
    re.compile(r"custom op '([\w.]+)' is unknown"),
)


def with_nearest_op(message: str) -> str:
    """`message` and, where it is about an op that its dialect does not have, the nearest one that it has."""
    found = next((match for pattern in _UNKNOWN_OPS if (match := pattern.search(message))), None)
    return message + did_you_mean(found[1], _ops_of(found[1].partition(".")[0])) if found else message


def _ops_of(namespace: str) -> list[str]:
    """The names of the ops of a dialect that has Python classes."""
    with LATE_IMPORTS:
        # Most processes never suggest an op.
        from qdialect.ir._mlir import dialect_module

    module = dialect_module(namespace)
    classes = [value for value in vars(module).values() if isinstance(value, type)] if module else []
    names = (getattr(value, "OPERATION_NAME", None) for value in classes)
    return sorted({name for name in names if isinstance(name, str)})
