"""From an accumulator to the stored value: the stages of a fused op, each by its own part of the kernel."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qdialect.arithmetic import IntArray
from qdialect.dialect import AnyFused
from qdialect.dialect.contraction_ops import PlacedStage
from qdialect.dialect.stages.builtin_stages import ClampStage
from qdialect.lowering.cost.strategy import RequantizerForms
from qdialect.lowering.ir.views import Axis
from qdialect.lowering.qnn_to_linalg import stages
from qdialect.lowering.qnn_to_linalg.kernels.geometry import Segment
from qdialect.lowering.qnn_to_linalg.program.kernel_text import Buffer, Loops, Operand, Tag, Tensor
from qdialect.lowering.qnn_to_linalg.program.program import BufferSlot, Kernel
from qdialect.lowering.qnn_to_linalg.program.scalar_body import Body, Value
from qdialect.lowering.qnn_to_linalg.program.storage import signed_shift
from qdialect.lowering.qnn_to_linalg.stages import stage_kernel

# Imported for the kernels that its modules register.
_REGISTERED = stages


@dataclass(frozen=True)
class Epilogue:
    """The stages of a fused op and its residual; without stages the accumulators are the result."""

    stages: tuple[stage_kernel.EpiloguePart, ...] = ()
    residual: BufferSlot | None = None

    def start(self, bias: NDArray[np.int32]) -> NDArray[np.int32]:
        """The initial accumulators, modulo 2^32, that the stages need in place of `bias`."""
        for stage in self.stages:
            bias = bias + stage.offset
        return bias

    def channel_parameters(self) -> list[tuple[str, NDArray[Any]]]:
        """Per-channel arrays other than the bias: name and values."""
        return [parameter for stage in self.stages for parameter in stage.channel_parameters()]

    def row_parameters(self) -> list[stage_kernel.RowParameter]:
        """Parameters of each row, other than the residual."""
        return [parameter for stage in self.stages for parameter in stage.row_parameters()]


@dataclass(frozen=True)
class Stages:
    """An epilogue whose scalars are declared as parameters of one kernel."""

    epilogue: Epilogue
    emitters: tuple[stage_kernel.EmitStage, ...]
    rows: tuple[Buffer, ...] = ()
    """The buffers of the epilogue's parameters by row."""

    @property
    def element(self) -> str:
        return "i8" if self.emitters else "i32"

    def row_operands(
        self,
        kernel: Kernel,
        first: int = 0,
        pixels: Sequence[Axis] = (),
        loops: Sequence[str] = (),
        start: Callable[[int, int], int | Value] = lambda _, offset: offset,
    ) -> list[Operand]:
        """The parameters by row of `pixels` along `loops`, among whose operands they are those from `first` on.

        `start` gives where the pixels begin for an operand whose first element stands at an offset.  Without pixels
        each is one number for all.
        """
        pairs = zip(self.epilogue.row_parameters(), self.rows, strict=True)
        return [
            one.operand(kernel, buffer, pixels, loops, index, start(index, one.slot.storage.origin))
            for index, (one, buffer) in enumerate(pairs, first)
        ]

    def segment_operands(self, kernel: Kernel, segment: Segment, first: int) -> list[Operand]:
        return self.row_operands(
            *(kernel, first, segment.pixels, segment.loops), lambda index, offset: offset + segment.offsets[index]
        )

    def store(
        self,
        kernel: Kernel,
        loops: Loops,
        acc: Operand,
        parameters: Sequence[Operand],
        correction: Sequence[Operand],
        residual: Operand | None,
        rows: Sequence[Operand],
        target: tuple[Tensor, str],
        tag: Tag,
    ) -> None:
        """Store what the stages make of the biased accumulators `acc` at `target`, which `Kernel.write` gave.

        Before, the product of what is in `correction` is taken off.
        """
        destination, where = target
        inputs = [acc, *parameters, *correction, *([residual] if residual else []), *rows]
        body = kernel.body(inputs)
        value, *values = body.inputs
        own, values = values[: len(parameters)], values[len(parameters) :]
        if correction:
            *points, total = values[: len(correction)]
            value = body.subtract(value, body.multiply(points[0], total) if points else total)
            values = values[len(correction) :]
        added = values.pop(0) if residual else None
        value = self.emit(body, value, own, added, values)
        output = Operand(destination, acc.loops)
        kernel.store(kernel.generic(loops, inputs, output, body, value, tag), where)

    def emit(
        self, body: Body, acc: Value, parameters: Sequence[Value], residual: Value | None, rows: Sequence[Value] = ()
    ) -> Value:
        """From the biased accumulator (i32) to the stored element."""
        value, own, by_row = acc, iter(parameters), iter(rows)
        for stage, emit in zip(self.epilogue.stages, self.emitters, strict=True):
            found = [next(own) for _ in stage.channel_parameters()]
            value = emit(body, value, [*found, *(next(by_row) for _ in stage.row_parameters())], residual)
        if value.is_float or not self.epilogue.stages or self.epilogue.stages[-1].leaves_byte:
            return value
        return body.narrow(value)


def declare_stages(kernel: Kernel, epilogue: Epilogue) -> Stages:
    """Declare the scalars and tables of `epilogue` as parameters of `kernel`."""
    emitters = tuple(stage.declare(kernel) for stage in epilogue.stages)
    return Stages(epilogue, emitters, tuple(one.declare(kernel) for one in epilogue.row_parameters()))


def stage_kernels(
    op: AnyFused, accumulator_range: tuple[IntArray, IntArray], forms: RequantizerForms
) -> tuple[stage_kernel.StageKernel, ...]:
    """The kernels of the stages of `op`, for accumulators in `accumulator_range`, by channel.

    `forms` are those of requantizations that the target is fast at.

    Raises `CompileError` where a stage cannot be compiled.
    """
    kept = _with_bounds(op.stages())
    kinds = [stage_kernel.STAGE_KERNELS[type(placed.stage)] for placed, _ in kept]
    last = signed_shift(op.operation.results[0].type)
    shifts = [follower.wanted_shift(own) for (_, own), follower in zip(kept, kinds[1:], strict=False)]
    found: list[stage_kernel.StageKernel] = []
    before_bounds, before_shift = (0, 0), 0
    for index, ((placed, bounds), shift) in enumerate(zip(kept, [*shifts, last], strict=True)):
        around = (placed.before, placed.after, before_bounds, bounds, before_shift, shift)
        follower = kinds[index + 1] if index + 1 < len(kinds) else None
        found.append(
            kinds[index].of(stage_kernel.StageSite(op, placed.stage, *around, accumulator_range, follower, forms))
        )
        before_bounds, before_shift = bounds, shift
    return tuple(found)


def _with_bounds(placed: Sequence[PlacedStage]) -> list[tuple[PlacedStage, stage_kernel.Bounds]]:
    """The stages without clamps, each with the bounds of its values: the clamps that follow it, or its type's range."""
    found: list[tuple[PlacedStage, stage_kernel.Bounds]] = []
    for one in placed:
        if isinstance(one.stage, ClampStage):
            clamped, bounds = found.pop()
            found.append((clamped, one.stage.narrowed(bounds)))
        else:
            found.append((one, one.after.range if one.after else (0, 0)))
    return found
