"""What ONNX operators compute in float32: against formulas in float64, interpreted and compiled."""

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from onnx_graphs import ModelBuilder, drawn, f32_values, quantized_of
from together import check_compiled, variants_together
from tolerances import assert_floats_within

from qdialect.frontends.onnx import import_onnx
from qdialect.reference import interpreter
from qdialect.support.diagnostics import ImportModelError

Array = NDArray[Any]
Formula = Callable[..., Any]
OfOne = Callable[[Array], Any]


def numbers(*shape: int, seed: int = 0) -> Array:
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


def run_both(content: bytes, *inputs: Array) -> Array:
    module = import_onnx(content)
    (wanted,) = interpreter.run(module, inputs)
    for target in ("host", "generic"):
        check_compiled(module, target, [inputs], [[wanted]])
    return wanted


def run_node(kind: str, inputs: list[Array], constants: int = 0, **attributes: Any) -> Array:
    """The last `constants` inputs are known."""
    model = ModelBuilder()
    free = len(inputs) - constants
    names = [model.input(f"x{i}", array.shape) for i, array in enumerate(inputs[:free])]
    names += [model.constant(array) for array in inputs[free:]]
    return run_both(model.finish(model.node(kind, *names, **attributes), dtype=np.float32), *inputs[:free])


def check(kind: str, inputs: list[Array], formula: Formula, constants: int = 0, **attributes: Any) -> None:
    """The last `constants` inputs are known."""
    found = run_node(kind, inputs, constants, **attributes)
    wanted = formula(*(array.astype(np.float64) for array in inputs))
    assert found.shape == wanted.shape
    assert_floats_within(found, wanted, "formula")


FUNCTIONS: dict[str, OfOne] = {
    "Abs": np.abs,
    "Ceil": np.ceil,
    "Cos": np.cos,
    "Erf": np.vectorize(math.erf),
    "Exp": np.exp,
    "Floor": np.floor,
    "HardSwish": lambda x: x * np.clip(x / 6 + 0.5, 0, 1),
    "Neg": np.negative,
    "Reciprocal": lambda x: 1 / x,
    "Round": np.rint,
    "Sigmoid": lambda x: 1 / (1 + np.exp(-x)),
    "Sin": np.sin,
    "Softplus": lambda x: np.log1p(np.exp(x)),
    "Softsign": lambda x: x / (1 + np.abs(x)),
    "Tanh": np.tanh,
}


@variants_together
@pytest.mark.parametrize("kind", FUNCTIONS)
def test_functions(kind: str) -> None:
    check(kind, [numbers(3, 19) * 3], FUNCTIONS[kind])


@variants_together
@pytest.mark.parametrize(("kind", "formula"), [("Log", np.log), ("Sqrt", np.sqrt)])
def test_functions_of_positive_numbers(kind: str, formula: Formula) -> None:
    check(kind, [np.abs(numbers(3, 19)) + np.float32(0.01)], formula)


@variants_together
@pytest.mark.parametrize("exponent", [2.0, 3.0, 0.5, 1.7, -1.0])
def test_powers(exponent: float) -> None:
    x = np.abs(numbers(3, 19)) + np.float32(0.1)
    check("Pow", [x, np.array(exponent, np.float32)], np.power, constants=1)


@variants_together
@pytest.mark.parametrize("exponent", [2, 3])
@pytest.mark.parametrize("shape", [(), (1,), (1, 1)])
def test_powers_that_are_products(exponent: int, shape: tuple[int, ...]) -> None:
    """ONNX Runtime multiplies where the exponent is one number: negative ones and both zeros too."""
    x = numbers(3, 19) * np.float32(7)
    x[0, :3] = 0.0, -0.0, 1e-20
    found = run_node("Pow", [x, np.full(shape, exponent, np.float32)], constants=1)
    wanted = x * x if exponent == 2 else x * x * x
    np.testing.assert_array_equal(found.view(np.int32), wanted.view(np.int32))


PAIRS: dict[str, Formula] = {"Add": np.add, "Sub": np.subtract, "Mul": np.multiply, "Div": np.divide}


