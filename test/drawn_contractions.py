"""Drawn convolutions and matrix products, alone and in chains."""

from collections.abc import Sequence
from math import sqrt
from typing import Any

import numpy as np
from drawn_ops import Build, Draw, Drawn, drawn_module, tensor

from qdialect import dialect as qnn
from qdialect.arithmetic import Activation, AddArithmetic, Multiplier, Rounding, Scaling
from qdialect.arithmetic.activations import STAGE_ACTIVATIONS
from qdialect.dialect.constants import constant
from qdialect.dialect.contraction_ops import shortened
from qdialect.dialect.stages.builtin_stages import (
    ActivationStage,
    AddStage,
    ClampStage,
    DequantizeStage,
    LutStage,
    QuantizeStage,
    RequantizeStage,
    SumStage,
)
from qdialect.dialect.stages.stage_base import Stage
from qdialect.dialect.type_constraints import ELEMENT_RANGES, QuantizedType, element_of, shape_of
from qdialect.ir._mlir import ir

# Root mean square of a random code less its zero point, more or less.
_SPREAD = 75.0


def _stages(d: Draw, element: str, accumulated: float, residual: str | None, *, with_f32: bool) -> dict[str, Any]:
    """Output and epilogue of accumulators of the real size `accumulated`, for a result of type `element`."""
    with_table = d.flag()
    # The last stage's values are the result's; a table may translate from the other type.
    before = d.element() if with_table else element
    early = with_f32 and residual is not None and d.flag()
    first = d.element() if residual is not None and not early else before
    bounds = d.bounds(first)
    # Multipliers far from the usual ones have shifts of their own.
    extreme = d.one_of((1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 2.0**-18, 2.0**18))
    scale = max(accumulated, 1e-6) / 60 * d.scale(0.3, 5.0) * extreme
    how: dict[str, Any] = {"rounding": d.rounding(), "multiplier": d.multiplier()}
    own: dict[str, Any] = {"scale": scale, "zero_point": d.zero_point(first), "element": first}
    stages = list[Stage]([RequantizeStage(**how, **own)])
    if with_f32:
        stages = _f32_stages(d, how["multiplier"], own)
    stages.append(ClampStage(min=bounds[0], max=bounds[1]))
    if early:
        stages[1:1] = [SumStage(**_residual_parameters(d, scale, residual))]
    elif residual is not None:
        own, added = _added(d, scale, before, residual)
        stages += added
    if with_table:
        own = {"scale": 0.5, "zero_point": d.zero_point(element), "element": element}
        stages.append(LutStage(**own, table=d.table()))
    output = QuantizedType(**own)
    epilogue = shortened(stages, output)
    return {"output_scale": output.scale, "output_zero_point": output.zero_point, "epilogue": epilogue}


def _f32_stages(d: Draw, multiplier: Multiplier, own: dict[str, Any]) -> list[Stage]:
    """The stages of f32 values, with one rounding."""
    activation = d.one_of((None, *STAGE_ACTIVATIONS))
    rounding = d.one_of([rounding for rounding in Rounding if not rounding.is_fixed])
    scaling = d.one_of(tuple(Scaling))
    has_alpha = activation is not None and activation.has_alpha
    alpha = d.one_of((0.01, 0.25, 1.0, -2.0)) if has_alpha else 0.0
    activated = [] if activation is None else [ActivationStage(function=activation, alpha=alpha)]
    return [
        DequantizeStage(multiplier=multiplier),
        *activated,
        QuantizeStage(rounding=rounding, scaling=scaling, **own),
    ]


def _added(d: Draw, scale: float, element: str, residual: str) -> tuple[dict[str, Any], list[Stage]]:
    """The meaning of the sum with a residual, of type `element`, and its stages."""
    is_lhs = d.one_of((False, True))
    residual_scale = scale * d.scale(0.2, 3.0)
    how: dict[str, Any] = {
        "arithmetic": d.one_of(tuple(AddArithmetic)),
        "rounding": d.rounding(),
        "multiplier": d.multiplier(),
    }
    low, high = d.bounds(element)
    own: dict[str, Any] = {"scale": scale * d.scale(0.5, 3.0), "zero_point": d.zero_point(element), "element": element}
    zero_point = d.zero_point(residual)
    parameters: dict[str, Any] = {
        "residual_scale": residual_scale,
        "residual_zero_point": zero_point,
        "residual_is_lhs": is_lhs,
    }
    return own, [AddStage(**parameters, **how, **own), ClampStage(min=low, max=high)]


