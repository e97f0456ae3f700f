"""Networks whose inputs leave extents open: each shape is compiled when it is first seen, and kept."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from onnx_graphs import ModelBuilder

import qdialect
from qdialect.runtime import shaped
from qdialect.support.diagnostics import InputError

X = (0.05, 128)


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """The sum of two quantized inputs that share an extent."""
    b = ModelBuilder()
    lhs, rhs = (b.dequantize(b.input(name, ("batch", "seq"), np.uint8), X) for name in ("a", "b"))
    path = tmp_path / "model.onnx"
    path.write_bytes(b.finish(b.quantize(b.node("Add", lhs, rhs), X)))
    return path


def arrays(*shape: int) -> tuple[np.ndarray, np.ndarray]:
    drawn = np.random.default_rng(0)
    return drawn.integers(0, 256, shape, dtype=np.uint8), drawn.integers(0, 256, shape, dtype=np.uint8)


def expected(a: np.ndarray, b: np.ndarray) -> list[list[int]]:
    return np.clip(a.astype(np.int64) + b - 128, 0, 255).tolist()


def test_calls_with_other_shapes_compile_once(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    executable = qdialect.compile(model, dims={"seq": 5})
    for shape in ((1, 5), (1, 7), (3, 5), (1, 7)):
        given = arrays(*shape)
        found = executable(*given)
        assert isinstance(found, np.ndarray)
        assert found.tolist() == expected(*given)
    outputs = [np.empty((3, 5), np.uint8)]
    executable.run(arrays(3, 5), outputs)
    call = executable.bind(arrays(3, 5), outputs)
    monkeypatch.setattr("qdialect.driver.fallback.compile_tuned", None)
    call()
    assert outputs[0].tolist() == expected(*arrays(3, 5))
    # Known shapes are not compiled again; a new one would be.
    executable(*arrays(1, 7))
    with pytest.raises(TypeError):
        executable(*arrays(1, 9))


def test_a_shape_can_be_compiled_before_it_is_called(model: Path) -> None:
    executable = qdialect.compile(model, dims={"seq": 5}).for_shape({"seq": 4, "batch": 2})
    assert [port.shape for port in executable.inputs] == [(2, 4), (2, 4)]
    given = arrays(2, 4)
    found = executable(*given)
    assert isinstance(found, np.ndarray)
    assert found.tolist() == expected(*given)
    with pytest.raises(InputError, match="extents must be open extents of inputs, but got depth"):
        qdialect.compile(model, dims={"seq": 5}).for_shape({"depth": 4})


def test_shapes_that_do_not_fit(model: Path) -> None:
    executable = qdialect.compile(model, dims={"seq": 5})
    a, b = arrays(1, 5)
    with pytest.raises(InputError, match="extent 'seq' must be one for all inputs, but got 5 and 4"):
        executable(a, b[:, :4])
    with pytest.raises(InputError, match=r"input 'a' must be uint8\[1, 5\], but got uint8\[5\]"):
        executable(a[0], b)
    with pytest.raises(InputError, match="network must be called with 2 inputs, but got 1"):
        executable(a)


def test_few_shapes_are_kept(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shaped, "KEPT", 1)
    executable = qdialect.compile(model, dims={"seq": 5})
    first = executable.for_shape({"seq": 6})
    assert executable.for_shape({"seq": 6}) is first
    executable.for_shape({"seq": 7})
    assert executable.for_shape({"seq": 6}) is not first


def test_a_network_of_one_shape(tmp_path: Path) -> None:
    b = ModelBuilder()
    data = b.dequantize(b.input("x", (1, 4), np.uint8), X)
    path = tmp_path / "model.onnx"
    path.write_bytes(b.finish(b.quantize(b.node("Relu", data), X)))
    with pytest.raises(InputError, match="network has one shape"):
        qdialect.compile(path).for_shape({"seq": 3})
