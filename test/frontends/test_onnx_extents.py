"""Extents of ONNX models that are open, and tensors without elements."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx_graphs import CONTRIB, ModelBuilder, of_onnx_runtime
from tolerances import assert_floats_within

import qdialect
from qdialect.frontends.onnx import import_onnx
from qdialect.support.diagnostics import ImportModelError, QDialectError

X = (0.043, 117)


def failure(content: bytes, **options: Any) -> ImportModelError:
    with pytest.raises(ImportModelError) as caught:
        import_onnx(content, **options)
    return caught.value


OPEN = "dims must say how much '{0}' is, as --dim {0}=N does"


def test_open_extents_are_given_by_name_or_by_place() -> None:
    b = ModelBuilder()
    b.input("x", ("batch", 3, "width", ""))
    content = b.finish("x", dtype=np.float32)
    both = "dims must say how much 'width' and 'x:3' are, as --dim width=N --dim x:3=N does"
    assert str(failure(content)) == f"'model.onnx': extent 2 of input 'x' and extent 3 of input 'x' are open: {both}"
    found = str(failure(content, dims={"width": 5}))
    assert found == "'model.onnx': extent 3 of input 'x' is open: " + OPEN.format("x:3")
    for dims, shape in (({"width": 5, "x:3": 7}, "1x3x5x7"), ({"x:2": 4, "x:3": 7, "batch": 2}, "2x3x4x7")):
        assert f"tensor<{shape}xf32>" in str(import_onnx(content, dims=dims))
    wrong = {"width": 5, "x:3": 7, "x:1": 3, "depth": 1}
    assert (
        str(failure(content, dims=wrong)) == "'model.onnx': dims must name open extents of inputs, but got depth, x:1"
    )
    with pytest.raises(ImportModelError, match="dim 'width' must be at least 0, but got -1"):
        import_onnx(content, dims={"width": -1})
    with pytest.raises(ImportModelError, match="batch must be at least 1, but got 0"):
        import_onnx(content, batch=0)


def test_all_open_extents_are_named_at_once_and_each_name_once() -> None:
    b = ModelBuilder()
    b.input("ids", ("batch", "seq"))
    b.input("mask", ("batch", "seq", "heads"))
    where = "extent 1 of input 'ids', extent 1 of input 'mask' and extent 2 of input 'mask' are open"
    how = "dims must say how much 'seq' and 'heads' are, as --dim seq=N --dim heads=N does"
    assert str(failure(b.finish("ids", dtype=np.float32))) == f"'model.onnx': {where}: {how}"


def test_an_error_tells_of_extents_that_were_assumed() -> None:
    b = ModelBuilder()
    data = b.dequantize(b.input("x", ("n", 3, 8, 1), np.uint8), X)
    turned = b.node("Transpose", data, perm=[3, 1, 0, 2])
    pooled = b.node("MaxPool", turned, kernel_shape=[2, 2], name="pool")
    content = b.finish(b.quantize(pooled, X))
    assert [note.message for note in failure(content).diagnostics[0].notes] == [
        "node 2 MaxPool ('pool'): kernel must fit into the padded input [1, 8], but is [2, 2]",
        "extent 0 of input 'x' is open and was taken as 1: batch, as --batch N does, sets another",
    ]
    assert "ui8" in str(import_onnx(content, batch=2))


def test_tensors_of_too_many_elements_are_refused() -> None:
    b = ModelBuilder()
    content = b.finish(b.node("Relu", b.input("x", ("batch", "width"))), dtype=np.float32)
    for batch in (2**30, 10**20):
        found = [note.message for note in failure(content, batch=batch, dims={"width": 3}).diagnostics[0].notes]
        wanted = f"shape must have at most 2147483647 elements, but got [{batch}, 3]"
        assert f"input 'x': {wanted}" in found


# Tensors without elements: a decoder's first step has a past of length 0, and an image may have no boxes.

Network = Callable[[ModelBuilder, str, str], list[str]]

NONE, SOME = (2, 0, 3), (2, 1, 3)


def numbers(b: ModelBuilder, *array: int) -> str:
    return b.constant(np.array(array, np.int64))


def zeros(b: ModelBuilder, *shape: int, dtype: type[np.generic] = np.float32) -> str:
    return b.constant(np.zeros(shape, dtype))


def elementwise(b: ModelBuilder, none: str, some: str) -> list[str]:
    found = [b.node(kind, none) for kind in ("Relu", "Exp", "Softmax", "Tanh", "Identity", "Sign")]
    found += [b.node(kind, none, some) for kind in ("Add", "Div", "Max", "Pow")]
    scale, condition = b.constant(np.ones(3, np.float32)), b.constant(np.array([True]))
    return [*found, b.node("Where", condition, some, none), b.node("LayerNormalization", none, scale)]


def reductions(b: ModelBuilder, none: str, some: str) -> list[str]:
    kinds = ("Sum", "Mean", "Max", "Min", "Prod", "L1", "L2", "SumSquare", "LogSum", "LogSumExp")
    axes = [numbers(b, *axes) for axes in ([1], [0, 1], [0])]
    found = [b.node(f"Reduce{kind}", none, one, keepdims=i % 2) for kind in kinds for i, one in enumerate(axes)]
    return [*found, b.node("ReduceSum", none, keepdims=0), b.node("Relu", some)]


def joined(b: ModelBuilder, none: str, some: str) -> list[str]:
    by = (0.05, 7)
    parts = [b.dequantize(b.quantize(one, by), by) for one in (none, some)]
    return [
        b.node("Concat", none, some, axis=1),
        b.node("Concat", zeros(b, 2, 0, 3), some, none, some, axis=1),
        b.node("Concat", none, none, axis=0),
        b.dequantize(b.quantize(b.node("Concat", *parts, axis=1), by), by),
    ]


def movements(b: ModelBuilder, none: str, some: str) -> list[str]:
    updates = zeros(b, 2, 0, 3)
    return [
        b.node("Transpose", none, perm=[1, 0, 2]),
        b.node("Flatten", none),
        b.node("Reshape", none, numbers(b, 0, 0, 3, 1)),
        b.node("Gather", none, numbers(b, 1, 0), axis=2),
        b.node("Gather", some, b.constant(np.zeros(0, np.int64)), axis=1),
        b.node("Slice", some, numbers(b, 1), numbers(b, 1), numbers(b, 2)),
        b.node("Expand", some, numbers(b, 2, 0, 3)),
        b.node("Tile", none, numbers(b, 1, 2, 2)),
        b.node("Tile", some, numbers(b, 1, 0, 2)),
        b.node("Pad", some, numbers(b, -1, 0, 0, -1, 0, 0)),
        b.node("ScatterElements", some, zeros(b, 2, 0, 3, dtype=np.int64), updates, axis=1),
        b.node("ScatterND", some, zeros(b, 0, 1, dtype=np.int64), zeros(b, 0, 1, 3)),
        none,
    ]


def products(b: ModelBuilder, none: str, some: str) -> list[str]:
    """Of no rows, of no columns, and of rows without elements: ONNX Runtime leaves several of these as they are."""
    turned = b.node("Transpose", none, perm=[0, 2, 1])
    rows, columns = (
        b.node("Reshape", one, numbers(b, *shape), allowzero=1) for one, shape in ((none, (2, 0)), (turned, (0, 3)))
    )
    return [b.node("MatMul", rows, columns), b.node("MatMul", none, turned), b.node("MatMul", some, turned)]


def windows(b: ModelBuilder, none: str, some: str) -> list[str]:
    """Of no images."""
    images = b.node("Reshape", none, numbers(b, 0, 4, 5, 5), allowzero=1)
    kernel = b.constant(np.ones((6, 4, 3, 3), np.float32))
    pools = [b.node(kind, images, kernel_shape=[2, 2]) for kind in ("MaxPool", "AveragePool")]
    return [*pools, b.node("Conv", images, kernel), b.node("GlobalAveragePool", images), b.node("Neg", some)]


def past(b: ModelBuilder, none: str, some: str) -> list[str]:
    """Attention of a step that is the first."""
    empty = b.node("Reshape", none, numbers(b, 2, 1, 0, 3), allowzero=1)
    names = ["y", "keys", "values"]
    inputs = [some, some, some, "", "", "", empty, empty]
    b.node_of_many(f"{CONTRIB}.MultiHeadAttention", inputs, names, num_heads=1)
    return names


def left_to_the_framework(b: ModelBuilder, none: str, some: str) -> list[str]:
    rows = b.node("Reshape", none, numbers(b, 3, 0), allowzero=1)
    return [b.node("Gemm", rows, rows, transB=1), b.node("Hardmax", none), b.node("Relu", some)]


@pytest.mark.parametrize("is_said", [True, False])
@pytest.mark.parametrize(
    "network", [elementwise, reductions, joined, movements, products, windows, past, left_to_the_framework]
)
def test_numbers_are_those_of_the_framework(network: Network, is_said: bool, tmp_path: Path) -> None:
    """Whether the file says that there are none, or leaves it open."""
    b = ModelBuilder()
    none, some = (b.input(name, shape) for name, shape in (("none", NONE if is_said else (2, "n", 3)), ("some", SOME)))
    results = network(b, none, some)
    path = tmp_path / "model.onnx"
    path.write_bytes(b.finish(*results, dtype=np.float32, version=18))
    fallback = "framework" if network is left_to_the_framework else "none"
    executable = qdialect.compile(path, fallback=fallback, dims={} if is_said else {"n": 0})
    arrays = [np.zeros(NONE, np.float32), np.arange(6, dtype=np.float32).reshape(SOME)]
    for found, one in zip(executable.results(arrays), of_onnx_runtime(path, *arrays), strict=True):
        assert found.dtype == one.dtype
        assert_floats_within(found, one, "layer")


def test_a_cache_grows_from_nothing(tmp_path: Path) -> None:
    """Every call gives the past of the next, in this process and as a library."""
    b = ModelBuilder()
    cache = b.node("Concat", b.input("past", (1, "steps", 2)), b.input("x", (1, 1, 2)), axis=1)
    (tmp_path / "model.onnx").write_bytes(b.finish(cache, b.node("Neg", cache), dtype=np.float32))
    executable = qdialect.compile(tmp_path / "model.onnx", fallback="none", dims={"steps": (0, 4)})
    held = np.zeros((1, 0, 2), np.float32)
    for step in range(3):
        held, negated = executable.results([held, np.full((1, 1, 2), step, np.float32)])
        np.testing.assert_array_equal(held[0, :, 0], np.arange(step + 1))
        np.testing.assert_array_equal(negated, -held)
    first = qdialect.compile(tmp_path / "model.onnx", dims={"steps": 0})
    first.save(tmp_path / "model.so")
    loaded = qdialect.load(tmp_path / "model.so")
    found, _ = loaded.results([np.zeros((1, 0, 2), np.float32), np.ones((1, 1, 2), np.float32)])
    np.testing.assert_array_equal(found, np.ones((1, 1, 2)))


def test_shapes_that_do_not_fit_are_refused_without_elements_too(tmp_path: Path) -> None:
    b = ModelBuilder()
    b.node("Concat", b.input("x", (0, 4)), b.input("z", (2, 3)), axis=0, output="y")
    (tmp_path / "model.onnx").write_bytes(b.finish("y", dtype=np.float32))
    with pytest.raises(QDialectError):
        qdialect.compile(tmp_path / "model.onnx")
