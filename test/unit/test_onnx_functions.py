"""Functions of one f32 value in ONNX models: on floats, between quantizations, and as exporters decompose them."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from onnx_graphs import CONTRIB, ModelBuilder, f32_values, quantized_of, run
from tolerances import assert_floats_within, assert_within, tolerance_of

import qdialect
from qdialect.frontends.onnx import import_onnx
from qdialect.pipeline import PassManager
from qdialect.reference import interpreter

Array = NDArray[Any]
X, Y = (0.043, 117), (0.011, 60)
ALL = np.arange(256, dtype=np.uint8).reshape(16, 16)

Builder = Callable[[ModelBuilder, str, Callable[[str], str]], str]


def _erf(x: Array) -> Array:
    return np.array([math.erf(value) for value in x.ravel()]).reshape(x.shape)


def _sigmoid(x: Array) -> Array:
    return 1 / (1 + np.exp(-x))


def _gelu(x: Array) -> Array:
    return x / 2 * (1 + _erf(x / math.sqrt(2)))


def _fast_gelu(x: Array) -> Array:
    return x / 2 * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))


FUNCTIONS: list[tuple[str, dict[str, Any], Callable[[Array], Array]]] = [
    ("Abs", {}, np.abs),
    ("Ceil", {}, np.ceil),
    ("Celu", {"alpha": 0.7}, lambda x: np.maximum(x, 0) + np.minimum(0.7 * np.expm1(x / 0.7), 0)),
    ("Elu", {"alpha": 1.5}, lambda x: np.where(x < 0, 1.5 * np.expm1(x), x)),
    ("Erf", {}, _erf),
    ("Exp", {}, np.exp),
    ("Floor", {}, np.floor),
    ("Gelu", {}, _gelu),
    ("Gelu", {"approximate": "tanh"}, _fast_gelu),
    ("HardSigmoid", {"alpha": 0.25, "beta": 0.4}, lambda x: np.clip(x * 0.25 + 0.4, 0, 1)),
    ("HardSwish", {}, lambda x: x * np.clip(x / 6 + 0.5, 0, 1)),
    ("LeakyRelu", {"alpha": 0.1}, lambda x: np.where(x < 0, 0.1 * x, x)),
    ("Mish", {}, lambda x: x * np.tanh(np.log1p(np.exp(x)))),
    ("Neg", {}, np.negative),
    ("Relu", {}, lambda x: np.maximum(x, 0)),
    ("Round", {}, np.rint),
    ("Selu", {}, lambda x: 1.0507009873554805 * np.where(x < 0, 1.6732632423543772 * np.expm1(x), x)),
    ("Sigmoid", {}, _sigmoid),
    ("ThresholdedRelu", {"alpha": 0.5}, lambda x: np.where(x > 0.5, x, 0)),
    ("Sign", {}, np.sign),
    ("Softplus", {}, lambda x: np.log1p(np.exp(x))),
    ("Softsign", {}, lambda x: x / (1 + np.abs(x))),
    ("Swish", {"alpha": 1.5}, lambda x: x * _sigmoid(1.5 * x)),
    ("Tanh", {}, np.tanh),
    (f"{CONTRIB}.FastGelu", {}, _fast_gelu),
    (f"{CONTRIB}.Gelu", {}, _gelu),
    (f"{CONTRIB}.QuickGelu", {}, lambda x: x * _sigmoid(1.702 * x)),
]


@pytest.mark.parametrize(("kind", "attributes", "function"), FUNCTIONS)
def test_between_quantizations_is_one_table(
    kind: str, attributes: dict[str, Any], function: Callable[[Array], Array]
) -> None:
    b = ModelBuilder()
    data = b.dequantize(b.input("x", ALL.shape, np.uint8), X)
    module = import_onnx(b.finish(b.quantize(b.node(kind, data, **attributes), Y)))
    wanted = quantized_of(function(f32_values(ALL, X).astype(np.float64)), Y)
    assert np.array_equal(interpreter.run(module, [ALL])[0], wanted)
    assert fused_ops(module) in (["qnn.lut"], ["qnn.clip"], ["qnn.lut", "qnn.clip"])
    assert np.array_equal(interpreter.run(module, [ALL])[0], wanted)


@pytest.mark.parametrize(("kind", "attributes", "function"), FUNCTIONS)
def test_on_floats(kind: str, attributes: dict[str, Any], function: Callable[[Array], Array]) -> None:
    x = np.linspace(-6, 6, 121, dtype=np.float32)
    b = ModelBuilder()
    found = run(b.finish(b.node(kind, b.input("x", x.shape), **attributes), dtype=np.float32), x)
    assert_floats_within(found, function(x.astype(np.float64)), "formula")


POSITIVE: list[tuple[str, Callable[[Array], Array]]] = [
    ("Log", np.log),
    ("Sqrt", np.sqrt),
    ("Reciprocal", lambda x: 1 / x),
]


@pytest.mark.parametrize(("kind", "function"), POSITIVE)
def test_on_positive_floats(kind: str, function: Callable[[Array], Array]) -> None:
    x = np.linspace(0.01, 6, 121, dtype=np.float32)
    b = ModelBuilder()
    found = run(b.finish(b.node(kind, b.input("x", x.shape)), dtype=np.float32), x)
    assert_floats_within(found, function(x.astype(np.float64)), "function")


def fused_ops(module: Any) -> list[str]:
    """The ops of the module after fusion, but for constants and the return."""
    PassManager("fuse-qnn").run(module)
    names = [op.operation.name for op in module.body.operations[0].regions[0].blocks[0].operations]
    return [name for name in names if name not in ("qnn.constant", "func.return")]


def hard_swish(b: ModelBuilder, x: str, held: Callable[[str], str]) -> str:
    gate = held(b.node("Clip", held(b.node("Add", x, b.constant(3.0))), b.constant(0.0), b.constant(6.0)))
    return b.node("Div", held(b.node("Mul", x, gate)), b.constant(6.0))


def hard_swish_with_an_inner_quotient(b: ModelBuilder, x: str, held: Callable[[str], str]) -> str:
    gate = b.node("Clip", held(b.node("Add", b.constant(3.0), x)), b.constant(0.0), b.constant(6.0))
    return b.node("Mul", x, held(b.node("Div", gate, b.constant(6.0))))


def hard_sigmoid_product(b: ModelBuilder, x: str, held: Callable[[str], str]) -> str:
    return b.node("Mul", x, held(b.node("HardSigmoid", x, alpha=1 / 6)))


def silu(b: ModelBuilder, x: str, held: Callable[[str], str]) -> str:
    return b.node("Mul", x, held(b.node("Sigmoid", x)))


def gelu(b: ModelBuilder, x: str, held: Callable[[str], str]) -> str:
    bell = held(b.node("Erf", held(b.node("Div", x, b.constant(math.sqrt(2))))))
    return b.node("Mul", held(b.node("Mul", x, held(b.node("Add", bell, b.constant(1.0))))), b.constant(0.5))


DECOMPOSED: list[tuple[Builder, Callable[[Array], Array]]] = [
    (hard_swish, lambda x: x * np.clip(x + 3, 0, 6) / 6),
    (hard_swish_with_an_inner_quotient, lambda x: x * np.clip(x + 3, 0, 6) / 6),
    (hard_sigmoid_product, lambda x: x * np.clip(x / 6 + 0.5, 0, 1)),
    (silu, lambda x: x * _sigmoid(x)),
    (gelu, _gelu),
]


@pytest.mark.parametrize("is_quantized", [True, False])
@pytest.mark.parametrize(("build", "function"), DECOMPOSED)
def test_what_exporters_spell_out_is_one_table(
    build: Builder, function: Callable[[Array], Array], is_quantized: bool
) -> None:
    """With and without a QuantizeLinear and a DequantizeLinear after every step between."""
    b, scale = ModelBuilder(), (0.06, 110)
    data = b.dequantize(b.input("x", ALL.shape, np.uint8), X)

    def held(value: str) -> str:
        return b.dequantize(b.quantize(value, scale), scale) if is_quantized else value

    module = import_onnx(b.finish(b.quantize(build(b, data, held), Y)))
    unfused = interpreter.run(module, [ALL])[0]
    if not is_quantized:
        # Steps in float32 may meet a tie where the real function does not.
        wanted = quantized_of(function(f32_values(ALL, X).astype(np.float64)), Y)
        assert_within(unfused, wanted, tolerance_of(".onnx", "HardSwish"))
    assert fused_ops(module) == ["qnn.lut"]
    assert np.array_equal(interpreter.run(module, [ALL])[0], unfused)
    assert np.array_equal(qdialect.compile(module)(ALL), unfused)


PAIRS: dict[str, Callable[[Array, Array], Array]] = {
    "Add": np.add,
    "Mul": np.multiply,
    "Sub": np.subtract,
    "Div": np.divide,
    "Max": np.maximum,
    "Min": np.minimum,
    "Pow": np.power,
}


@pytest.mark.parametrize("kind", PAIRS)
@pytest.mark.parametrize(("left", "right"), [((2, 3, 4), (3, 1)), ((1, 4), (2, 3, 1)), ((5,), ())])
def test_pairs_of_floats_broadcast(kind: str, left: tuple[int, ...], right: tuple[int, ...]) -> None:
    rng = np.random.default_rng(0)
    x, y = (rng.uniform(0.5, 2, shape).astype(np.float32) for shape in (left, right))
    function = PAIRS[kind]
    for known in (True, False):
        b = ModelBuilder()
        other = b.constant(y) if known else b.input("y", right)
        content = b.finish(b.node(kind, b.input("x", left), other), dtype=np.float32)
        inputs = [x] if known else [y, x]
        assert_floats_within(run(content, *inputs), function(x, y), "pair")


@pytest.mark.parametrize(("kind", "function"), [("Less", np.less), ("GreaterOrEqual", np.greater_equal)])
def test_where_a_comparison_holds(kind: str, function: Callable[[Array, Array], Array]) -> None:
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(2, 3, 4)).astype(np.float32), rng.normal(size=(3, 1)).astype(np.float32)
    b = ModelBuilder()
    holds = b.node(kind, b.input("x", x.shape), b.constant(y))
    content = b.finish(b.node("Where", holds, "x", b.constant(-1.0)), dtype=np.float32)
    wanted = np.where(function(x, y), x, np.float32(-1))
    assert np.array_equal(run(content, x), wanted)
    assert np.array_equal(qdialect.compile(import_onnx(content))(x), wanted)


def test_a_choice_between_values_is_one_table() -> None:
    """A leaky activation as exporters without the operator write it."""
    b = ModelBuilder()
    data = b.dequantize(b.input("x", ALL.shape, np.uint8), X)
    chosen = b.node("Where", b.node("Greater", data, b.constant(0.0)), data, b.node("Mul", data, b.constant(0.25)))
    module = import_onnx(b.finish(b.quantize(chosen, Y)))
    x = f32_values(ALL, X)
    assert fused_ops(module) == ["qnn.lut"]
    assert np.array_equal(interpreter.run(module, [ALL])[0], quantized_of(np.where(x > 0, x, x * np.float32(0.25)), Y))


def test_a_sum_of_many() -> None:
    arrays = [np.random.default_rng(seed).normal(size=shape).astype(np.float32) for seed, shape in enumerate(SHAPES)]
    b = ModelBuilder()
    names = [b.input(f"x{i}", array.shape) for i, array in enumerate(arrays)]
    found = run(b.finish(b.node("Sum", *names), dtype=np.float32), *arrays)
    assert np.array_equal(found, arrays[0] + arrays[1] + arrays[2])


SHAPES = [(2, 3), (3,), (2, 1)]
