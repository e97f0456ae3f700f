"""Resize, Upsample and GridSample: nearest elements are moved as quantized values, others interpolated in f32."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial, reduce

import numpy as np

from qdialect.arithmetic.choices import Coordinates, Interpolation, Nearest, Ratio
from qdialect.arithmetic.resize import cubic, filter_taps, nearest_indices, source_coordinates, triangle
from qdialect.dialect import DequantizeOp, ResizeBilinearOp
from qdialect.dialect.type_constraints import shape_of
from qdialect.frontends.building.checks import Array, Shape, UnsupportedError, axes_in, require
from qdialect.frontends.building.slices import check_indices, gather
from qdialect.frontends.onnx.operators.data_movement import integers_of
from qdialect.frontends.onnx.operators.registry import Call, Quantized, imports, part_of
from qdialect.frontends.planning.emitter import Emitted, Emitter, Value
from qdialect.frontends.planning.movement import Gathering, move
from qdialect.frontends.planning.tensors import EIGHT_BIT, Computed, Constant, F32Tensor, Plan, Tensor
from qdialect.ir._mlir import ir

# Resize and Upsample: nearest elements are moved as quantized values, others are interpolated in f32.

_COORDINATES = {
    "asymmetric": Coordinates.ASYMMETRIC,
    "half_pixel": Coordinates.HALF_PIXEL,
    "half_pixel_symmetric": Coordinates.HALF_PIXEL,
    "pytorch_half_pixel": Coordinates.PYTORCH_HALF_PIXEL,
    "align_corners": Coordinates.ALIGN_CORNERS,
    "tf_half_pixel_for_nn": Coordinates.TF_HALF_PIXEL,
}
_IRRELEVANT = {
    "nearest": ("antialias", "cubic_coeff_a"),
    "linear": ("nearest_mode", "cubic_coeff_a"),
    "bilinear": ("nearest_mode", "cubic_coeff_a"),
    "cubic": ("nearest_mode",),
}
"""Attributes that a mode does not read."""
# Of images [N, C, H, W].
_ROWS, _COLUMNS = 2, 3


@dataclass(frozen=True)
class Scaled:
    """A dimension's extent before and after, and the float32 scale that the model gives."""

    extent: int
    size: int
    scale: float

    @property
    def is_ratio(self) -> bool:
        """Whether the scale is just the ratio of the extents."""
        return bool(np.float32(self.scale) == np.float32(self.size) / np.float32(self.extent))


def _dequantized(plan: Plan, name: str, source: Quantized) -> Value:
    """The f32 values, channels last: bytes are transposed before they become f32 values, which is cheaper."""

    def emit(emitter: Emitter) -> Emitted:
        parameters = {"scales": source.scales, "zero_points": source.zero_points}
        return emitter.build(DequantizeOp, emitter.last(source.values), element="f32", **parameters), True

    return plan.compute(name, source.shape, "f32", emit)


def _interpolate(plan: Plan, name: str, value: Value, shape: Shape, coordinates: Coordinates) -> Value:
    def emit(emitter: Emitter) -> Emitted:
        choices = {"coordinates": coordinates, "arithmetic": Interpolation.ONNX_FLOAT}
        held = emitter.last(value)
        return emitter.build(ResizeBilinearOp, held, element=value.element, size=shape[_ROWS:], **choices), True

    return plan.compute(name, shape, value.element, emit)