def _residual_parameters(d: Draw, scale: float, residual: str | None) -> dict[str, Any]:
    assert residual is not None
    return {"residual_scale": scale * d.scale(0.2, 3.0), "residual_zero_point": d.zero_point(residual)}


def _parameters(d: Draw, data: str, weight: str, channels: int) -> dict[str, Any]:
    return {
        "input_scale": d.scale(),
        "input_zero_point": d.zero_point(data),
        "weight_scales": d.scales(channels),
        "weight_zero_points": d.zero_points(weight, channels),
    }


def _bias(d: Draw, data: str, weight: str, shape: Sequence[int], parameters: dict[str, Any]) -> ir.Value:
    """A bias that brings the mean of the accumulators near 0, so that results differ; at times any other."""
    acc_range = d.one_of((0, 1000, 1000, 1000, 1000, 1 << 20, 2**31 - 1))
    # With the largest reach accumulators leave the range of int32, and wrap.
    bias = d.rng.integers(-acc_range, acc_range, shape[0], endpoint=True)
    if acc_range <= 1000:
        middle = {element: sum(ELEMENT_RANGES[element]) / 2 for element in (data, weight)}
        around = middle[data] - parameters["input_zero_point"]
        products = around * (middle[weight] - np.array(parameters["weight_zero_points"]))
        bias -= np.rint(products * np.prod(shape[1:])).astype(np.int64)
    return constant(bias.astype(np.int32))


def _fused(
    d: Draw,
    op: type[qnn.FusedOp],
    x: ir.Value,
    shape: Sequence[int],
    residual: ir.Value | None,
    weights: ir.Value | None = None,
    **extra: Any,
) -> ir.Value:
    """A fused op on `x`, with drawn weights of `shape` unless there are some; the channels come first in `shape`."""
    weight = d.element() if weights is None else element_of(weights.type)
    element = d.element()
    attributes = _parameters(d, element_of(x.type), weight, shape[0])
    f32 = attributes["input_scale"] * max(attributes["weight_scales"]) * _SPREAD**2 * sqrt(np.prod(shape[1:]))
    with_f32 = d.integer(0, 2) == 0
    of_residual = None if residual is None else element_of(residual.type)
    attributes |= _stages(d, element, f32, of_residual, with_f32=with_f32)
    bias = _bias(d, element_of(x.type), weight, shape, attributes)
    if with_f32 and d.flag():
        bias = constant((d.rng.normal(size=shape[0]) * f32).astype(np.float32))
    operands = (x, d.values_constant(weight, shape) if weights is None else weights, bias, residual)
    return qnn.build(op, *operands, element=element, **attributes, **extra).operation.results[0]


def _window(d: Draw, height: int, width: int) -> tuple[tuple[int, int], dict[str, Any]]:
    """Kernel size that fits, with strides, padding and dilation."""
    padding = [d.integer(0, 2) for _ in range(4)] if d.flag() else [0] * 4
    padded = (height + padding[0] + padding[2], width + padding[1] + padding[3])
    kernel = [min(d.integer(1, 5), extent) for extent in padded]
    if d.integer(0, 4) == 0:
        # As wide as the input: the rows of the window are one run.
        kernel[1] = padded[1]
    dilation = [d.integer(1, 3) if (k - 1) * 3 < extent else 1 for k, extent in zip(kernel, padded, strict=True)]
    values = {"strides": (d.integer(1, 3), d.integer(1, 3)), "padding": tuple(padding), "dilation": tuple(dilation)}
    return (kernel[0], kernel[1]), values


def _image(d: Draw, channels: int) -> tuple[int, int, int, int]:
    return d.integer(1, 2), d.integer(1, 19), d.integer(1, 19), channels


