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
from tools.zoo import frameworks, truth
from tools.zoo.frameworks.onnx_runtime import load
from tools.zoo.frameworks.runner import Runner
from tools.zoo.truth.tracing import Exact, tracing
from tools.zoo.units import Measured, flipped_ties, measured_units
from tools.zoo.units.agreement import Agreement, agreement
from tools.zoo.units.onnx_units import OnnxNetwork, cut, exposed, quantized_tensors
from tools.zoo.units.ties import Ties, ties

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
    found = load(str(saved(whole, folder)))(sample)
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
    assert units.integer == (names[0], names[1], names[3])
    given = OnnxNetwork(model).write_units(tmp_path / "units.onnx", tensors).given
    assert given == ("x", *names[:-1])
    found = load(str(tmp_path / "units.onnx"))([tensors[name] for name in given])
    for name, array in zip(names, found, strict=True):
        np.testing.assert_array_equal(array, tensors[name])


def test_units_of_i8_groups_are_no_integer_units(tmp_path: Path) -> None:
    b = ModelBuilder()
    data = b.dequantize(b.quantize(b.input("x", (2, 16)), (0.02, 0), np.int8), (0.02, 0), np.int8)
    after = b.quantize(b.node("MatMul", data, b.weight(drawn((16, 16), np.int8), 0.01)), (0.1, 0), np.int8)
    model = load_from_string(b.finish(after, dtype=np.int8))
    assert after not in cut(model, tensors_of(model, tmp_path, SAMPLES[0])).integer


def test_an_error_of_one_unit_reaches_no_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = saved(network(), tmp_path)
    exact = Ties(0, 0, 4 * 64, 0.0)
    wanted = Measured(Agreement(3, 0, 3 * 64, 0), Agreement(1, 0, 64, 0), exact, exact)
    assert measured_units(path, SAMPLES) == wanted
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
    found = measured_units(path, SAMPLES)
    name = quantized_tensors(network())[1]
    assert found.integer == Agreement(3, 2, 3 * 64, 2, (f"{name} (2)",))
    assert found.floating == Agreement(1, 0, 64, 0)
    assert found.ours
    assert (found.ours.units, found.ours.different) == (1, 2)
    assert 1 < found.ours.distance < 2
    assert found.framework == exact


def test_models_without_quantized_tensors_have_no_units(tmp_path: Path) -> None:
    b = ModelBuilder()
    path = saved(load_from_string(b.finish(b.node("Relu", b.input("x", (2, 16))), dtype=np.float32)), tmp_path)
    assert measured_units(path, SAMPLES) == Measured()
    assert flipped_ties(path, SAMPLES, []) is None


def test_the_units_that_differ_most_are_named() -> None:
    wanted = [{"a": np.zeros(4, np.uint8), "b": np.full(4, 255, np.uint8), "c": np.zeros(4, np.int8)}] * 2
    found = [
        {"a": np.array([0, 1, 0, 0], np.uint8), "b": np.array([255, 253, 254, 255], np.uint8), "c": wanted[0]["c"]}
    ] * 2
    assert agreement(found, wanted) == Agreement(3, 6, 24, 2, ("b (4)", "a (2)"))


def near_tie() -> Array:
    """Numbers of which one is a tie in float32 and none in float64, when it is divided by the scale of X."""
    scale = np.float32(X[0])
    numbers = ((np.arange(100) + 0.5) * scale).astype(np.float32)
    wide = numbers.astype(np.float64) / np.float64(scale)
    at = np.flatnonzero(np.rint(wide) != np.rint(numbers / scale))[0]
    found = np.zeros((2, 16), np.float32)
    found[1, 3] = numbers[at]
    return found


def test_what_is_rounded_otherwise_has_a_distance_to_the_tie(tmp_path: Path) -> None:
    found = measured_units(saved(network(), tmp_path), [(near_tie(),)])
    assert found.ours == found.framework
    assert found.ours
    assert (found.ours.units, found.ours.different, found.ours.elements) == (1, 1, 4 * 32)
    assert 0 < found.ours.distance < 1e-5


def test_a_flipped_tie_explains_a_distance_to_the_truth(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, sample = saved(network(), tmp_path), (near_tie(),)
    outputs = [[np.asarray(qdialect.compile(path)(*sample))]]
    # ONNX Runtime rounds the tie as we do.
    assert flipped_ties(path, [sample], outputs) == Ties(0, 0, 4 * 32, 0.0)
    load_ = frameworks.load

    def load_exact(name: str, path: str) -> Runner:
        runner = load_(name, path)

        def run(inputs: Sequence[Array]) -> list[Array]:
            first, *others = runner(inputs)
            scale = np.float64(np.float32(X[0]))
            return [(np.rint(inputs[0] / scale) + X[1]).astype(first.dtype), *others]

        return run

    monkeypatch.setattr(frameworks, "load", load_exact)
    found = flipped_ties(path, [sample], outputs)
    assert found
    assert (found.units, found.different) == (1, 1)
    assert 0 < found.distance < 1e-5
    # The first unit differs in this element, whose tie float32 rounds to our side.
    (cause,) = measured_units(path, [sample]).causes
    assert (cause.name, cause.different, cause.framework) == (quantized_tensors(network())[0], 1, 0.0)
    assert 0 < cause.ours < 1e-5
    # Results that are not those of the network with this element are explained by nothing.
    assert flipped_ties(path, [sample], [[outputs[0][0] + np.float32(0.2)]]) is None


def test_the_truth_goes_on_with_what_is_forced(tmp_path: Path) -> None:
    path, (name, *_) = saved(network(), tmp_path), quantized_tensors(network())
    run = truth.load(str(path), ".onnx")
    (plain,) = run(SAMPLES[0])
    with tracing() as trace:
        np.testing.assert_array_equal(run(SAMPLES[0])[0], plain)
    exact = trace.exact[name]
    np.testing.assert_allclose(exact.positions, SAMPLES[0][0].astype(np.float64) / np.float32(X[0]) + X[1])
    np.testing.assert_array_equal(exact.values, np.clip(np.rint(exact.positions), 0, 255))
    with tracing({name: exact.values[::-1].copy()}):
        np.testing.assert_array_equal(run(SAMPLES[0])[0], plain[::-1])
    np.testing.assert_array_equal(run(SAMPLES[0])[0], plain)


def test_distances_are_those_to_the_nearest_position_that_rounds_so() -> None:
    exact = Exact(np.array([3, 3, 3, 0], np.uint8), np.array([3.25, 2.75, 3.0, -4.0]))
    found = np.array([4, 2, 5, 0], np.uint8)
    assert ties([{"a": found}], [{"a": exact}]) == Ties(1, 3, 4, 1.5)
    known = np.array([4, 3, 5, 0], np.uint8)
    assert ties([{"a": found}], [{"a": exact}], [{"a": known}]) == Ties(1, 1, 4, 0.25)