@variants_together
@pytest.mark.parametrize("kind", PAIRS)
@pytest.mark.parametrize("constants", [0, 1])
def test_operands_broadcast(kind: str, constants: int) -> None:
    check(kind, [numbers(2, 3, 19), numbers(3, 1, seed=1)], PAIRS[kind], constants)
    check(kind, [numbers(4, 1), numbers(5, 4, 7, seed=1)], PAIRS[kind], constants)


def softmax(x: Array, axis: int | tuple[int, ...]) -> Array:
    raised = np.exp(x - x.max(axis=axis, keepdims=True))
    return raised / raised.sum(axis=axis, keepdims=True)


@variants_together
@pytest.mark.parametrize("axis", [-1, 1])
def test_softmax(axis: int) -> None:
    def shares(x: Array) -> Array:
        return softmax(x, axis)

    def logarithms(x: Array) -> Array:
        return np.log(softmax(x, axis))

    check("Softmax", [numbers(2, 5, 19) * 4], shares, axis=axis)
    check("LogSoftmax", [numbers(2, 5, 19) * 4], logarithms, axis=axis)


def test_softmax_of_older_operator_sets_runs_over_all_that_follows() -> None:
    model = ModelBuilder()
    x = numbers(2, 5, 3)
    found = run_both(model.finish(model.node("Softmax", model.input("x", x.shape)), dtype=np.float32, version=11), x)
    assert_floats_within(found, softmax(x.astype(np.float64), (1, 2)), "softmax")


@variants_together
@pytest.mark.parametrize("keepdims", [0, 1])
def test_reductions(keepdims: int) -> None:
    functions: dict[str, Formula] = {"ReduceMean": np.mean, "ReduceMax": np.max, "ReduceMin": np.min}
    for kind, function in functions.items():
        formula = partial(function, axis=(0, 2), keepdims=bool(keepdims))
        check(kind, [numbers(2, 5, 19)], formula, axes=[-1, 0], keepdims=keepdims)


@variants_together
@pytest.mark.parametrize("keepdims", [0, 1])
@pytest.mark.parametrize("axes", [[2, 3], [1], [1, 3]])
def test_reductions_of_what_a_convolution_leaves(axes: list[int], keepdims: int) -> None:
    """Its channels are last; where the axes allow it, the sums are taken there."""
    x, w = drawn((1, 3, 6, 5), np.uint8), drawn((8, 3, 1, 1), np.int8, 1)
    values, weights = f32_values(x, (0.02, 120)).astype(np.float64), f32_values(w[..., 0, 0], (0.001, 0))
    model = ModelBuilder()
    data = model.dequantize(model.input("x", x.shape, np.uint8), (0.02, 120))
    exponential = model.node("Exp", model.node("Conv", data, model.weight(w, 0.001)))
    content = model.finish(model.node("ReduceMean", exponential, axes=axes, keepdims=keepdims), dtype=np.float32)
    transposes = str(import_onnx(content)).count("qnn.transpose")
    assert transposes == 1 + keepdims
    wanted = np.exp(np.einsum("nchw,oc->nohw", values, weights)).mean(tuple(axes), keepdims=bool(keepdims))
    assert_floats_within(run_both(content, x), wanted, "formula")


def test_a_sum_takes_its_axes_as_an_input() -> None:
    model = ModelBuilder()
    x = numbers(2, 5, 19)
    total = model.node("ReduceSum", model.input("x", x.shape), model.constant(np.array([1])), keepdims=0)
    assert_floats_within(run_both(model.finish(total, dtype=np.float32), x), x.sum(axis=1), "sum")


def test_layer_normalization() -> None:
    def formula(x: Array, scale: Array, bias: Array) -> Array:
        return (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-5) * scale + bias

    inputs = [numbers(2, 5, 19), numbers(19, seed=1), numbers(19, seed=2)]
    check("LayerNormalization", inputs, formula, constants=2)


@variants_together
@pytest.mark.parametrize("constants", [0, 1])
def test_products_of_matrices(constants: int) -> None:
    check("MatMul", [numbers(2, 5, 19), numbers(19, 7, seed=1)], np.matmul, constants)
    check("MatMul", [numbers(2, 5, 8), numbers(2, 8, 7, seed=1)], np.matmul, constants)


