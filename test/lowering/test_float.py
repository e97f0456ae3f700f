"""Float32 functions, quantization and reductions of kernels: compiled they are the reference."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
import torch
from compiled_ops import INTEGERS, TABLE, Attributes, check, check_op, check_variants, ends, tensor, variants_together
from drawn_graphs import graph, op_names, ops_of, run_both
from numpy.typing import NDArray

import qdialect
from qdialect.arithmetic import (
    Activation,
    AddArithmetic,
    BinaryQuantization,
    FloatRounding,
    NanPolicy,
    QuantParams,
    Rounding,
    Scaling,
)
from qdialect.arithmetic.activations import STAGE_ACTIVATIONS
from qdialect.arithmetic.elementwise import add
from qdialect.arithmetic.profiles import ONNX_REFERENCE, PYTORCH, Profile
from qdialect.arithmetic.transcendental import evaluate, expf
from qdialect.dialect import (
    BroadcastOp,
    DequantizeOp,
    F32Conv2DOp,
    F32MatmulOp,
    F32MaxOp,
    F32MinOp,
    F32ProdOp,
    F32SumOp,
    FusedConv2DOp,
    FusedDenseOp,
    FusedOp,
    GatherOp,
    QuantizeOp,
    ReshapeOp,
    build,
)
from qdialect.dialect.constants import constant
from qdialect.dialect.stages.builtin_stages import (
    ActivationStage,
    AddStage,
    ClampStage,
    DequantizeStage,
    LutStage,
    QuantizeStage,
    SumStage,
)
from qdialect.dialect.stages.stage_base import Stage
from qdialect.ir._mlir import arith, ir
from qdialect.lowering.pipeline.phases import Phase, lower
from qdialect.passes.raise_qdq import RaiseQdqPass
from qdialect.reference import interpreter
from qdialect.runtime import compile_module
from qdialect.targets import TARGETS, host_features, resolve
from tools.float_errors import TRUTHS

REDUCTIONS = [
    ((7,), (0,)),
    ((70,), (0,)),
    ((3, 19), (1,)),
    ((3, 19), (0,)),
    ((2, 5, 7, 19), (1, 2)),
    ((2, 5, 7, 19), (0, 3)),
    ((2, 5, 7, 19), (1,)),
    ((2, 3, 5), (0, 1, 2)),
    # Over dimensions of extent 1 and next to them.
    ((5, 7, 1), (2,)),
    ((3, 40, 1), (1, 2)),
    ((5, 1, 33, 1), (1, 2)),
    ((5, 7, 19, 1), (0,)),
    # Along rows of 32 and more, in partial sums.
    ((17, 32), (1,)),
    ((3, 4, 85), (0, 2)),
    ((2, 3, 48), (1, 2)),
    ((3, 2, 35), (1, 2)),
    # Squares of rows, and what is left of their numbers and of the rows.
    ((35, 37), (1,)),
    ((17, 2, 21), (2,)),
    ((16, 1003), (1,)),
    # Short rows that lie side by side are one row.
    ((3, 40, 7), (1, 2)),
    ((2, 9, 3, 16), (0, 2, 3)),
    ((2, 9, 3, 16), (0, 1, 2)),
]


@variants_together
@pytest.mark.parametrize("op", [F32SumOp, F32ProdOp, F32MaxOp, F32MinOp])
@pytest.mark.parametrize(("shape", "axes"), REDUCTIONS)
def test_reductions(op: Any, shape: tuple[int, ...], axes: tuple[int, ...]) -> None:
    check_op(op, [tensor(shape, "f32")], "f32", axes=axes, keep_dims=len(axes) == 2)


@variants_together
@pytest.mark.parametrize(("shape", "axes"), REDUCTIONS)
def test_sums_in_order(shape: tuple[int, ...], axes: tuple[int, ...]) -> None:
    check_op(F32SumOp, [tensor(shape, "f32")], "f32", axes=axes, in_order=True)


def test_normalizations_of_unit_extents() -> None:
    """Minus zero is added to zero, and NaN stays."""
    shape, numbers = (1, 5, 7, 9, 1), [-0.0, np.nan, np.inf, 1e-40, 3.0]
    data = np.resize(np.array(numbers, np.float32), shape)
    data[:, :, :, 5:] = np.random.default_rng(0).normal(size=(1, 5, 7, 4, 1))

    def body(x: ir.Value) -> list[ir.Value]:
        inner = build(F32SumOp, x, element="f32", axes=(4,), keep_dims=True).output
        total = build(F32SumOp, inner, element="f32", axes=(1, 2), keep_dims=True).output
        spread = build(BroadcastOp, total, element="f32", shape=shape).output
        centred = arith.subf(x, arith.divf(spread, constant(np.broadcast_to(np.float32(35), shape))))
        quantized = build(QuantizeOp, centred, element="ui8", scales=(0.1,), zero_points=(7,)).output
        return [inner, centred, build(ReshapeOp, quantized, element="ui8", shape=(5, 7, 9)).output]

    check(graph([tensor(shape, "f32")], body), [data])


TRANSCENDENTAL = ("erf", "exp", "exp2", "expm1", "log", "log1p", "tanh")


def test_functions_in_float64_are_rounded_once() -> None:
    """All functions in one network, with the attribute and without; both differ in some last place."""
    x = np.concatenate([np.random.default_rng(3).normal(size=3000) * 4, [0.0, np.inf, np.nan, -np.inf, -0.0, 1e-40]])
    x, type_ = x.astype(np.float32), tensor((3006,), "f32")
    names = [f"math.{name} %x {note}" for name in TRANSCENDENTAL for note in ("{qnn.in_float64}", "")]
    lines = [f"  %y{i} = {name} : {type_}" for i, name in enumerate(names)]
    results, types = ", ".join(f"%y{i}" for i in range(len(names))), ", ".join([type_] * len(names))
    text = f"func.func @main(%x: {type_}) -> ({types}) {{\n{chr(10).join(lines)}\n  return {results} : {types}\n}}"
    module = qdialect.parse(text)
    check(module, [x])
    wanted = interpreter.run(module, [x])
    with np.errstate(all="ignore"):
        truths = [TRUTHS[name](x.astype(np.float64)).astype(np.float32) for name in TRANSCENDENTAL]
    # That of the C library rounds a few otherwise (test_float32).
    truths[1] = evaluate(expf, x)
    for truth, in_float64, in_float32 in zip(truths, wanted[::2], wanted[1::2], strict=True):
        np.testing.assert_array_equal(in_float64, truth)
        assert (in_float32 != truth)[~np.isnan(truth)].any()


@variants_together
@pytest.mark.parametrize(
    ("guard", "of", "bound", "result"),
    [
        *((guard, of, 0.0, "%chosen") for guard in ("ogt", "oge", "olt") for of in ("%x", "%y")),
        ("ogt", "%x", -1.0, "%chosen"),
        ("ogt", "%x", 0.0, "%both"),
    ],
)
def test_expm1_of_numbers_that_a_comparison_chooses(guard: str, of: str, bound: float, result: str) -> None:
    """Only with "x > 0" or "x >= 0" of its own operand, and read by nothing else, is it that of negative numbers."""
    x, y = (np.random.default_rng(seed).integers(0, 2**32, 2048, np.uint32).view(np.float32) for seed in (1, 2))
    x[:1024] = np.linspace(-20, 20, 1024)
    text = f"""func.func @main(%x: tensor<2048xf32>, %y: tensor<2048xf32>) -> tensor<2048xf32> {{
        %bound = "qnn.constant"() {{value = dense<{bound}> : tensor<2048xf32>}} : () -> tensor<2048xf32>
        %guard = arith.cmpf {guard}, {of}, %bound : tensor<2048xf32>
        %expm1 = math.expm1 %x : tensor<2048xf32>
        %chosen = arith.select %guard, %y, %expm1 : tensor<2048xi1>, tensor<2048xf32>
        %both = arith.maximumf %chosen, %expm1 : tensor<2048xf32>
        func.return {result} : tensor<2048xf32>
      }}"""
    check(qdialect.parse(text), [x, y])


@pytest.mark.parametrize(("name", "subnormal", "smallest"), [("exp", -87.4, -103.97), ("exp2", -126.0, -150.0)])
def test_powers_that_are_subnormal_or_round_to_zero(name: str, subnormal: float, smallest: float) -> None:
    """Every number next to where the results end, many between, and far below."""
    ends = np.array([subnormal, smallest, smallest - 0.5, smallest - 1.5, -105.0, -151.0], np.float32).view(np.int32)
    near = (ends[:, None] + np.arange(-3000, 3000)).astype(np.int32).view(np.float32).reshape(-1)
    between = np.linspace(smallest - 3, subnormal + 1, 60_000)
    far = [-np.inf, np.inf, np.nan, -1e4, -1e9, -3e38, 0.0, -0.0, 1e-45, 88.8, 3e38]
    x = np.concatenate([near, between, np.resize(far, 1000)]).astype(np.float32)
    type_ = tensor(x.shape, "f32")
    module = qdialect.parse(
        f"func.func @main(%x: {type_}) -> {type_} {{ %y = math.{name} %x : {type_} return %y : {type_} }}"
    )
    check(module, [x])
    (wanted,) = interpreter.run(module, [x])
    assert (wanted == 0).any()
    assert ((wanted > 0) & (wanted < 2.0**-126)).any()


@variants_together
@pytest.mark.parametrize("op", [F32MaxOp, F32MinOp])
def test_extremes_of_special_numbers(op: Any) -> None:
    rows = [[0.0, -0.0, -1.0], [-0.0, -0.0, 1.0], [np.nan, 1, 2], [np.inf, -np.inf, 0], [-np.inf] * 3]
    check_op(op, [tensor((5, 3), "f32")], "f32", [np.array(rows, np.float32)], axes=(1,))
    for columns in (37, 85):
        wide = [np.roll([*row, *[row[-1]] * (columns - 3)], 5 * i) for i, row in enumerate(rows)]
        check_op(op, [tensor((5, columns), "f32")], "f32", [np.array(wide, np.float32)], axes=(1,))


@variants_together
@pytest.mark.parametrize("op", [F32MaxOp, F32MinOp])
def test_extremes_from_zero(op: Any) -> None:
    special = [[0.0, -0.0, -0.0], [1, 2, 3], [-1, -2, -3], [np.inf, -np.inf, 0], [np.nan, 1, 2], [-np.nan, 1, 2]]
    for columns in (3, 37, 300):
        rows = [[*row, *[row[-1]] * (columns - 3)] for row in special]
        x = np.array([np.roll(row, 5 * i) for i, row in enumerate(rows)], np.float32)
        for how in ({"from_zero": True}, {"nan_as_zero": True}, {"from_zero": True, "nan_as_zero": True}):
            check_op(op, [tensor(x.shape, "f32")], "f32", [x], axes=(1,), **how)
            check_op(op, [tensor(x.shape, "f32")], "f32", [x], axes=(0,), **how)


@variants_together
@pytest.mark.parametrize("op", [F32MaxOp, F32MinOp])
@pytest.mark.parametrize("index", [0, 64, 140, 4229])
@pytest.mark.parametrize("number", [100.0, -100.0, np.nan])
@pytest.mark.parametrize("shape", [(30, 141), (1, 235, 6, 3), (15, 2, 141)], ids=str)
def test_extremes_of_a_whole_tensor(op: Any, index: int, number: float, shape: tuple[int, ...]) -> None:
    """Wherever the largest number, the smallest and a NaN stand: many accumulators, and numbers left over."""
    values = np.random.default_rng(2).normal(size=30 * 141).astype(np.float32)
    values[index] = number
    for from_zero in (False, True):
        axes = tuple(range(len(shape)))
        check_op(op, [tensor(shape, "f32")], "f32", [values.reshape(shape)], axes=axes, from_zero=from_zero)


@variants_together
@pytest.mark.parametrize("op", [F32MaxOp, F32MinOp, F32SumOp])
@pytest.mark.parametrize("shape", [(1, 126, 64), (1, 7, 70), (2, 5, 17), (3, 4, 130), (9, 3, 40)], ids=str)
def test_reductions_that_keep_channels_and_few_rows(op: Any, shape: tuple[int, ...]) -> None:
    check_op(op, [tensor(shape, "f32")], "f32", axes=(1,))


PRODUCTS = [
    ((3, 5), (5, 19), False),
    ((1, 70), (70, 10), True),
    ((2, 3, 7), (7, 24), True),
    ((2, 3, 7), (2, 7, 5), False),
    ((2, 2, 9, 8), (2, 2, 8, 9), False),
    ((17, 33), (33, 60), False),
    ((9, 20), (20, 91), True),
    ((5, 1), (1, 33), True),
    ((14, 3), (3, 1), True),
    ((15, 1050), (1050, 45), True),
    ((2, 17, 70), (2, 70, 200), False),
    ((30, 1050), (1050, 40), False),
    ((2, 3, 5), (2, 5, 9), True),
]


@variants_together
@pytest.mark.parametrize("rounded", [False, True], ids=["fused", "rounded"])
@pytest.mark.parametrize(("data", "matrix", "is_known"), PRODUCTS)
def test_products_of_matrices(data: tuple[int, ...], matrix: tuple[int, ...], is_known: bool, rounded: bool) -> None:
    numbers: NDArray[np.float32] = np.random.default_rng(0).normal(size=matrix).astype(np.float32)

    def body(*values: ir.Value) -> ir.Value:
        operands = values[0], constant(numbers) if is_known else values[1]
        return build(F32MatmulOp, *operands, element="f32", rounded_products=rounded).output

    check(graph([tensor(data, "f32"), *([] if is_known else [tensor(matrix, "f32")])], body))


EXECUTED = [name for name in ("sse4.1", "avx2", "avx512bw", "host") if resolve(name).features <= host_features()]


@pytest.mark.parametrize("target", EXECUTED)
def test_sums_of_several_steps_are_one_chain_of_products(target: str) -> None:
    rng = np.random.default_rng(0)
    weight, bias = (rng.normal(size=shape).astype(np.float32) for shape in ((1100, 40), (40,)))

    def body(x: ir.Value) -> ir.Value:
        products = build(F32MatmulOp, x, constant(weight), element="f32").output
        spread = build(BroadcastOp, constant(bias), element="f32", shape=(29, 40)).output
        return arith.maximumf(arith.addf(products, spread), constant(np.full((29, 40), -20, np.float32)))

    x = rng.normal(size=(29, 1100)).astype(np.float32)
    x[3, 1024], x[7] = np.inf, -0.0
    module = graph([tensor(x.shape, "f32")], body)
    assert lower(module, resolve(target), Phase.LINALG).labels == ("input 0", "qnn.f32_matmul")
    (wanted,) = interpreter.run(module, [x])
    for threads in (1, 2):
        found: Any = compile_module(module, target=target, threads=threads, min_cycles=1)(x)
        np.testing.assert_array_equal(found.view(np.int32), wanted.view(np.int32))


CONVOLUTIONS = [
    ((1, 5, 7, 3), (8, 3, 3, 3), 1, (1, 1), (1, 1)),
    ((2, 6, 6, 19), (19, 3, 2, 1), 19, (2, 1), (1, 2)),
    ((1, 4, 4, 6), (10, 1, 1, 3), 2, (1, 1), (1, 1)),
    ((1, 4, 4, 4), (8, 2, 2, 1), 4, (2, 2), (1, 1)),
    ((1, 1, 1, 1), (1, 1, 1, 1), 1, (1, 1), (1, 1)),
]


@variants_together
@pytest.mark.parametrize("rounded", [False, True], ids=["fused", "rounded"])
@pytest.mark.parametrize(("data", "weight", "groups", "strides", "dilation"), CONVOLUTIONS)
def test_convolutions(
    data: Any, weight: tuple[int, ...], groups: int, strides: Any, dilation: Any, rounded: bool
) -> None:
    numbers: NDArray[np.float32] = np.random.default_rng(0).normal(size=weight).astype(np.float32)

    def body(x: ir.Value) -> ir.Value:
        attributes: dict[str, Any] = {"strides": strides, "dilation": dilation, "groups": groups}
        attributes["rounded_products"] = rounded
        return build(F32Conv2DOp, x, constant(numbers), element="f32", **attributes).output

    check(graph([tensor(data, "f32")], body))


# Float32 numbers become quantized values as the reference has them: around ties, and for scales that are easy.

POWERS = [2.0**exponent for exponent in (-149, -128, -127, -126, -125, -4, -1, 0, 1, 7, 30)]


def around(numbers: NDArray[np.float32]) -> NDArray[np.float32]:
    """Each number with its neighbours, and all of them negated."""
    bits = numbers.view(np.int32)[:, np.newaxis] + np.arange(-2, 3, dtype=np.int32)
    near = bits.reshape(-1).view(np.float32)
    return np.concatenate([near, -near])


def ties() -> NDArray[np.float32]:
    """Numbers around whole numbers and halves of every size that float32 has them for."""
    whole = np.unique(np.concatenate([np.arange(1, 200), *(2**e + np.arange(-3, 4) for e in range(3, 31))]))
    halves = np.concatenate([whole, np.append(whole, 0) + 0.5]).astype(np.float32)
    return around(halves)


@variants_together
@pytest.mark.parametrize("element", INTEGERS)
@pytest.mark.parametrize("rounding", FloatRounding)
def test_ties_and_their_neighbours(element: str, rounding: FloatRounding) -> None:
    values = ties()
    variants: list[Attributes] = [{"scales": [1.0], "zero_points": [point], "rounding": rounding} for point in (0, 3)]
    check_variants(QuantizeOp, [tensor(values.shape, "f32")], element, variants, [values])


@variants_together
@pytest.mark.parametrize("scaling", Scaling)
def test_scales_that_are_powers_of_two(scaling: Scaling) -> None:
    special = np.array([0.0, -0.0, np.nan, np.inf, -np.inf], np.float32)
    values = np.concatenate(
        [special, *(around((scale * np.array([0.5, 1, 1.5, 90])).astype(np.float32)) for scale in POWERS)]
    )
    variants: list[Attributes] = [
        {"scales": [scale], "zero_points": [5], "scaling": scaling, "nan": nan}
        for scale, nan in zip(POWERS, [*NanPolicy] * len(POWERS), strict=False)
    ]
    check_variants(QuantizeOp, [tensor(values.shape, "f32")], "ui8", variants, [values])


def test_spare_lanes_are_zero() -> None:
    """Those of rows that a kernel before has written without them."""

    def body(x: ir.Value) -> ir.Value:
        rows = build(GatherOp, x, element="f32", axis=0, indices=(3, 1, 4, 1, 5, 9, 2, 6)).output
        quantized = build(QuantizeOp, arith.mulf(rows, rows), element="ui8", scales=(0.03,), zero_points=(3,)).output
        return build(GatherOp, quantized, element="ui8", axis=0, indices=(2, 0, 1)).output

    module = graph([tensor((10, 19), "f32")], body)
    check(module)
    assert "arith.andi" in str(lower(module, TARGETS["avx512vbmi"], Phase.LINALG).module)


@pytest.mark.parametrize(("scales", "wanted"), [((1.0,), ""), ((0.5, 2.0), "arith.mulf"), ((0.5, 0.7), "arith.divf")])
def test_numbers_are_divided_by_few_scales_alone(scales: tuple[float, ...], wanted: str) -> None:
    """By 1 it is not, and a power of two has a reciprocal."""
    how: Attributes = {"scales": scales, "zero_points": [0], "axis": 1}
    module = graph([tensor((9, 2), "f32")], lambda x: build(QuantizeOp, x, element="i8", **how).output)
    text = str(lower(module, TARGETS["avx512vbmi"], Phase.LINALG).module)
    found = [name for name in ("arith.mulf", "arith.divf") if name in text]
    assert found == [wanted] * bool(wanted)


# Fused ops that round once: scaled, biased, summed and activated as f32 values, compiled as the reference says.

FLOATS = [rounding for rounding in Rounding if not rounding.is_fixed]
INPUT_SCALE, OUTPUT_SCALE = 0.02, 0.0470588244497776


def f32_stages(activation: Activation | None = None, *, before: Sequence[Stage] = (), **how: Any) -> list[Stage]:
    """Stages of f32 values, with one rounding: those of `before`, then an activation."""
    alpha = 0.1 if activation is not None and activation.has_alpha else 0.0
    activated = [] if activation is None else [ActivationStage(function=activation, alpha=alpha)]
    attributes: dict[str, Any] = {"scaling": Scaling.RECIPROCAL, **how}
    return [DequantizeStage(), *before, *activated, QuantizeStage(**attributes)]


def check_fused(
    op: type[FusedOp],
    data: tuple[int, ...],
    weight: tuple[int, ...],
    element: str,
    epilogue: Sequence[Stage],
    residual: tuple[int, ...] | None = None,
    f32_bias: bool = True,
    **attributes: Any,
) -> None:
    """Compiled for every kind of CPU the op gives the bits of the reference."""
    rng, low = np.random.default_rng(5), ends(element)[0]
    channels = weight[0]
    depth = int(np.prod(weight[1:]))
    scales = rng.uniform(0.5, 1.5, channels) / (INPUT_SCALE * 75 * 75 * np.sqrt(depth)) * 3
    bias = rng.normal(size=channels).astype(np.float32) if f32_bias else rng.integers(-500, 500, channels, np.int32)

    def body(*values: ir.Value) -> ir.Value:
        quantized = constant(rng.integers(-128, 128, weight, dtype=np.int8))
        operands = (values[0], quantized, constant(bias), *values[1:])
        parameters: dict[str, Any] = {
            "input_scale": INPUT_SCALE,
            "input_zero_point": low + 128,
            "weight_scales": tuple(scales),
            "output_scale": OUTPUT_SCALE,
            "output_zero_point": low + 37,
            "epilogue": epilogue,
            **attributes,
        }
        return build(op, *operands, element=element, **parameters).operation.results[0]

    shapes = [data] if residual is None else [data, residual]
    check(graph([tensor(shape, element) for shape in shapes], body))


@variants_together
@pytest.mark.parametrize("activation", [None, *STAGE_ACTIVATIONS])
@pytest.mark.parametrize("element", ["i8", "ui8"])
def test_every_activation(activation: Activation | None, element: str) -> None:
    check_fused(FusedDenseOp, (3, 9), (21, 9), element, f32_stages(activation))


@variants_together
@pytest.mark.parametrize("rounding", FLOATS)
@pytest.mark.parametrize("scaling", Scaling)
def test_every_rounding(rounding: Rounding, scaling: Scaling) -> None:
    stages = f32_stages(Activation.HARDSWISH, rounding=rounding, scaling=scaling)
    check_fused(FusedDenseOp, (5, 16), (67, 16), "i8", stages, f32_bias=False, output_scale=2.0**-4)


@variants_together
@pytest.mark.parametrize(("channels", "depth", "groups"), [(5, 3, 1), (17, 6, 1), (12, 12, 12), (6, 4, 2)])
def test_fused_convolutions(channels: int, depth: int, groups: int) -> None:
    weight = (channels, 3, 3, depth // groups)
    window: dict[str, Any] = {"strides": (2, 1), "padding": (1, 1, 1, 1), "groups": groups}
    for element in ("i8", "ui8"):
        check_fused(FusedConv2DOp, (1, 5, 7, depth), weight, element, f32_stages(Activation.SILU), **window)


@variants_together
@pytest.mark.parametrize("activation", [None, Activation.LEAKY_RELU])
@pytest.mark.parametrize("pixels", [1, 11])
def test_a_residual_before_the_rounding(activation: Activation | None, pixels: int) -> None:
    shapes: dict[str, Any] = {"data": (1, 1, pixels, 8), "weight": (19, 1, 1, 8), "residual": (1, 1, pixels, 19)}
    for element in ("i8", "ui8"):
        low, high = ends(element)
        added = SumStage(residual_scale=0.03, residual_zero_point=high)
        stages = [*f32_stages(activation, before=[added]), ClampStage(min=max(0, low), max=high)]
        check_fused(FusedConv2DOp, element=element, epilogue=stages, **shapes)


@variants_together
@pytest.mark.parametrize("residual_is_lhs", [False, True])
def test_a_residual_after_the_rounding_and_a_table(residual_is_lhs: bool) -> None:
    sum_means: dict[str, Any] = {"scale": 0.0712, "zero_point": 37}
    how: dict[str, Any] = {"residual_is_lhs": residual_is_lhs, "arithmetic": AddArithmetic.FLOAT_ONCE, **sum_means}
    stages = [
        *f32_stages(Activation.GELU, scale=OUTPUT_SCALE, zero_point=37),
        AddStage(residual_scale=0.013, residual_zero_point=0, **how),
        LutStage(table=TABLE),
    ]
    output: dict[str, Any] = {"output_scale": 0.5, "output_zero_point": 3}
    check_fused(FusedDenseOp, (7, 8), (33, 8), "ui8", stages, residual=(7, 33), **output)


# Sums of f32 values are one integer op, whatever the scales, and are exact with PyTorch's float32 sums.

QUANTIZED = "tensor<16x16xui8>"


def f32_sum(profile: Profile, seed: int) -> ir.Module:
    """Two tensors of drawn scales, dequantized, added and quantized as `profile` does."""
    scales = np.random.default_rng(seed).uniform(0.005, 0.1, 3).astype(np.float32)

    def body(x: ir.Value, y: ir.Value) -> ir.Value:
        left, right = (
            build(DequantizeOp, quantized, element="f32", scales=(float(scale),), zero_points=(point,)).output
            for quantized, scale, point in ((x, scales[0], 3), (y, scales[1], 201))
        )
        total = arith.addf(left, right)
        parameters: dict[str, Any] = {"scales": (float(scales[2]),), "zero_points": (97,), **profile.quantization}
        return build(QuantizeOp, total, element="ui8", **parameters).output

    return graph([QUANTIZED, QUANTIZED], body)


@pytest.mark.parametrize("profile", [ONNX_REFERENCE, PYTORCH], ids=lambda profile: profile.name)
def test_every_sum_is_an_add(profile: Profile) -> None:
    found = set[str]()
    for seed in range(8):
        after = run_both(f32_sum(profile, seed), RaiseQdqPass())
        assert op_names(after) == ["qnn.add"]
        found.add(ops_of(after, "qnn.add")[0].arithmetic)
    # Where it never differs for the scales at hand, ONNX Runtime's sum is found first.
    assert found == {AddArithmetic.FLOAT_ONCE, profile.addition}


@pytest.mark.filterwarnings("ignore:.*deprecated")
def test_pytorch_adds_the_same() -> None:
    left, right, output = QuantParams(0.0371, 3), QuantParams(0.0123, 201), QuantParams(0.0449, 97)
    rows, columns = np.meshgrid(np.arange(256), np.arange(256), indexing="ij")
    quantization = BinaryQuantization(left, right, output, (0, 255))
    found = add(rows, columns, quantization, PYTORCH.addition, PYTORCH.rounding, PYTORCH.multiplier)
    first, second = (
        (torch.tensor(quantized) - side.zero_point).to(torch.float32) * side.scale
        for quantized, side in ((rows, left), (columns, right))
    )
    wanted = torch.quantize_per_tensor(first + second, output.scale, output.zero_point, torch.quint8).int_repr()
    np.testing.assert_array_equal(found, wanted.numpy())
