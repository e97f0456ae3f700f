"""The stages that every fused op may have, on accumulators, f32 values or quantized values."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from qdialect.arithmetic import AddArithmetic, Multiplier, Rounding, Scaling, Table
from qdialect.arithmetic.activations import STAGE_ACTIVATIONS, Activation
from qdialect.dialect.fields import BOOL, F64, I64, SCALE, TABLE, choice
from qdialect.dialect.op_base import require
from qdialect.dialect.stages.stage_base import (
    Domain,
    QuantizedStage,
    Stage,
    StagePosition,
    check_residual_zero_point,
    kind,
    stage,
)

_LARGEST_ALPHA = 2.0**30


@stage("activation")
@dataclass(frozen=True, kw_only=True)
class ActivationStage(Stage):
    """``function(value)`` in the float32 operations of `qdialect.arithmetic.activations`; `alpha` is its parameter.

    Constraints:
      C1: alpha must be 0 if the function has no parameter
      C2: alpha must be in [-2^30, 2^30]
    """

    takes: ClassVar[Domain] = Domain.F32
    leaves: ClassVar[Domain] = Domain.F32
    function: Activation = field(metadata=kind(choice(Activation, STAGE_ACTIVATIONS)))
    alpha: float = field(default=0.0, metadata=kind(F64))

    def check(self, position: StagePosition) -> None:
        alpha, path = self.alpha, position.path
        holds = self.function.has_alpha or alpha == 0
        require(holds, "C1", f"{path} alpha must be 0 for function {self.function}, but got {alpha}")
        require(abs(alpha) <= _LARGEST_ALPHA, "C2", f"{path} alpha must be in [-2^30, 2^30], but got {alpha}")


@stage("add")
@dataclass(frozen=True, kw_only=True)
class AddStage(QuantizedStage):
    """`qnn.add` of the values and the residual, by the same `arithmetic`, `rounding` and `multiplier`.

    The values are its lhs, unless `residual_is_lhs`: ``float_once`` rounds differently with the sides exchanged.

    Constraints:
      C2: residual_zero_point must lie in the residual's range
    """

    takes: ClassVar[Domain] = Domain.QUANTIZED
    reads_residual: ClassVar[bool] = True
    residual_scale: float = field(metadata=kind(SCALE))
    residual_zero_point: int = field(metadata=kind(I64))
    residual_is_lhs: bool = field(default=False, metadata=kind(BOOL))
    arithmetic: AddArithmetic = field(default=AddArithmetic.REQUANTIZE_EACH, metadata=kind(choice(AddArithmetic)))
    rounding: Rounding = field(default=Rounding.FIXED64_UP, metadata=kind(choice(Rounding)))
    multiplier: Multiplier = field(default=Multiplier.F64, metadata=kind(choice(Multiplier)))

    def check(self, position: StagePosition) -> None:
        super().check(position)
        check_residual_zero_point("C2", position, self.residual_zero_point)


@stage("clamp")
@dataclass(frozen=True, kw_only=True)
class ClampStage(Stage):
    """``clamp(value, min, max)``: relu, relu6 and clip become this stage.  Scale, zero point and element type do not
    change.

    Constraints:
      C1: min and max must be ordered and lie in the range of the values
    """

    takes: ClassVar[Domain] = Domain.QUANTIZED
    leaves: ClassVar[Domain] = Domain.QUANTIZED
    min: int = field(metadata=kind(I64))
    max: int = field(metadata=kind(I64))

    def check(self, position: StagePosition) -> None:
        assert position.before is not None, "the op's own constraints come first"
        low, high = position.before.range
        wanted = f"{position.path} min and max must be ordered and in [{low}, {high}]"
        require(low <= self.min <= self.max <= high, "C1", f"{wanted}, but got {self.min} and {self.max}")

    def narrowed(self, bounds: tuple[int, int]) -> tuple[int, int]:
        """`bounds` within those of the clamp."""
        return min(max(bounds[0], self.min), self.max), max(min(bounds[1], self.max), self.min)


@stage("dequantize")
@dataclass(frozen=True, kw_only=True)
class DequantizeStage(Stage):
    """``float32(accumulator) * float32(input_scale * weight_scales[channel])``, plus the bias where that is f32.

    `multiplier` states in which precision the product of the scales is formed.
    """

    takes: ClassVar[Domain] = Domain.ACCUMULATORS
    leaves: ClassVar[Domain] = Domain.F32
    multiplier: Multiplier = field(default=Multiplier.F64, metadata=kind(choice(Multiplier)))


@stage("lut")
@dataclass(frozen=True, kw_only=True, eq=False)
class LutStage(QuantizedStage):
    """``table[value mod 256]``: indices and entries are bit patterns, whatever their element types.

    Constraints:
      C2: it must be the last stage
    """

    takes: ClassVar[Domain] = Domain.QUANTIZED
    table: Table = field(metadata=kind(TABLE))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, LutStage) and self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)

    @property
    def _key(self) -> tuple[object, ...]:
        return self.scale, self.zero_point, self.element, self.table.tobytes()

    def check(self, position: StagePosition) -> None:
        super().check(position)
        require(position.is_channels_last, "C2", f"{position.path} must be the last stage, but another one follows it")


@stage("quantize")
@dataclass(frozen=True, kw_only=True)
class QuantizeStage(QuantizedStage):
    """``round(value / scale) + zero_point`` in float32, or ``value * (1 / scale)``, by `scaling`.

    Ties and zero point are those of `rounding`, which rounds f32 values.

    Constraints:
      C2: rounding must be one that rounds f32 values
    """

    takes: ClassVar[Domain] = Domain.F32
    rounding: Rounding = field(default=Rounding.F32_RNE_ZP_LAST, metadata=kind(choice(Rounding)))
    scaling: Scaling = field(default=Scaling.DIVIDE, metadata=kind(choice(Scaling)))

    def check(self, position: StagePosition) -> None:
        super().check(position)
        wanted = f"{position.path} rounding must be one of f32 values"
        require(not self.rounding.is_fixed, "C2", f"{wanted}, but got {self.rounding}")


@stage("requantize")
@dataclass(frozen=True, kw_only=True)
class RequantizeStage(QuantizedStage):
    """``round(accumulator * M) + zero_point`` with ``M = input_scale * weight_scales[channel] / scale``.

    `multiplier` states in which precision M is formed, `rounding` how the product with it is rounded and when the zero
    point is added.
    """

    takes: ClassVar[Domain] = Domain.ACCUMULATORS
    rounding: Rounding = field(metadata=kind(choice(Rounding)))
    multiplier: Multiplier = field(default=Multiplier.F64, metadata=kind(choice(Multiplier)))


@stage("sum")
@dataclass(frozen=True, kw_only=True)
class SumStage(Stage):
    """``value + float32(residual - residual_zero_point) * float32(residual_scale)``: oneDNN's sum post-op.

    Constraints:
      C1: residual_zero_point must lie in the residual's range
    """

    takes: ClassVar[Domain] = Domain.F32
    leaves: ClassVar[Domain] = Domain.F32
    reads_residual: ClassVar[bool] = True
    residual_scale: float = field(metadata=kind(SCALE))
    residual_zero_point: int = field(metadata=kind(I64))

    def check(self, position: StagePosition) -> None:
        check_residual_zero_point("C1", position, self.residual_zero_point)