@imports("Resize", "Upsample")
def _resize(call: Call) -> Tensor:
    """Before operator set 11, which brought a third input, coordinates were asymmetric and rounded down."""
    is_old = call.node.kind == "Upsample" or len(call.inputs) == 2
    call.ignore("extrapolation_value")
    source = call.tensor(0)
    shape = source.shape
    mode: str = call.attribute("mode", "nearest")
    require(mode in _IRRELEVANT, f"mode must be {' or '.join(_IRRELEVANT)}, but got {mode}")
    call.ignore(*_IRRELEVANT[mode])
    policy: str = call.attribute("keep_aspect_ratio_policy", "stretch")
    require(policy == "stretch", f"keep_aspect_ratio_policy must be stretch, but got {policy}")
    name = "asymmetric" if is_old else call.attribute("coordinate_transformation_mode", "half_pixel")
    require(name in _COORDINATES, f"coordinate_transformation_mode must be {' or '.join(_COORDINATES)}, but got {name}")
    coordinates = _COORDINATES[name]
    dimensions = _dimensions(call, shape, is_old)
    # The result is centered on the input, which makes a difference where extents are rounded down alone.
    if all(dimension.size == dimension.extent for dimension in dimensions):
        # Whatever the scales are.
        call.ignore("antialias", "cubic_coeff_a", "exclude_outside", "nearest_mode")
        return source
    is_sound = name != "half_pixel_symmetric" or all(dimension.is_ratio for dimension in dimensions)
    require(is_sound, "scales of half_pixel_symmetric must be the ratios of the extents")
    has_filter = mode != "nearest" and call.flag("antialias", 0)
    if mode == "cubic" or has_filter:
        # A filter against aliasing leaves dimensions alone that keep their extent.
        kept = [replace(one, scale=1.0) if has_filter and one.size == one.extent else one for one in dimensions]
        return filtered(call, kept, coordinates)
    if mode == "nearest":
        require(name != "half_pixel_symmetric", "coordinates of half_pixel_symmetric, in float64, must be interpolated")
        return _nearest(call, source, dimensions, coordinates, is_old)
    return _linear(call, source, dimensions, coordinates)


def _dimensions(call: Call, shape: Shape, is_old: bool) -> list[Scaled]:
    """Every dimension with its scale, from the inputs `scales` and `sizes`."""
    sizes = None if is_old else integers_of(call, 3, "sizes")
    scales = _scales(call, 1 if is_old else 2)
    axes = axes_in(call.attribute("axes", [0]) if "axes" in call.node.attributes else range(len(shape)), len(shape))
    given = sizes if sizes else scales
    if given is None or len(given) != len(axes):
        raise UnsupportedError(f"scales or sizes must have {len(axes)} entries, but got {given}")
    found = [Scaled(extent, extent, 1.0) for extent in shape]
    for axis, entry in zip(axes, given, strict=True):
        extent = shape[axis]
        size = int(entry) if sizes else math.floor(np.float32(extent) * np.float32(entry))
        require(size >= 1, f"result must not be empty, but got {size} along dimension {axis}")
        scale = np.float32(size) / np.float32(extent) if sizes else np.float32(entry)
        found[axis] = Scaled(extent, size, float(scale))
    return found


def _scales(call: Call, index: int) -> Sequence[float] | None:
    if call.optional(index) is None:
        return call.attribute("scales", [1.0]) if "scales" in call.node.attributes else None
    array = call.constant(index).ravel()
    require(array.dtype == np.float32, f"scales must be f32, but got {array.dtype}")
    require(bool(np.isfinite(array).all()), "scales must be finite")
    return [float(scale) for scale in array] if array.size else None


def _nearest(
    call: Call, source: Tensor, dimensions: Sequence[Scaled], coordinates: Coordinates, is_old: bool
) -> Tensor:
    kinds = [_nearest_of(call, dimension, is_old) for dimension in dimensions]
    moving = [i for i, one in enumerate(dimensions) if one.size != one.extent or not one.is_ratio]
    for axis in moving:
        one = dimensions[axis]
        check_indices(one.size, call.plan.budget)
        found = source_coordinates(coordinates, Ratio.DIVIDE, one.extent, one.size, one.scale)
        indices = tuple(map(int, nearest_indices(found, kinds[axis], one.extent, Ratio.DIVIDE)))
        source = move(call.plan, call.name, source, Gathering.of(source.shape, axis, indices))
    return source


def _nearest_of(call: Call, dimension: Scaled, is_old: bool) -> Nearest:
    """Old operator sets round a coordinate down where the tensor grows, up where it shrinks."""
    if is_old:
        return Nearest.CEIL if dimension.scale < 1 else Nearest.FLOOR
    name: str = call.attribute("nearest_mode", "round_prefer_floor")
    require(name in set(Nearest), f"nearest_mode must be {' or '.join(Nearest)}, but got {name}")
    return Nearest(name)


