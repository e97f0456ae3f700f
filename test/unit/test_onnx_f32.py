"""What ONNX operators compute in float32: against formulas in float64, interpreted and compiled."""

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


def numbers(*shape: int, seed: int = 0) -> Array:
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


def run_both(content: bytes, *inputs: Array) -> Array:
    module = import_onnx(content)
    (wanted,) = interpreter.run(module, inputs)
    check_compiled(module, "host", [inputs], [[wanted]])
    return wanted


def run_node(kind: str, inputs: list[Array], constants: int = 0, **attributes: Any) -> Array:
    """The last `constants` inputs are known."""
    model = ModelBuilder()
    free = len(inputs) - constants
    names = [model.input(f"x{i}", array.shape) for i, array in enumerate(inputs[:free])]
    names += [model.constant(array) for array in inputs[free:]]
    return run_both(model.finish(model.node(kind, *names, **attributes), dtype=np.float32), *inputs[:free])


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


def softmax(x: Array, axis: int | tuple[int, ...]) -> Array:
    raised = np.exp(x - x.max(axis=axis, keepdims=True))
    return raised / raised.sum(axis=axis, keepdims=True)


def test_softmax_of_older_operator_sets_runs_over_all_that_follows() -> None:
    model = ModelBuilder()
    x = numbers(2, 5, 3)
    found = run_both(model.finish(model.node("Softmax", model.input("x", x.shape)), dtype=np.float32, version=11), x)
    assert_floats_within(found, softmax(x.astype(np.float64), (1, 2)), "softmax")


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
