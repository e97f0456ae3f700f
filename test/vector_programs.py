"""Modules written by hand at phase `vector`: lowered from there, run, and compared between targets."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qdialect import targets as target
from qdialect.ir._mlir import ir, passmanager
from qdialect.ir.context import make_context, parse
from qdialect.lowering.ir.upstream import load_kernel_dialects
from qdialect.lowering.vector_to_x86.patterns import to_x86
from qdialect.lowering.x86_to_llvm.to_llvm import to_llvm
from qdialect.passes.pattern import explain_matches
from qdialect.runtime.jit import MachineCode
from qdialect.targets import GENERIC, TARGETS, Target

Array = NDArray[Any]

VBMI = TARGETS["avx512vbmi"]
_UPSTREAM = """builtin.module(
  func.func(convert-vector-to-scf{full-unroll=true}, lower-affine, canonicalize),
  expand-strided-metadata, lower-affine, func.func(convert-scf-to-cf), convert-vector-to-llvm, memref-expand,
  convert-to-llvm{filter-dialects=arith,cf,index,math,memref,ub,vector},
  convert-func-to-llvm{use-bare-ptr-memref-call-conv}, reconcile-unrealized-casts
)"""
_FEATURES = target.host_features()
HOST_TARGETS = [one for one in TARGETS.values() if _FEATURES and not one.is_generic and one.features <= _FEATURES]
"""The targets with instructions of their own that this CPU can run; empty where it is no x86-64 one."""


def module_of(text: str) -> ir.Module:
    """The module of a text, with diagnostics that name ``vector.mlir``."""
    return parse(text, make_context(), "vector.mlir")


def x86_text(text: str, chosen: Target = VBMI) -> str:
    """The module after the x86 step for a target; no CPU is needed."""
    module = module_of(text)
    to_x86(module, chosen)
    assert module.operation.verify()
    return str(module)


def reasons(text: str, chosen: Target = VBMI) -> list[str]:
    """Why patterns of the x86 step left ops alone: ``[pattern] 'op' reason``."""
    with explain_matches() as remarks:
        x86_text(text, chosen)
    return [remark.message for remark in remarks]


def run(text: str, arrays: Sequence[Array], chosen: Target) -> list[Array]:
    """The contents of all buffers after a call of ``@main`` on copies of `arrays`, compiled for `chosen`."""
    module = module_of(text)
    to_x86(module, chosen)
    to_llvm(module)
    return _called(module, arrays)


def upstream_run(text: str, arrays: Sequence[Array]) -> list[Array]:
    """As `run`, but lowered by upstream's passes alone: no rewrite of this compiler takes part."""
    module = module_of(text)
    load_kernel_dialects(module)
    with module.context:
        passmanager.PassManager.parse(_UPSTREAM).run(module.operation)
    return _called(module, arrays)


def _called(module: ir.Module, arrays: Sequence[Array]) -> list[Array]:
    buffers = [np.array(array, order="C") for array in arrays]
    bound = MachineCode(module).bind("main", [buffer.ctypes.data for buffer in buffers], keep=buffers)
    bound.call()
    return buffers


def assert_same_on_targets(text: str, arrays: Sequence[Array], targets: Sequence[Target] = HOST_TARGETS) -> None:
    """Run upstream's code, that of the generic target and of each of `targets`, and compare all buffers bit for bit."""
    wanted = upstream_run(text, arrays)
    for chosen in (GENERIC, *targets):
        for index, (expected, found) in enumerate(zip(wanted, run(text, arrays, chosen), strict=True)):
            message = f"buffer {index} for target {chosen.name}, in\n{text}"
            np.testing.assert_array_equal(found, expected, err_msg=message)
