"""Types of the `quant` dialect."""

from collections.abc import Sequence

from torch_mlir import ir

class QuantizedType(ir.Type):
    @property
    def is_signed(self) -> bool: ...
    @property
    def storage_type(self) -> ir.Type: ...
    @property
    def storage_type_integral_width(self) -> int: ...
    @property
    def storage_type_min(self) -> int: ...
    @property
    def storage_type_max(self) -> int: ...
    @property
    def expressed_type(self) -> ir.Type: ...

class UniformQuantizedType(QuantizedType):
    @staticmethod
    def get(
        flags: int,
        storage_type: ir.Type,
        expressed_type: ir.Type,
        scale: float,
        zero_point: int,
        storage_type_min: int,
        storage_type_max: int,
    ) -> UniformQuantizedType: ...
    @property
    def scale(self) -> float: ...
    @property
    def zero_point(self) -> int: ...

class UniformQuantizedPerAxisType(QuantizedType):
    @staticmethod
    def get(
        flags: int,
        storage_type: ir.Type,
        expressed_type: ir.Type,
        scales: Sequence[float],
        zero_points: Sequence[int],
        quantized_dimension: int,
        storage_type_min: int,
        storage_type_max: int,
    ) -> UniformQuantizedPerAxisType: ...
    @property
    def scales(self) -> Sequence[float]: ...
    @property
    def zero_points(self) -> Sequence[int]: ...
    @property
    def quantized_dimension(self) -> int: ...

class UniformQuantizedSubChannelType(QuantizedType):
    @property
    def scales(self) -> ir.DenseElementsAttr: ...
    @property
    def zero_points(self) -> ir.DenseElementsAttr: ...
    @property
    def quantized_dimensions(self) -> list[int]: ...
    @property
    def block_sizes(self) -> list[int]: ...
