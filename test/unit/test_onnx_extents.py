"""Extents that inputs of ONNX models leave open."""

from typing import Any

import numpy as np
import pytest
from onnx_graphs import ModelBuilder

from qdialect.frontends.onnx import import_onnx
from qdialect.support.diagnostics import ImportModelError

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