def test_parts_side_by_side() -> None:
    def formula(x: Array, y: Array) -> Array:
        return np.concatenate([x, y], axis=1)

    check("Concat", [numbers(2, 3, 19), numbers(2, 5, 19, seed=1)], formula, axis=1)


def test_gemm() -> None:
    def formula(a: Array, b: Array, c: Array) -> Array:
        return 0.5 * (a.T @ b.T) + 2 * c

    inputs = [numbers(8, 3), numbers(10, 8, seed=1), numbers(10, seed=2)]
    more: dict[str, Any] = {"transA": 1, "transB": 1, "alpha": 0.5, "beta": 2.0}
    check("Gemm", inputs, formula, 2, **more)


def test_convolution() -> None:
    def formula(x: Array, w: Array, b: Array) -> Array:
        padded = np.pad(x, ((0, 0), (0, 0), (1, 0), (0, 1)))
        windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 2), axis=(2, 3))[:, :, ::2]
        groups = windows.reshape(1, 2, 3, *windows.shape[2:]), w.reshape(2, 4, 3, 3, 2)
        return np.einsum("ngcyxij,gocij->ngoyx", *groups).reshape(1, 8, *windows.shape[2:4]) + b.reshape(8, 1, 1)

    inputs = [numbers(1, 6, 7, 5), numbers(8, 3, 3, 2, seed=1), numbers(8, seed=2)]
    check("Conv", inputs, formula, 2, group=2, strides=[2, 1], pads=[1, 0, 0, 1])


def test_f32_constants_become_values() -> None:
    model = ModelBuilder()
    x, by = drawn((3, 19), np.uint8), (0.05, 100)
    value = model.dequantize(model.input("x", x.shape, np.uint8), by)
    total = model.node("Add", model.node("Exp", value), model.constant(numbers(19)))
    found = run_both(model.finish(model.quantize(total, (0.1, 3))), x)
    wanted = np.exp(f32_values(x, by).astype(np.float64)).astype(np.float32) + numbers(19)
    np.testing.assert_array_equal(found, quantized_of(wanted, (0.1, 3)))


def test_a_function_of_values_may_stay_real() -> None:
    model = ModelBuilder()
    x, by = drawn((3, 19), np.uint8), (0.05, 100)
    value = model.node("Softmax", model.dequantize(model.input("x", x.shape, np.uint8), by))
    found = run_both(model.finish(value, dtype=np.float32), x)
    assert_floats_within(found, softmax(f32_values(x, by).astype(np.float64), -1), "softmax")


REFUSED: dict[str, tuple[str, list[Array], dict[str, Any]]] = {
    "operands must be matrices": ("MatMul", [numbers(3), numbers(4)], {}),
    "axis must be in [-2, 2), but got 2": ("LogSoftmax", [numbers(2, 3)], {"axis": 2}),
    "axes must be in [-2, 2), but got [5]": ("ReduceMean", [numbers(2, 3)], {"axes": [5]}),
}


@pytest.mark.parametrize("message", REFUSED)
def test_what_is_not_expressed_is_refused(message: str) -> None:
    kind, inputs, attributes = REFUSED[message]
    model = ModelBuilder()
    names = [model.input(f"x{i}", array.shape) for i, array in enumerate(inputs)]
    with pytest.raises(ImportModelError) as caught:
        import_onnx(model.finish(model.node(kind, *names, **attributes), dtype=np.float32))
    assert message in caught.value.render()


def test_a_large_constant_is_repeated_by_an_op() -> None:
    """A mask for all heads is held once."""
    x, mask = numbers(2, 12, 64, 64), numbers(64, 64, seed=1)
    model = ModelBuilder()
    content = model.finish(model.node("Add", model.input("x", x.shape), model.constant(mask)), dtype=np.float32)
    np.testing.assert_array_equal(run_both(content, x), x + mask)
    assert "tensor<64x64xf32>} : () -> tensor<64x64xf32>" in str(import_onnx(content))
