"""Large constants of equal content, of which a process holds one copy."""

import gc
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

import qdialect
from qdialect.runtime import memory
from qdialect.runtime.constants import placed
from qdialect.support.large_constants import LARGE, ROW, append_table, table_of

COUNT = 512
WEIGHTS = np.random.default_rng(1).normal(size=(COUNT, COUNT)).astype(np.float32)


def of_parts(*parts: bytes) -> NDArray[np.uint8]:
    """Constants with a table of those that are large."""
    content, large = bytearray(), dict[int, tuple[int, bytes]]()
    for part in parts:
        if len(part) >= LARGE:
            large[len(content)] = len(part), part[:16]
        content.extend(part)
    append_table(content, large)
    return np.frombuffer(bytes(content), np.uint8)


def own_memory(size: int) -> memory.Block:
    """Memory of a user's own."""
    return memory.allocate(size)


def test_constants_of_equal_content_are_held_once() -> None:
    one, other, small = (bytes([value]) * size for value, size in ((1, LARGE), (2, LARGE + 64), (3, 192)))
    contents = [of_parts(small, one, other), of_parts(other, small), of_parts(small)]
    found = [placed(content) for content in contents]
    for constants, content in zip(found, contents, strict=True):
        np.testing.assert_array_equal(constants.content(), content)
    starts = [
        [constants.block.ctypes.data + int(row["offset"]) for row in table_of(constants.block[: constants.size])]
        for constants in found
    ]
    assert [len(row) for row in starts] == [2, 1, 0]
    assert len(table_of(np.broadcast_to(np.uint8(7), 64))) == 0
    assert starts[0][1] == starts[1][0]
    # Of memory that a user allocates nothing is elsewhere.
    own = placed(contents[0], own_memory)
    np.testing.assert_array_equal(own.block[: own.size], contents[0])
    # Constants that one network still has outlive the one that made them.
    constants = found.pop(0)
    del constants
    gc.collect()
    np.testing.assert_array_equal(found[0].content(), contents[1])


def test_weights_that_end_as_a_table() -> None:
    row = np.array([(0, LARGE, b"digest"), (1, 0, b"qnn large")], ROW).tobytes()
    assert len(table_of(np.frombuffer(row, np.uint8))) == 1
    assert len(table_of(of_parts(row))) == 0


def matmul(name: str, added: float) -> onnx.GraphProto:
    bias = numpy_helper.from_array(np.full(COUNT, added, np.float32), f"{name}_bias")
    nodes = [
        helper.make_node("MatMul", ["x", "w"], [f"{name}_m"]),
        helper.make_node("Add", [f"{name}_m", bias.name], [name]),
    ]
    return helper.make_graph(
        nodes, name, [], [helper.make_tensor_value_info(name, TensorProto.FLOAT, [2, COUNT])], [bias]
    )


def test_branches_share_their_weights(tmp_path: Path) -> None:
    inputs = [
        helper.make_tensor_value_info("x", TensorProto.FLOAT, [2, COUNT]),
        helper.make_tensor_value_info("c", TensorProto.BOOL, []),
    ]
    chosen = helper.make_node("If", ["c"], ["y"], then_branch=matmul("t", 1), else_branch=matmul("e", 2))
    result = helper.make_tensor_value_info("y", TensorProto.FLOAT, [2, COUNT])
    graph = helper.make_graph([chosen], "graph", inputs, [result], [numpy_helper.from_array(WEIGHTS, "w")])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    (path := tmp_path / "branches.onnx").write_bytes(model.SerializeToString())
    executable = qdialect.compile(path, threads=2)
    x = np.random.default_rng(2).normal(size=(2, COUNT)).astype(np.float32)
    found = {value: np.asarray(executable(x, np.array(value))) for value in (True, False)}
    for value, added in ((True, 1), (False, 2)):
        np.testing.assert_allclose(found[value], x @ WEIGHTS + added, atol=1e-3)
    parts: Any = executable
    first, second = ({id(held) for _, held in branch._constants._held} for branch in parts.branches)
    assert first
    assert first == second
