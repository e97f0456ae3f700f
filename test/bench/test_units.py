"""Networks are cut at quantized tensors, and units are computed from the framework's own tensors."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import numpy as np
import pytest
import tflite
import torch
from onnx import ModelProto, load_from_string
from onnx_graphs import Array, ModelBuilder, drawn
from tflite_graphs import options_of
from torch import Tensor, nn
from torch.nn import functional
from torch_models import dequantized, quantized

import qdialect
from qdialect.bench import frameworks
from qdialect.bench.frameworks import Runner
from qdialect.bench.truth import Exact
from qdialect.bench.units import compared_units
from qdialect.bench.units.onnx_units import OnnxNetwork, cut, exposed, quantized_tensors
from qdialect.bench.units.torch_units import load as load_torch
from qdialect.cli.run import main as run_command
from qdialect.frontends.tflite.flatbuffer.writer import ModelWriter, Quantization
from tools.zoo.agreement import Agreement, Ties, ties
from tools.zoo.tensors import tensors
from tools.zoo.units import Measured, flipped_ties, measured_units

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
    found = frameworks.load("onnx_runtime", str(saved(whole, folder)))(sample)
    return {"x": sample[0], **dict(zip(names, found, strict=True))}


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
    found = frameworks.load("onnx_runtime", str(tmp_path / "units.onnx"))([tensors[name] for name in given])
    for name, array in zip(names, found, strict=True):
        np.testing.assert_array_equal(array, tensors[name])


def test_an_error_of_one_unit_reaches_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
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
    units = {unit.name: unit for unit in compared_units(path, SAMPLES[0])}
    others = [(one.different, one.steps, one.first, one.from_truth) for own, one in units.items() if own != name]
    assert others == [(0, 0, None, 0)] * 3
    wrong = units[name]
    assert (wrong.elements, wrong.different, wrong.steps, wrong.from_truth) == (32, 1, 2, 1)
    assert wrong.framework_from_truth == 0
    assert wrong.first
    assert wrong.first[0] == (0, 3)
    np.save(tmp_path / "x.npy", SAMPLES[0][0])
    whole = compile_(path)
    monkeypatch.setattr("qdialect.cli.run._executable", Mock(return_value=whole))
    assert run_command([str(path), "--input", str(tmp_path / "x.npy"), "--compare-layers"]) == 1
    said = capsys.readouterr().out
    assert f"1 of 4 units differ from ONNX Runtime; the first is {name}\nthere element [0, 3] is " in said
    assert re.search(rf"^{name} +32 +1 +2 +1 +0  kernel_\d+_", said, re.MULTILINE)


def near_tie() -> Array:
    """Numbers of which one is a tie in float32 and none in float64, when it is divided by the scale of X."""
    scale = np.float32(X[0])
    numbers = ((np.arange(100) + 0.5) * scale).astype(np.float32)
    wide = numbers.astype(np.float64) / np.float64(scale)
    at = np.flatnonzero(np.rint(wide) != np.rint(numbers / scale))[0]
    found = np.zeros((2, 16), np.float32)
    found[1, 3] = numbers[at]
    return found


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


def test_distances_are_those_to_the_nearest_position_that_rounds_so() -> None:
    exact = Exact(np.array([3, 3, 3, 0], np.uint8), np.array([3.25, 2.75, 3.0, -4.0]))
    found = np.array([4, 2, 5, 0], np.uint8)
    assert ties([{"a": found}], [{"a": exact}]) == Ties(1, 3, 4, 1.5)
    known = np.array([4, 3, 5, 0], np.uint8)
    assert ties([{"a": found}], [{"a": exact}], [{"a": known}]) == Ties(1, 1, 4, 0.25)


# qdialect/bench/units/tflite_units.py: .tflite files are cut at their quantized tensors.

KIND = tflite.BuiltinOperator
SHAPE = 4, 8
QUANTIZED_SAMPLES = [(np.random.default_rng(seed).integers(-128, 128, SHAPE).astype(np.int8),) for seed in (0, 1)]


def tflite_network(path: Path, *, activation: int = KIND.RELU) -> Path:
    """A sum, a float unit that ends in a quantization, another activation and a sum of all."""
    writer = ModelWriter("units")
    x = writer.tensor("x", SHAPE, np.int8, Quantization((0.03,), (4,)))
    a = writer.tensor("a;one more", SHAPE, np.int8, Quantization((0.05,), (-3,)))
    d, r = (writer.tensor(name, SHAPE, np.float32) for name in "dr")
    e = writer.tensor("e", SHAPE, np.int8, Quantization((0.02,), (7,)))
    s = writer.tensor("s", SHAPE, np.int8, Quantization((0.0625,), (0,)))
    y = writer.tensor("y", SHAPE, np.int8, Quantization((0.08,), (1,)))
    writer.operator(KIND.ADD, [x, x], a, *options_of("Add"))
    writer.operator(KIND.DEQUANTIZE, [a], d)
    writer.operator(KIND.TANH, [d], r)
    writer.operator(KIND.QUANTIZE, [r], e)
    writer.operator(activation, [a], s)
    writer.operator(KIND.ADD, [e, s], y, *options_of("Add"))
    path.write_bytes(writer.finish([x], [y]))
    return path


@pytest.mark.parametrize("activation", [KIND.RELU, KIND.ELU])
def test_units_are_compared_with_litert_and_with_the_truth(tmp_path: Path, activation: int) -> None:
    path = tflite_network(tmp_path / "model.tflite", activation=activation)
    found = measured_units(path, QUANTIZED_SAMPLES)
    assert found.integer
    assert (found.integer.units, found.integer.elements, found.integer.different) == (3, 3 * 64, 0)
    assert found.floating
    assert (found.floating.units, found.floating.elements, found.floating.different) == (1, 64, 0)
    assert found.ours
    assert found.ours.elements == 4 * 64
    assert found.ours.distance < 0.1
    assert found.framework == found.ours
    outputs = [[np.asarray(qdialect.compile(path)(*one))] for one in QUANTIZED_SAMPLES]
    flipped = flipped_ties(path, QUANTIZED_SAMPLES, outputs)
    assert flipped
    assert flipped.different == 0


# qdialect/bench/units/torch_units.py: programs of PyTorch are cut at their quantized tensors.


class _Block(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        data = dequantized(quantized(x, 0.03, 120, torch.uint8), 0.03, 120, torch.uint8)
        normal = quantized(functional.layer_norm(data, (16,)), 0.02, 110, torch.uint8)
        total = dequantized(normal, 0.02, 110, torch.uint8) + data
        return dequantized(quantized(total, 0.05, 130, torch.uint8), 0.05, 130, torch.uint8)


def test_units_of_a_program_are_compared_and_explained(tmp_path: Path) -> None:
    sample = (np.random.default_rng(0).standard_normal((4, 16)).astype(np.float32),)
    path = tmp_path / "model.pt2"
    torch.export.save(torch.export.export(_Block(), tensors(sample)), path)
    names = load_torch(path).quantized
    assert len(names) == 3
    load_torch(path).write_exposed(tmp_path / "whole.pt2", sample)
    (output,) = frameworks.load("pytorch", str(path))(sample)
    exposed = frameworks.load("pytorch", str(tmp_path / "whole.pt2"))(sample)
    assert [array.dtype.name for array in exposed] == ["float32", *["uint8"] * 3]
    np.testing.assert_array_equal(exposed[0], output)

    found = measured_units(path, [sample])
    assert found.integer is None
    assert found.floating
    assert (found.floating.units, found.floating.elements, found.floating.different) == (3, 3 * 64, 0)
    assert found.ours
    assert (found.ours.elements, found.ours.different) == (3 * 64, 0)
    flipped = flipped_ties(path, [sample], [[np.asarray(qdialect.compile(path)(*sample))]])
    assert flipped
    assert flipped.different == 0
