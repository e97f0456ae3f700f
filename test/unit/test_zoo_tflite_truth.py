"""tools/zoo/truth: .tflite graphs in float64, compared with formulas and LiteRT's reference kernels."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tflite
from flatbuffers import Builder
from litert import reference
from loop_models import Loop
from numpy.typing import NDArray
from tflite_graphs import options, small_network

from qdialect.frontends.tflite.flatbuffer.reader import read_graph
from qdialect.frontends.tflite.flatbuffer.writer import ModelWriter, Quantization
from tools.zoo import truth
from tools.zoo.truth.tflite_truth import in_double

KIND, OPTIONS = tflite.BuiltinOperator, tflite.BuiltinOptions
SAME = tflite.Padding.SAME
Array = NDArray[Any]
Write = Callable[[Builder], int]


def drawn(seed: int, *shape: int) -> Array:
    return np.random.default_rng(seed).normal(1, 3, shape).astype(np.float32)


def ints(*entries: int) -> Array:
    return np.array(entries, np.int32)


def fields(*entries: tuple[str, Any]) -> Write:
    """An options table by the types of its fields."""

    def write(builder: Builder) -> int:
        builder.StartObject(len(entries))
        for slot, (kind, entry) in enumerate(entries):
            getattr(builder, f"Prepend{kind}Slot")(slot, entry, 0)
        return builder.EndObject()

    return write


IMAGE = drawn(1, 2, 5, 6, 4)
CASES: dict[str, tuple[list[Array], int, tuple[int, ...], tuple[Any, ...]]] = {
    "CONV_2D": (
        [IMAGE, drawn(2, 3, 3, 2, 4), drawn(3, 3)],
        2,
        (2, 3, 3, 3),
        (OPTIONS.Conv2DOptions, fields(("Int8", SAME), ("Int32", 2), ("Int32", 2), ("Int8", 1))),
    ),
    "DEPTHWISE_CONV_2D": (
        [IMAGE, drawn(2, 1, 3, 2, 8), drawn(3, 8)],
        2,
        (2, 5, 6, 8),
        (OPTIONS.DepthwiseConv2DOptions, fields(("Int8", SAME), ("Int32", 1), ("Int32", 1), ("Int32", 2), ("Int8", 3))),
    ),
    "AVERAGE_POOL_2D": (
        [IMAGE],
        0,
        (2, 3, 3, 4),
        (
            OPTIONS.Pool2DOptions,
            fields(("Int8", SAME), ("Int32", 2), ("Int32", 2), ("Int32", 3), ("Int32", 3), ("Int8", 0)),
        ),
    ),
    "SOFTMAX": ([IMAGE], 0, IMAGE.shape, (OPTIONS.SoftmaxOptions, fields(("Float32", 0.5)))),
    "GELU": ([IMAGE], 0, IMAGE.shape, (OPTIONS.GeluOptions, fields(("Bool", False)))),
    "HARD_SWISH": ([IMAGE], 0, IMAGE.shape, ()),
    "LOGISTIC": ([IMAGE], 0, IMAGE.shape, ()),
    "MEAN": ([IMAGE, ints(1, 2)], 1, (2, 4), (OPTIONS.ReducerOptions, fields(("Bool", False)))),
    "STRIDED_SLICE": (
        [IMAGE, ints(0, 4, 1, 2), ints(2, 0, 6, 3), ints(1, -2, 2, 1)],
        3,
        (2, 2, 3),
        (OPTIONS.StridedSliceOptions, options(1, 4, 0, 0, 8)),
    ),
    "RESIZE_BILINEAR": (
        [IMAGE, ints(7, 11)],
        1,
        (2, 7, 11, 4),
        (OPTIONS.ResizeBilinearOptions, fields(("Bool", False), ("Bool", False), ("Bool", False), ("Bool", True))),
    ),
    "PRELU": ([IMAGE, drawn(5, 4)], 1, IMAGE.shape, ()),
    "PAD": ([IMAGE, ints(0, 0, 1, 2, 0, 1, 0, 0).reshape(4, 2)], 1, (2, 8, 7, 4), ()),
    "TRANSPOSE": ([IMAGE, ints(3, 0, 2, 1)], 1, (4, 2, 6, 5), ()),
}


@pytest.mark.parametrize("kind", CASES)
def test_operators_are_those_of_litert(kind: str) -> None:
    inputs, constants, shape, option = CASES[kind]
    writer, free = ModelWriter("one operator"), len(inputs) - constants
    given = [writer.tensor(f"x{i}", array.shape, array.dtype.type) for i, array in enumerate(inputs[:free])]
    known = [writer.constant(f"c{i}", array) for i, array in enumerate(inputs[free:])]
    output = writer.tensor("y", shape, np.float32)
    writer.operator(getattr(KIND, kind), [*given, *known], output, *option)
    content = writer.finish(given, [output])
    (found,) = in_double(read_graph(content))(inputs[:free])
    assert found.dtype == np.float64
    np.testing.assert_allclose(found, reference(content, inputs[:free])[0], rtol=2e-6, atol=2e-6)


def test_quantized_tensors_hold_numbers_of_their_grid() -> None:
    """Every kernel of this network rounds once: an exact result differs at ties alone."""
    content = small_network()
    given = np.random.default_rng(1).integers(-128, 128, (1, 2, 2, 2)).astype(np.int8)
    (found,) = in_double(read_graph(content))([given])
    (wanted,) = reference(content, [given])
    assert found.dtype == np.float64
    assert set(np.unique(found % 1)) == {0.0}
    assert np.abs(found - wanted).max() <= 1


@pytest.mark.parametrize("is_asymmetric", [False, True])
def test_dynamic_range_products_round_their_activations(is_asymmetric: bool) -> None:
    writer, random = ModelWriter("hybrid"), np.random.default_rng(3)
    weight, scale = random.integers(-127, 128, (3, 8)).astype(np.int8), float(np.float32(0.02))
    x, y = (writer.tensor(name, shape, np.float32) for name, shape in (("x", (2, 8)), ("y", (2, 3))))
    w = writer.constant("w", weight, Quantization((scale,), (0,)))
    flags = ("Int8", 0), ("Int8", 0), ("Bool", False), ("Bool", is_asymmetric)
    writer.operator(KIND.FULLY_CONNECTED, [x, w], y, OPTIONS.FullyConnectedOptions, fields(*flags))
    content, data = writer.finish([x], [y]), drawn(4, 2, 8)
    (found,) = in_double(read_graph(content))([data])
    rows: list[Array] = []
    for row in data.astype(np.float64):
        step = (max(row.max(), 0) - min(row.min(), 0)) / 255 if is_asymmetric else np.abs(row).max() / 127
        zero_point = np.rint(-128 - min(row.min(), 0) / step) if is_asymmetric else 0
        rows.append((np.clip(np.rint(row / step) + zero_point, -128, 127) - zero_point) * step)
    np.testing.assert_allclose(found, np.array(rows) @ (weight * scale).T, rtol=1e-12)
    np.testing.assert_allclose(found, reference(content, [data])[0], rtol=1e-5, atol=1e-5)


def test_loops_run_their_subgraphs() -> None:
    model = Loop()
    found = in_double(read_graph(model.content()))(model.inputs())
    for one, other in zip(found, reference(model.content(), model.inputs()), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-5)


def test_an_operator_without_an_evaluator_is_named(tmp_path: Path) -> None:
    writer = ModelWriter("one operator")
    x, y = (writer.tensor(name, (2, 3), np.float32) for name in "xy")
    writer.operator(KIND.LOG_SOFTMAX, [x], y)
    path = tmp_path / "model.tflite"
    path.write_bytes(writer.finish([x], [y]))
    with pytest.raises(truth.NoTruthError, match="LOG_SOFTMAX has no evaluator in float64"):
        truth.load(str(path), ".tflite")
