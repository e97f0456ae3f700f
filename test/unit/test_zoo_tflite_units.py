"""tools/zoo/units/tflite_units.py: .tflite files are cut at their quantized tensors."""

from pathlib import Path

import numpy as np
import pytest
import tflite
from tflite_graphs import options

import qdialect
from qdialect.frontends.tflite.flatbuffer.reader import read_graph
from qdialect.frontends.tflite.flatbuffer.writer import ModelWriter, Quantization
from tools.zoo import frameworks, truth
from tools.zoo.frameworks import litert_kernels
from tools.zoo.frameworks.runner import Runner
from tools.zoo.truth.tracing import tracing
from tools.zoo.units import flipped_ties, measured_units
from tools.zoo.units.tflite_units import load

KIND, OPTIONS = tflite.BuiltinOperator, tflite.BuiltinOptions
SHAPE = 4, 8
SAMPLES = [(np.random.default_rng(seed).integers(-128, 128, SHAPE).astype(np.int8),) for seed in (0, 1)]
NAMES = ("1:a", "4:e", "5:s", "6:y")


def network(path: Path, *, activation: int = KIND.RELU) -> Path:
    """A sum, a float unit that ends in a quantization, another activation and a sum of all."""
    writer = ModelWriter("units")
    x = writer.tensor("x", SHAPE, np.int8, Quantization((0.03,), (4,)))
    a = writer.tensor("a;one more", SHAPE, np.int8, Quantization((0.05,), (-3,)))
    d, r = (writer.tensor(name, SHAPE, np.float32) for name in "dr")
    e = writer.tensor("e", SHAPE, np.int8, Quantization((0.02,), (7,)))
    s = writer.tensor("s", SHAPE, np.int8, Quantization((0.0625,), (0,)))
    y = writer.tensor("y", SHAPE, np.int8, Quantization((0.08,), (1,)))
    writer.operator(KIND.ADD, [x, x], a, OPTIONS.AddOptions, options())
    writer.operator(KIND.DEQUANTIZE, [a], d)
    writer.operator(KIND.TANH, [d], r)
    writer.operator(KIND.QUANTIZE, [r], e)
    writer.operator(activation, [a], s)
    writer.operator(KIND.ADD, [e, s], y, OPTIONS.AddOptions, options())
    path.write_bytes(writer.finish([x], [y]))
    return path


def test_the_exposed_network_gives_its_quantized_tensors_too(tmp_path: Path) -> None:
    path = network(tmp_path / "model.tflite", activation=KIND.ELU)
    found = load(path)
    assert (found.inputs, found.quantized) == (("0:x",), NAMES)
    found.write_exposed(tmp_path / "whole.tflite", SAMPLES[0])
    (output,) = frameworks.load("litert", str(path))(SAMPLES[0])
    first, *exposed = frameworks.load("litert", str(tmp_path / "whole.tflite"))(SAMPLES[0])
    np.testing.assert_array_equal(first, output)
    np.testing.assert_array_equal(exposed[-1], output)
    assert [array.dtype.name for array in exposed] == ["int8"] * 4


def test_only_what_has_no_reference_kernel_is_run_by_another(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, run = network(tmp_path / "model.tflite", activation=KIND.ELU), list[tuple[bool, tuple[str, ...]]]()
    whole, load_ = frameworks.load("litert", str(path)), litert_kernels.load

    def noted(content: bytes, *, is_reference: bool) -> Runner:
        runner = load_(content, is_reference=is_reference)
        run.append((is_reference, operators_of(content)))
        return runner

    monkeypatch.setattr(litert_kernels, "load", noted)
    (found,) = frameworks.load("litert", str(path))(SAMPLES[0])
    np.testing.assert_array_equal(found, whole(SAMPLES[0])[0])
    # The last of them are the segments, those before say which kernels there are.
    assert run[-3:] == [(True, ("ADD", "DEQUANTIZE", "TANH", "QUANTIZE")), (False, ("ELU",)), (True, ("ADD",))]


def operators_of(content: bytes) -> tuple[str, ...]:
    """The operators of a model."""
    return tuple(operator.kind for operator in read_graph(content).operators)


def test_units_read_what_they_are_given(tmp_path: Path) -> None:
    network(tmp_path / "model.tflite")
    cut = load(tmp_path / "model.tflite").write_units(tmp_path / "units.tflite", {})
    assert cut.given == ("0:x", "1:a", "4:e", "5:s")
    assert cut.integer == ("1:a", "5:s", "6:y")
    given = [np.full(SHAPE, value, np.int8) for value in (4, 17, 57, 0)]
    a, e, s, y = frameworks.load("litert", str(tmp_path / "units.tflite"))(given)
    # x is 0, a is 1, whatever the units before have; e is tanh(1), and y is the sum of the given e and s.
    assert [set(array.ravel().tolist()) for array in (a, e, s, y)] == [{-3}, {45}, {16}, {14}]


@pytest.mark.parametrize("activation", [KIND.RELU, KIND.ELU])
def test_units_are_compared_with_litert_and_with_the_truth(tmp_path: Path, activation: int) -> None:
    path = network(tmp_path / "model.tflite", activation=activation)
    found = measured_units(path, SAMPLES)
    assert found.integer
    assert (found.integer.units, found.integer.elements, found.integer.different) == (3, 3 * 64, 0)
    assert found.floating
    assert (found.floating.units, found.floating.elements, found.floating.different) == (1, 64, 0)
    assert found.ours
    assert found.ours.elements == 4 * 64
    assert found.ours.distance < 0.1
    assert found.framework == found.ours
    outputs = [[np.asarray(qdialect.compile(path)(*one))] for one in SAMPLES]
    flipped = flipped_ties(path, SAMPLES, outputs)
    assert flipped
    assert flipped.different == 0


def test_the_truth_goes_on_with_other_quantized_values(tmp_path: Path) -> None:
    exact = truth.load(str(network(tmp_path / "model.tflite")), ".tflite")
    given = {"4:e": np.full(SHAPE, 57, np.int8), "5:s": np.zeros(SHAPE, np.int8)}
    with tracing(given) as trace:
        (output,) = exact(SAMPLES[0])
    assert set(output.ravel().tolist()) == {14.0}
    found = trace.exact["1:a"]
    assert found.values.dtype == np.int8
    np.testing.assert_allclose(found.positions, (SAMPLES[0][0] - 4.0) * 2 * (0.03 / 0.05) - 3, atol=1e-5)
