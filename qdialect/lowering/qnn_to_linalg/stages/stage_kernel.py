"""The contribution of a stage to a kernel: parameters by channel and row, scalars, and the ops per element."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from qdialect.arithmetic import IntArray
from qdialect.dialect import AnyFused
from qdialect.dialect.stages.stage_base import Stage
from qdialect.dialect.type_constraints import QuantizedType
from qdialect.lowering.cost.strategy import RequantizerForms
from qdialect.lowering.ir.views import Axis, View
from qdialect.lowering.qnn_to_linalg.bodies.quantization import Quantization
from qdialect.lowering.qnn_to_linalg.program.kernel_text import Buffer, Operand
from qdialect.lowering.qnn_to_linalg.program.program import BufferSlot, Kernel, signed_shift
from qdialect.lowering.qnn_to_linalg.program.scalar_body import Body, Value

# Numbers that a kernel's epilogue reads from memory: one for each row of the result, or one for all.


@dataclass(frozen=True)
class RowParameter:
    """A stored tensor, and how far it moves from one pixel to the next along N, H and W."""

    name: str
    slot: BufferSlot
    steps: tuple[int, int, int]

    def declare(self, kernel: Kernel) -> Buffer:
        return kernel.slot(self.name, self.slot)

    def operand(
        self,
        kernel: Kernel,
        buffer: Buffer,
        pixels: Sequence[Axis],
        loops: Sequence[str],
        index: int,
        start: int | Value,
    ) -> Operand:
        """The numbers of `pixels` along `loops`, among whose operands it has this `index`; the first is at `start`."""
        moving = [(axis, loop) for axis, loop in zip(pixels, loops, strict=True) if axis.strides[index]]
        sizes, strides = tuple(axis.size for axis, _ in moving), tuple(axis.strides[index] for axis, _ in moving)
        view = View(sizes, strides, start if isinstance(start, int) else 0)
        read = kernel.read(buffer, view, None if isinstance(start, int) else start)
        return Operand(read, tuple(loop for _, loop in moving))


# The contribution of a stage to a kernel: parameters by channel, scalars, and the ops per element.

EmitStage = Callable[[Body, Value, Sequence[Value], Value | None], Value]
"""(body, value, the stage's own parameters by channel and by row, residual as i8) -> value.

Accumulators and quantized values are i32, the latter with their shift; f32 values are f32.
"""

Bounds = tuple[int, int]


@dataclass(frozen=True)
class StageSite:
    """A stage in its op, as a kernel must know it.

    Clamps are no stages of a kernel: they bound the values of the stage before them. A quantized value is held with a
    shift, so that it starts at 0 where it is stored or looked up; bounds are those of the values themselves.
    """

    op: AnyFused
    stage: Any
    before: QuantizedType | None
    after: QuantizedType | None
    before_bounds: Bounds
    """Of the quantized values that the stage takes."""
    bounds: Bounds
    """Of the quantized values that the stage leaves."""
    before_shift: int
    """Of the quantized values that the stage takes."""
    shift: int
    """Of the quantized values that the stage leaves."""
    accumulator_range: tuple[IntArray, IntArray]
    """The range of the accumulators, by channel."""
    follower: type[StageKernel] | None
    """The kernel of the next stage."""
    forms: RequantizerForms
    """The fast forms of the target."""

    @property
    def quantization(self) -> Quantization:
        """Scale, zero point and shift of the quantized values that the stage leaves."""
        return _quantization(self.after, self.shift)

    @property
    def before_quantization(self) -> Quantization:
        """Scale, zero point and shift of the quantized values that the stage takes."""
        return _quantization(self.before, self.before_shift)

    @property
    def residual_shift(self) -> int:
        """The number that is added to an element of the residual when it is stored."""
        assert self.op.residual is not None, "the verifier has seen a residual"
        return signed_shift(self.op.residual.type)

    @property
    def stored_bounds(self) -> Bounds:
        """Bounds of the quantized values that the stage leaves, with their shift."""
        return self.bounds[0] + self.shift, self.bounds[1] + self.shift


class EpiloguePart(ABC):
    """The computation of a stage between the accumulators and the store, as a part of a kernel."""

    @property
    def leaves_byte(self) -> bool:
        """Whether the stage leaves the byte to store rather than an i32."""
        return False

    @property
    def offset(self) -> NDArray[np.int32]:
        """The addend of each channel's initial accumulator, or of all."""
        return np.zeros(1, np.int32)

    def channel_parameters(self) -> list[tuple[str, NDArray[Any]]]:
        """Arrays by channel: name and values."""
        return []

    def row_parameters(self) -> Sequence[RowParameter]:
        """Stored tensors by row."""
        return ()

    @abstractmethod
    def declare(self, kernel: Kernel) -> EmitStage:
        """Declare scalars and tables as parameters of `kernel`; returns what emits the stage into a body."""


class StageKernel(EpiloguePart):
    """A stage of one op as a part of its kernel."""

    takes_any_byte: ClassVar[bool] = False
    """Whether values between 0 and 255 need no other bounds before the stage."""

    @classmethod
    @abstractmethod
    def of(cls, site: StageSite) -> Self:
        """The kernel's part for the stage at `site`; raises `CompileError` where it cannot be compiled."""

    @classmethod
    def wanted_shift(cls, bounds: Bounds) -> int:
        """The shift with which the stage takes quantized values within `bounds`: that which makes them bytes from 0."""
        return 128 if bounds[0] < 0 else 0


K = TypeVar("K", bound=type[StageKernel])

STAGE_KERNELS: dict[type[Stage], type[StageKernel]] = {}


def lowers_stage(stage_class: type[Stage]) -> Callable[[K], K]:
    """Class decorator: register what computes a stage.

    Raises `ValueError` where something computes it already.
    """

    def register(kernel_class: K) -> K:
        if stage_class in STAGE_KERNELS:
            raise ValueError(f"stage '{stage_class.name}' is lowered already, by {STAGE_KERNELS[stage_class].__name__}")
        STAGE_KERNELS[stage_class] = kernel_class
        return kernel_class

    return register


def _quantization(values: QuantizedType | None, shift: int) -> Quantization:
    assert values is not None, "the verifier has seen that values are quantized here"
    return Quantization(values.scale, values.zero_point, shift)