def _linear(call: Call, source: Tensor, dimensions: Sequence[Scaled], coordinates: Coordinates) -> Tensor:
    shape = tuple(dimension.size for dimension in dimensions)
    moving = {i for i, dimension in enumerate(dimensions) if dimension.size != dimension.extent}
    are_ratios = coordinates is Coordinates.ALIGN_CORNERS or all(dimension.is_ratio for dimension in dimensions)
    if not moving and are_ratios:
        return source
    if len(shape) != 4 or not moving <= {_ROWS, _COLUMNS} or not are_ratios:
        return filtered(call, dimensions, coordinates)
    if isinstance(source, Constant | F32Tensor):
        data = call.f32(0)
        if isinstance(data, Quantized) and len(data.scales) == 1:
            value = _dequantized(call.plan, call.name, data)
        else:
            value = data.f32(call.plan, call.name)
        return Computed(shape, _interpolate(call.plan, call.name, value, shape, coordinates))
    require(source.element in EIGHT_BIT, f"input of mode linear must be i8, ui8 or f32, but got {source.element}")
    return _interpolate(call.plan, call.name, source, shape, coordinates)


# Resize by cubic filters, against aliasing, and linear of any rank: along each dimension from the last one on, the sum
# of a filter's taps in their order, as in ONNX Runtime.  What is infinite spreads no further than they reach.

_COEFFICIENT = -0.75
_CUBIC_SUPPORT, _TRIANGLE_SUPPORT = 2, 1
_MAX_REACH = 32
"""On either side: each tap is an op."""


def filtered(call: Call, dimensions: Sequence[Scaled], coordinates: Coordinates) -> Computed:
    """Input 0 as f32 values, resized along every dimension whose extent changes."""
    source = call.f32(0).f32(call.plan, call.name)
    moving = [axis for axis, one in enumerate(dimensions) if one.size != one.extent or one.scale != 1]
    taps = {axis: _taps(call, dimensions[axis], coordinates) for axis in moving}
    shape = tuple(one.size for one in dimensions)
    require(len(shape) >= 1, "input must have at least 1 dimension, but got 0")

    def emit(emitter: Emitter) -> Emitted:
        value = emitter.to_channels_first(source)
        for axis in sorted(taps, reverse=True):
            value = _along(emitter, value, axis, *taps[axis])
        return value, False

    return Computed(shape, call.plan.compute(call.name, shape, "f32", emit))


def _along(emitter: Emitter, value: ir.Value, axis: int, elements: Array, weights: Array) -> ir.Value:
    """The sum of `elements` along `axis` times their `weights`, both [taps, size]."""
    shape = shape_of(value.type)
    spread = (-1, *(1 for _ in shape[axis + 1 :]))
    terms = [
        emitter.f32("mulf", gather(emitter, value, axis, own), emitter.constant(weight.reshape(spread)))
        for own, weight in zip(elements.tolist(), weights, strict=True)
    ]
    return reduce(partial(emitter.f32, "addf"), terms)


def _taps(call: Call, dimension: Scaled, coordinates: Coordinates) -> tuple[Array, Array]:
    extent, size, scale = dimension.extent, dimension.size, dimension.scale
    found = source_coordinates(coordinates, Ratio.DIVIDE, extent, size, scale)
    is_cubic = call.attribute("mode", "nearest") == "cubic"
    function = cubic(call.attribute("cubic_coeff_a", _COEFFICIENT)) if is_cubic else triangle
    support = _CUBIC_SUPPORT if is_cubic else _TRIANGLE_SUPPORT
    shrinks = call.flag("antialias", 0) and scale < 1
    reach = support / scale if shrinks else support
    require(reach <= _MAX_REACH, f"a filter must reach at most {_MAX_REACH} elements, but got {reach:.6g}")
    check_indices(2 * math.ceil(reach) * size, call.plan.budget)
    excludes = call.flag("exclude_outside", 0)
    found = found.astype(np.float64 if shrinks else np.float32)
    return filter_taps(function, support, found, extent, stretch=reach / support, excludes_outside=excludes)


# GridSample: an image read at positions that are computed, between its elements too.
#
# It is made of arithmetic on the positions and one Gather of pixels for each neighbour of a position.

_INT64 = 7
_MODES = {"bilinear": "linear", "linear": "linear", "nearest": "nearest"}
_PADDINGS = ("zeros", "border")
_LARGEST_WHOLE = 2**24
"""Numbers of elements up to this one are exact in float32."""


