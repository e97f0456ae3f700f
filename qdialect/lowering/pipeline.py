"""The phases of compilation and their order."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from qdialect import context
from qdialect._mlir import ir
from qdialect.diagnostics import CompileError
from qdialect.dialect.type_constraints import dtype_of, shape_of
from qdialect.lowering import contracts
from qdialect.lowering.program import Step
from qdialect.lowering.qnn_to_linalg import main_function, qnn_to_linalg
from qdialect.lowering.to_llvm import to_llvm
from qdialect.lowering.to_threads import to_threads
from qdialect.lowering.to_vector import to_vector
from qdialect.lowering.to_x86 import to_x86
from qdialect.passes.fuse_qnn import FuseQnnPass
from qdialect.passes.outlined import inline_outlined
from qdialect.pipeline import PassManager
from qdialect.target import Target


class Phase(StrEnum):
    """Levels a module passes through, in order; each can be printed and stopped at."""

    QNN = "qnn"
    """The quantized graph as it was imported."""
    FUSED = "fused"
    """One op per kernel."""
    LINALG = "linalg"
    """Kernels on strided views, calls over planned memory."""
    VECTOR = "vector"
    """Kernels as loops over vectors: `vector.contract`, `vector.gather`."""
    X86 = "x86"
    """The target's instructions in place."""
    LLVM = "llvm"
    """The LLVM dialect."""


@dataclass(frozen=True)
class Port:
    """An input or output of a network; scale and zero point where it is quantized."""

    name: str
    shape: tuple[int, ...]
    dtype: np.dtype[np.generic]
    scale: float | None
    zero_point: int | None


@dataclass(frozen=True)
class Lowered:
    """A network at some phase, and what its `main` needs at run time."""

    module: ir.Module
    constants: NDArray[np.uint8]
    arena_bytes: int
    inputs: tuple[Port, ...]
    outputs: tuple[Port, ...]
    live_bytes: int = 0
    """Size of the intermediate values that live at once, where that is most, as the model knows them."""
    weights_bytes: int = 0
    """Size of the packed weights among the constants."""
    steps: tuple[Step, ...] = ()
    """The kernel calls, in order."""
    buffers: tuple[tuple[str, int], ...] = ()
    """Element type and bytes of every intermediate value that is stored."""
    kernels: int = 0
    """Number of distinct kernels."""
    clocked: bool = False
    """Whether `main` takes an array of one int64 more than steps, for the cycle counter before each and at the end."""
    threads: int = 1
    """Number of threads that `main` is divided among."""

    @property
    def labels(self) -> tuple[str, ...]:
        """What each call computes."""
        return tuple(step.label for step in self.steps)


def lower(
    module: ir.Module, target: Target, until: Phase = Phase.LLVM, *, threads: int = 1, clocked: bool = False
) -> Lowered:
    """Lower a copy of the `qnn` module as far as `until`; from phase `vector` on it is divided among `threads`.

    `clocked` code, which runs on one thread, writes down when each of its steps begins.

    Raises `CompileError` for what cannot be lowered, `PassError` where fusion fails.
    """
    if clocked and threads > 1:
        raise CompileError(f"clocked code must run on one thread, but got {threads}")
    copy = context.copy(module)
    with copy.context:
        inline_outlined(copy)
    function = main_function(copy)
    inputs, outputs = _ports(function, "arg"), _ports(function, "res")
    lowered = Lowered(copy, np.empty(0, np.uint8), 0, inputs, outputs)
    if until is Phase.QNN:
        return lowered
    # Once for all of its passes: the module that came in was valid.
    PassManager(FuseQnnPass(), verify=False).run(copy)
    context.verify(copy)
    contracts.check_fused(copy)
    if until is Phase.FUSED:
        return lowered
    program = qnn_to_linalg(copy, target, clocked)
    lowered = replace(
        lowered,
        module=program.module,
        constants=program.constants,
        arena_bytes=program.arena_bytes,
        live_bytes=program.live_bytes,
        weights_bytes=program.weights_bytes,
        steps=program.steps,
        buffers=program.buffers,
        kernels=program.kernels,
        clocked=clocked,
        threads=threads,
    )
    growth = _lower_kernels(program.module, target, until, threads)
    return replace(lowered, arena_bytes=lowered.arena_bytes + growth)


def compile_to(module: ir.Module, phase: Phase, target: Target, threads: int = 1) -> ir.Module:
    """The module at `phase`."""
    return lower(module, target, phase, threads=threads).module


def _lower_kernels(module: ir.Module, target: Target, until: Phase, threads: int) -> int:
    """Lower kernels and `main`; the bytes by which the working memory grows."""
    contracts.check_linalg(module)
    if until is Phase.LINALG:
        return 0
    to_vector(module)
    growth = to_threads(module, threads)
    contracts.check_vector(module)
    if until is Phase.VECTOR:
        return growth
    to_x86(module, target)
    contracts.check_x86(module, target)
    if until is Phase.X86:
        return growth
    to_llvm(module)
    contracts.check_llvm(module)
    return growth


def _ports(function: ir.Operation, kind: str) -> tuple[Port, ...]:
    """Name, shape and quantization of arguments (``arg``) or results (``res``), from their `qnn.*` attributes."""
    type_ = ir.FunctionType(ir.TypeAttr(function.attributes["function_type"]).value)
    types = type_.inputs if kind == "arg" else type_.results
    attributes = function.attributes
    dictionaries = list(ir.ArrayAttr(attributes[f"{kind}_attrs"])) if f"{kind}_attrs" in attributes else []
    ports: list[Port] = []
    for index, tensor in enumerate(types):
        found = ir.DictAttr(dictionaries[index]) if dictionaries else ir.DictAttr.get({}, function.context)
        name = ir.StringAttr(found["qnn.name"]).value if "qnn.name" in found else f"{kind}{index}"
        scale = ir.FloatAttr(found["qnn.scale"]).value if "qnn.scale" in found else None
        zero_point = ir.IntegerAttr(found["qnn.zero_point"]).value if "qnn.zero_point" in found else None
        ports.append(Port(name, shape_of(tensor), dtype_of(tensor), scale, zero_point))
    return tuple(ports)
