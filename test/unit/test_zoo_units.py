"""tools/zoo/units: networks are cut at quantized tensors, and units are computed from the framework's own tensors."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from onnx import ModelProto, load_from_string
from onnx_graphs import CONTRIB, ModelBuilder, drawn

import qdialect
from tools.zoo.frameworks.onnx_runtime import load
from tools.zoo.units import measured_units
from tools.zoo.units.agreement import Agreement, agreement
from tools.zoo.units.onnx_units import cut, exposed, quantized_tensors

Array = NDArray[Any]
X, Y, Z = (0.02, 128), (0.05, 100), (0.1, 0)
SAMPLES = [(np.random.default_rng(seed).standard_normal((2, 16)).astype(np.float32),) for seed in (0, 1)]


def network() -> ModelProto:
    """A product, a softmax of it, and the sum of both, of which one tensor has two readers."""
    b = ModelBuilder()
    data = b.dequantize(b.quantize(b.input("x", (2, 16)), X), X)
    product = b.node("MatMul", data, b.weight(drawn((16, 16), np.int8), 0.01))
    product = b.dequantize(b.quantize(b.node("Relu", product), Z), Z)
    shares = b.dequantize(b.quantize(b.node("Softmax", product), Y), Y)
    total = b.quantize(b.node("Add", product, shares), Z)
    return load_from_string(b.finish(b.dequantize(total, Z), dtype=np.float32))


def saved(model: ModelProto, folder: Path) -> Path:
    path = folder / "model.onnx"
    path.write_bytes(model.SerializeToString())
    return path


def tensors_of(model: ModelProto, folder: Path, sample: Sequence[Array]) -> dict[str, Array]:
    whole = exposed(model)
    names = [value.name for value in whole.graph.output]
    found = load(str(saved(whole, folder)), timed=False)(sample)
    return {"x": sample[0], **dict(zip(names, found, strict=True))}


def test_quantized_tensors_are_those_that_are_computed() -> None:
    b = ModelBuilder()
    weight = b.quantize(b.constant(np.ones((16, 4), np.float32)), Y)
    data = b.quantize(b.input("x", (2, 16)), X)
    product = b.node(f"{CONTRIB}.QGemm", data, *b.parameters(X, np.uint8), weight, *b.parameters(Y, np.uint8))
    model = load_from_string(b.finish(product, dtype=np.float32))
    # The weights are constants, and this QGemm gives floats.
    assert quantized_tensors(model) == (data,)


def test_each_quantized_tensor_is_an_input_of_those_that_read_it(tmp_path: Path) -> None:
    model = network()
    names = quantized_tensors(model)
    tensors = tensors_of(model, tmp_path, SAMPLES[0])
    units = cut(model, tensors)
    assert [value.name for value in units.model.graph.output] == list(names)
    # The last one has no reader that computes anything more.
    assert [value.name for value in units.model.graph.input] == ["x", *(f"{name}.given" for name in names[:-1])]
    assert units.floating == (names[2],)
    assert units.integer == (names[0], names[1], names[3])
    found = load(str(saved(units.model, tmp_path)), timed=False)(units.inputs(tensors))
    for name, array in zip(names, found, strict=True):
        np.testing.assert_array_equal(array, tensors[name])


def test_units_of_i8_groups_are_no_integer_units(tmp_path: Path) -> None:
    b = ModelBuilder()
    data = b.dequantize(b.quantize(b.input("x", (2, 16)), (0.02, 0), np.int8), (0.02, 0), np.int8)
    after = b.quantize(b.node("MatMul", data, b.weight(drawn((16, 16), np.int8), 0.01)), (0.1, 0), np.int8)
    model = load_from_string(b.finish(after, dtype=np.int8))
    assert cut(model, tensors_of(model, tmp_path, SAMPLES[0])).floating == (after,)


def test_an_error_of_one_unit_reaches_no_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = saved(network(), tmp_path)
    assert measured_units(path, SAMPLES) == (Agreement(3, 0, 3 * 64, 0), Agreement(1, 0, 64, 0))
    compile_ = qdialect.compile

    def compile_wrong(*arguments: Any, **options: Any) -> Any:
        executable = compile_(*arguments, **options)

        def run(*inputs: Array) -> tuple[Array, ...]:
            first, second, *others = executable(*inputs)
            wrong = second.copy()
            wrong.flat[3] ^= 2
            return first, wrong, *others

        return run

    monkeypatch.setattr(qdialect, "compile", compile_wrong)
    integer, floating = measured_units(path, SAMPLES)
    name = quantized_tensors(network())[1]
    assert integer == Agreement(3, 2, 3 * 64, 2, (f"{name} (2)",))
    assert floating == Agreement(1, 0, 64, 0)


def test_models_without_quantized_tensors_have_no_units(tmp_path: Path) -> None:
    b = ModelBuilder()
    path = saved(load_from_string(b.finish(b.node("Relu", b.input("x", (2, 16))), dtype=np.float32)), tmp_path)
    assert measured_units(path, SAMPLES) == (None, None)
    assert measured_units(tmp_path / "model.tflite", SAMPLES) == (None, None)


def test_the_units_that_differ_most_are_named() -> None:
    wanted = [{"a": np.zeros(4, np.uint8), "b": np.full(4, 255, np.uint8), "c": np.zeros(4, np.int8)}] * 2
    found = [
        {"a": np.array([0, 1, 0, 0], np.uint8), "b": np.array([255, 253, 254, 255], np.uint8), "c": wanted[0]["c"]}
    ] * 2
    assert agreement(found, wanted) == Agreement(3, 6, 24, 2, ("b (4)", "a (2)"))