@imports("GridSample")
def _grid_sample(call: Call) -> Tensor:
    """Of images [N, C, H, W] at positions [N, P, Q, 2], x before y: [N, C, P, Q]."""
    image, grid = call.f32(0).shape, call.f32(1).shape
    require(len(image) == 4, f"input 0 must have 4 dimensions, but got {len(image)}")
    fits = len(grid) == 4 and grid[0] == image[0] and grid[3] == 2
    require(fits, f"input 1 must have the shape {[image[0], 'P', 'Q', 2]}, but got {list(grid)}")
    require(image[2] * image[3] <= _LARGEST_WHOLE, f"images must have at most 2^24 elements, but got {list(image)}")
    mode, padding = call.attribute("mode", "linear"), call.attribute("padding_mode", "zeros")
    require(mode in _MODES, f"mode must be {', '.join(_MODES)}, but got {mode}")
    require(padding in _PADDINGS, f"padding_mode must be {' or '.join(_PADDINGS)}, but got {padding}")
    sampling = _Sampling(call, image, grid, padding == "zeros")
    found = sampling.nearest() if _MODES[mode] == "nearest" else sampling.linear()
    pixels = sampling.part("Reshape", found, _integers(*grid[:3], image[1]))
    return sampling.part("Transpose", pixels, perm=[0, 3, 1, 2])


def _integers(*entries: int) -> Constant:
    return Constant(np.array(entries, np.int64))


@dataclass(frozen=True)
class _Sampling:
    """The parts of a node; a position is [N * P * Q, 1] along each dimension of the image."""

    call: Call
    image: Shape
    grid: Shape
    has_zeros: bool
    """Whether there are zeros around the image; otherwise its border goes on."""

    def part(self, kind: str, *operands: Tensor | float, **attributes: object) -> Tensor:
        """The result of an operator; numbers are constants."""
        tensors = [Constant(np.array(one, np.float32)) if isinstance(one, int | float) else one for one in operands]
        return part_of(self.call, kind, tensors, **attributes)

    def nearest(self) -> Tensor:
        """[N * P * Q, C]: the pixel next to each position."""
        return self._elements([self.part("Round", self._position(axis)) for axis in range(2)])

    def linear(self) -> Tensor:
        """[N * P * Q, C]: the four pixels around each position, each by the distance of the other ones."""
        positions = [self._position(axis) for axis in range(2)]
        lows = [self.part("Floor", position) for position in positions]
        ends = [(low, self.part("Add", low, 1)) for low in lows]
        shares = [
            (self.part("Sub", high, position), self.part("Sub", position, low))
            for position, (low, high) in zip(positions, ends, strict=True)
        ]
        rows = [
            self.part("Add", *(self.part("Mul", shares[0][x], self._elements([ends[0][x], y])) for x in range(2)))
            for y in ends[1]
        ]
        return self.part("Add", *(self.part("Mul", *pair) for pair in zip(shares[1], rows, strict=True)))

    def _position(self, axis: int) -> Tensor:
        """From [-1, 1] to elements; x, of the last dimension of the image, is the first entry of the grid."""
        extent, rank = self.image[3 - axis], len(self.grid)
        own = self.part("Slice", self.call.tensor(1), _integers(axis), _integers(axis + 1), _integers(rank - 1))
        flat = self.part("Reshape", own, _integers(-1, 1))
        moved = self.part("Add", flat, 1)
        if self.call.flag("align_corners", 0):
            return self.part("Mul", self.part("Div", moved, 2), extent - 1)
        return self.part("Div", self.part("Sub", self.part("Mul", moved, extent), 1), 2)

    def _elements(self, at: Sequence[Tensor]) -> Tensor:
        """[N * P * Q, C]: the pixels at whole numbers x and y."""
        batch, _, height, width = self.image
        inside = [self.part("Clip", one, 0, extent - 1) for one, extent in zip(at, (width, height), strict=True)]
        numbers = self.part("Cast", self.part("Add", self.part("Mul", inside[1], width), inside[0]), to=_INT64)
        firsts = np.repeat(np.arange(batch) * height * width, self.grid[1] * self.grid[2])
        places = self.part("Add", self.part("Reshape", numbers, _integers(-1)), Constant(firsts))
        found = self.part("Gather", self._pixels, places, axis=0)
        if not self.has_zeros:
            return found
        x, y = (self.part("Equal", one, own) for one, own in zip(at, inside, strict=True))
        return self.part("Where", self.part("And", x, y), found, 0)

    @cached_property
    def _pixels(self) -> Tensor:
        """[N * H * W, C]."""
        image = Computed(self.image, self.call.f32(0).f32(self.call.plan, self.call.name))
        return self.part("Reshape", self.part("Transpose", image, perm=[0, 2, 3, 1]), _integers(-1, self.image[1]))