def _conv_on(d: Draw, x: ir.Value, channels: int, groups: int) -> ir.Value:
    _, height, width, depth = shape_of(x.type)
    kernel, window = _window(d, height, width)
    return _fused(d, qnn.FusedConv2DOp, x, (channels, *kernel, depth // groups), None, groups=groups, **window)


def _convolution(d: Draw) -> tuple[Sequence[str], Build]:
    groups = d.one_of((1, 1, 1, 2, 3, 4))
    depth, channels = d.channels(), d.channels()
    depth, channels = -(-depth // groups) * groups, -(-channels // groups) * groups
    types = [tensor(_image(d, depth), d.element())]
    return types, lambda v: _conv_on(d, v[0], channels, groups)


def _depthwise(d: Draw) -> tuple[Sequence[str], Build]:
    depth = d.channels()
    times = d.one_of((1, 1, 1, 2, 3))
    return [tensor(_image(d, depth), d.element())], lambda v: _conv_on(d, v[0], depth * times, depth)


def _transposed(d: Draw) -> tuple[Sequence[str], Build]:
    """Strides beyond the kernel, so that nothing reaches some pixels, among all others; perhaps a second input."""
    groups = d.one_of((1, 1, 1, 2, 3, 4))
    depth, channels = d.channels(), d.channels()
    depth, channels = -(-depth // groups) * groups, -(-channels // groups) * groups
    if d.integer(0, 3) == 0:
        groups = channels = depth
    image = (d.integer(1, 2), d.integer(1, 9), d.integer(1, 9), depth)
    kernel, strides, dilation = ((d.integer(1, maximum), d.integer(1, maximum)) for maximum in (4, 3, 2))
    extra = (d.integer(0, 2), d.integer(0, 2))
    full = [(image[1 + i] - 1) * strides[i] + (kernel[i] - 1) * dilation[i] + 1 + extra[i] for i in range(2)]
    top, left = (d.integer(0, min(2, extent - 1)) for extent in full)
    bottom, right = (d.integer(0, min(2, extent - 1 - first)) for extent, first in zip(full, (top, left), strict=True))
    window: dict[str, Any] = {
        "strides": strides,
        "dilation": dilation,
        "output_padding": extra,
        "padding": (top, left, bottom, right),
    }
    types = [tensor(image, d.element())]
    if d.flag():
        types.append(tensor((image[0], full[0] - top - bottom, full[1] - left - right, channels), d.element()))
    shape = (channels, *kernel, depth // groups)

    def body(v: Sequence[ir.Value]) -> ir.Value:
        return _fused(d, qnn.FusedConvTranspose2DOp, v[0], shape, [*v, None][1], groups=groups, **window)

    return types, body


def _residual(d: Draw) -> tuple[Sequence[str], Build]:
    """A convolution to which the second input is added, of single pixels or depthwise."""
    image = _image(d, d.channels())
    if d.flag():
        acc_range = d.integer(0, 2), d.integer(0, 2)
        types = [tensor(image, d.element()), tensor(image, d.element())]
        window: dict[str, Any] = {"strides": (1, 1), "dilation": (1, 1), "padding": (*acc_range, *acc_range)}
        shape = (image[3], 2 * acc_range[0] + 1, 2 * acc_range[1] + 1, 1)
        return types, lambda v: _fused(d, qnn.FusedConv2DOp, v[0], shape, v[1], groups=image[3], **window)
    channels = d.channels()
    types = [tensor(image, d.element()), tensor((*image[:3], channels), d.element())]
    return types, lambda v: _fused(d, qnn.FusedConv2DOp, v[0], (channels, 1, 1, image[3]), v[1])


def _dense(d: Draw) -> tuple[Sequence[str], Build]:
    depth, channels = d.channels(), d.channels()
    lead = [d.integer(1, 5) for _ in range(d.integer(0, 3))]
    types = [tensor((*lead, depth), d.element())]
    if d.flag():
        return types, lambda v: _fused(d, qnn.FusedDenseOp, v[0], (channels, depth), None)
    types.append(tensor((*lead, channels), d.element()))
    return types, lambda v: _fused(d, qnn.FusedDenseOp, v[0], (channels, depth), v[1])


def _matmul(d: Draw) -> tuple[Sequence[str], Build]:
    """Two operands, or three with a residual, whose leading dimensions broadcast."""
    depth, channels, rows = d.channels(), d.channels(), d.integer(1, 9)
    lead = [d.integer(1, 3) for _ in range(d.integer(0, 3))]
    left, right = ([1 if d.integer(0, 3) == 0 else n for n in lead][d.integer(0, len(lead)) :] for _ in range(2))
    whole = [max(pair) for pair in zip(*([1] * (len(lead) - len(one)) + one for one in (left, right)), strict=True)]
    whole = whole[len(lead) - max(len(left), len(right)) :]
    types = [tensor((*left, rows, depth), d.element()), tensor((*right, depth, channels), d.element())]
    if d.flag():
        types.append(tensor((*whole, rows, channels), d.element()))
    return types, lambda v: _fused(d, qnn.FusedMatMulOp, v[0], (channels, depth), [*v, None][2], v[1])


def _chain(d: Draw) -> tuple[Sequence[str], Build]:
    """Convolutions after one another, whose memory the arena shares; every result may be returned."""

    def body(v: Sequence[ir.Value]) -> list[ir.Value]:
        x = v[0]
        values = [x]
        for _ in range(d.integer(2, 4)):
            source = d.one_of(values)
            depth = shape_of(source.type)[3]
            is_depthwise = d.flag()
            channels, groups = (depth, depth) if is_depthwise else (d.channels(), 1)
            values.append(_conv_on(d, source, channels, groups))
        return [values[-1], *(value for value in values[1:-1] if d.flag())]

    return [tensor((1, d.integer(1, 12), d.integer(1, 12), d.channels()), d.element())], body


def _separate(d: Draw) -> tuple[Sequence[str], Build]:
    """A convolution whose accumulators are returned or requantized by an op of its own."""
    depth, channels, data, weight = d.channels(), d.channels(), d.element(), d.element()
    image = _image(d, depth)

    def body(v: Sequence[ir.Value]) -> list[ir.Value]:
        x = v[0]
        kernel, window = _window(d, image[1], image[2])
        parameters = _parameters(d, data, weight, channels)
        shape = (channels, *kernel, depth)
        weights = d.values_constant(weight, shape)
        bias = _bias(d, data, weight, shape, parameters) if d.flag() else None
        sums = qnn.build(qnn.Conv2DOp, x, weights, bias, element="i32", **parameters, **window).output
        f32 = parameters["input_scale"] * max(parameters["weight_scales"]) * _SPREAD**2 * sqrt(np.prod(shape[1:]))
        element = d.element()
        scaled = qnn.build(
            qnn.RequantizeOp,
            sums,
            element=element,
            input_scale=parameters["input_scale"],
            weight_scales=parameters["weight_scales"],
            output_scale=f32 / 60,
            output_zero_point=d.zero_point(element),
            axis=3,
            rounding=d.rounding(),
            multiplier=d.multiplier(),
        ).output
        return [scaled, sums] if d.flag() else [scaled]

    return [tensor(image, data)], body


def _dynamic(d: Draw, data: Sequence[int], shape: Sequence[int], rows: Sequence[int] = (), **extra: Any) -> Drawn:
    """A product of data whose parameters are known at run time, or some of them: with padding the zero point."""
    element, weight, op = d.element(), d.element(), qnn.DynamicConv2DOp if len(shape) == 4 else qnn.DynamicDenseOp
    scale, point = (np.asarray(d.rng.uniform(0.001, 0.1, rows), np.float32), d.quantized(element, rows))
    is_known = d.flag(), d.flag() or any(extra.get("padding", ()))
    types = [tensor(data, element), *(tensor(rows, "f32") for _ in range(not is_known[0]))]
    types += [tensor(rows, element)] * (not is_known[1])
    bias = [d.rng.normal(size=shape[0]).astype(np.float32)] if d.flag() else []
    how: dict[str, Any] = {"weight_scales": d.scales(shape[0]), "weight_zero_points": d.zero_points(weight, shape[0])}
    activation = d.one_of((Activation.NONE, *STAGE_ACTIVATIONS))
    how |= {"scale_last": d.flag(), "activation": activation, "alpha": 0.25 if activation.has_alpha else 0.0, **extra}

    def body(v: Sequence[ir.Value]) -> ir.Value:
        given = iter(v[1:])
        parameters = [constant(held) if k else next(given) for held, k in zip((scale, point), is_known, strict=True)]
        operands = [v[0], d.values_constant(weight, shape), *parameters, *map(constant, bias)]
        return qnn.build(op, *operands, element="f32", **how).operation.results[0]

    return types, body


def _dynamic_dense(d: Draw) -> Drawn:
    lead = [d.integer(1, 5) for _ in range(d.integer(1, 3))]
    depth, channels = d.channels(), d.channels()
    return _dynamic(d, (*lead, depth), (channels, depth), (*lead, 1) if d.flag() else ())


def _dynamic_conv2d(d: Draw) -> Drawn:
    groups = d.one_of((1, 1, 2, 4))
    depth, channels = (-(-d.channels() // groups) * groups for _ in range(2))
    groups, channels = (depth, depth) if d.flag() else (groups, channels)
    image = _image(d, depth)
    kernel, window = _window(d, image[1], image[2])
    return _dynamic(d, image, (channels, *kernel, depth // groups), groups=groups, **window)


CONTRACTIONS = {
    "dynamic_conv2d": drawn_module(_dynamic_conv2d),
    "dynamic_dense": drawn_module(_dynamic_dense),
    "fused_conv2d": drawn_module(_convolution),
    "depthwise": drawn_module(_depthwise),
    "transposed": drawn_module(_transposed),
    "residual": drawn_module(_residual),
    "fused_dense": drawn_module(_dense),
    "matmul": drawn_module(_matmul),
    "chain": drawn_module(_chain),
    "conv2d": drawn_module(_separate),
}
