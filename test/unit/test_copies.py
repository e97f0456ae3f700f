"""An executable that is copied, pickled, or sent to other processes."""

from __future__ import annotations

import copy
import multiprocessing
import operator
import pickle
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
from deadline import HANG
from numpy.typing import NDArray
from onnx_graphs import ModelBuilder

import qdialect
from qdialect.ir.context import parse
from qdialect.runtime import Executable
from qdialect.support.diagnostics import CompileError, InputError

CLIP = """func.func @main(%x: tensor<2x3xi8>) -> tensor<2x3xi8> {
  %0 = "qnn.clip"(%x) {min = -5 : i64, max = 9 : i64} : (tensor<2x3xi8>) -> tensor<2x3xi8>
  return %0 : tensor<2x3xi8>
}"""
IMAGE = np.full((2, 3), 100, np.int8)


@pytest.fixture(scope="module")
def executable() -> Executable:
    return qdialect.compile(parse(CLIP), workspaces=3)


def largest(network: Executable, image: NDArray[Any]) -> int:
    found = network(image)
    return int(np.max(found))


def test_a_copy_is_the_executable_itself(executable: Executable) -> None:
    assert copy.copy(executable) is executable
    assert copy.deepcopy([executable])[0] is executable


def test_a_pickled_executable_computes_the_same(executable: Executable) -> None:
    for network in (executable, pickle.loads(pickle.dumps(executable))):
        found: Executable = pickle.loads(pickle.dumps(network))
        assert largest(found, IMAGE) == 9
        assert (found.inputs, found.outputs, found.workspaces) == (executable.inputs, executable.outputs, 3)


@pytest.mark.parametrize("method", ["spawn", "forkserver"])
def test_processes_get_executables(executable: Executable, method: str) -> None:
    calls = [(executable, IMAGE), (executable, IMAGE - 95)]
    with multiprocessing.get_context(method).Pool(1) as pool:
        found = pool.starmap_async(operator.call, calls).get(HANG)
    assert [np.asarray(array).tolist() for array in found] == [[[9] * 3] * 2, [[5] * 3] * 2]


def test_bound_calls_are_neither_copied_nor_pickled(executable: Executable) -> None:
    call = executable.bind([IMAGE], [np.empty_like(IMAGE)])
    for made in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(TypeError, match="a bound call is of arrays of this process"):
            made(call)


def test_a_loaded_file_that_was_replaced_is_saved_as_it_was(executable: Executable, tmp_path: Path) -> None:
    path = tmp_path / "network.so"
    executable.save(path)
    loaded, content = qdialect.load(path), path.read_bytes()
    path.unlink()
    path.write_bytes(b"something else")
    loaded.save(tmp_path / "copy.so")
    assert (tmp_path / "copy.so").read_bytes() == content


def test_open_shapes_are_pickled_with_what_was_compiled(tmp_path: Path) -> None:
    b = ModelBuilder()
    (tmp_path / "model.onnx").write_bytes(
        b.finish(b.node("Relu", b.input("x", ("batch", "seq"), np.float32)), dtype=np.float32)
    )
    network = qdialect.compile(tmp_path / "model.onnx", dims={"seq": (1, 4)})
    network.for_shape({"seq": 2})
    found: Executable = pickle.loads(pickle.dumps(network))
    for shape in ((1, 4), (1, 2)):
        np.testing.assert_array_equal(found(np.ones(shape, np.float32)), np.ones(shape))
    with pytest.raises(InputError, match="network must be compiled for batch=1, seq=3 before it is pickled"):
        found(np.ones((1, 3), np.float32))


def test_a_network_in_parts_is_not_pickled(tmp_path: Path) -> None:
    b = ModelBuilder()
    hardmax = b.node("Hardmax", b.node("Relu", b.input("image", (1, 4, 3, 3), np.float32)))
    (tmp_path / "model.onnx").write_bytes(b.finish(hardmax, dtype=np.float32))
    network = qdialect.compile(tmp_path / "model.onnx", fallback="framework")
    with pytest.raises(CompileError, match="network must be compiled as a whole to be saved"):
        pickle.dumps(network)
    assert copy.copy(network) is network


@pytest.mark.parametrize("range_", [(-1, 4), (5, 4), (1,), (1, 2.5), "seq", None])
def test_ranges_that_are_none(range_: object, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"dims\['seq'\] must be an integer or a range \(minimum, maximum\)"):
        qdialect.compile(tmp_path / "model.onnx", dims={"seq": cast("int", range_)})
