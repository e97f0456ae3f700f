"""Programs made to take time or memory: both are bounded by the size of the archive, and messages name the node."""

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
import torch
from bounds import deadline, memory_at_most
from tolerances import assert_within, loosest, tolerance_of
from torch_models import Members, argument, call, node, packed, quantization, tensor, with_nodes

import qdialect
from qdialect.frontends.torch import import_torch
from qdialect.reference.interpreter import run

MAX_MEMORY = 1 << 30


@pytest.fixture(autouse=True)
def _bounded() -> Iterator[None]:
    with deadline(), memory_at_most(MAX_MEMORY):
        yield


def notes(members: Members) -> list[str]:
    with pytest.raises(qdialect.ImportModelError) as caught:
        import_torch(packed(members))
    return [note.message for diagnostic in caught.value.diagnostics for note in diagnostic.notes]


@pytest.mark.parametrize("kind", ["relu.default", "tanh.default", "neg.default", "t.default"])
def test_long_chains(kind: str) -> None:
    """2,000 operators in a row need no more of Python's stack than 20."""
    names = ["numbers", *(f"v{index}" for index in range(2000))]
    nodes = [call(kind, new, old) for old, new in pairwise(names)]
    shapes = {new: [4, 2] for new in names[1::2]} if kind == "t.default" else None
    module = import_torch(packed(with_nodes(nodes, shapes)))
    values = np.arange(-4, 4, dtype=np.int8).reshape(2, 4)
    (found,) = run(module, [values])
    wanted: Any = torch.tensor((values / 4).tolist())
    for _ in range(2000):
        wanted = getattr(torch.ops.aten, kind.split(".")[0]).default(wanted)
    assert_within(found, np.rint(wanted.numpy() * 4).astype(found.dtype), tolerance_of(".pt2", kind))


def test_sums_of_values_that_are_read_twice() -> None:
    """40 levels, of which each doubles the ways to the input."""
    nodes: list[dict[str, Any]] = []
    last = "numbers"
    for level in range(40):
        nodes += [call("tanh.default", f"t{level}", last), call("sigmoid.default", f"s{level}", last)]
        last = f"sum{level}"
        nodes.append(call("add.Tensor", last, f"t{level}", f"s{level}"))
    values = np.arange(-4, 4, dtype=np.int8).reshape(2, 4)
    (found,) = run(import_torch(packed(with_nodes(nodes))), [values])
    wanted = values.astype(np.float32) / 4
    for _ in range(40):
        wanted = np.tanh(wanted) + 1 / (1 + np.exp(-wanted))
    operators = ("aten.tanh.default", "aten.sigmoid.default")
    assert_within(found, np.rint(wanted * 4).astype(found.dtype), loosest(".pt2", operators))


def test_parts_that_are_joined_and_taken_apart() -> None:
    nodes: list[dict[str, Any]] = []
    shapes: dict[str, list[int]] = {}
    last = "first"
    nodes.append(call("tanh.default", last, "numbers"))
    for level in range(60):
        joined, part = f"joined{level}", f"part{level}"
        tensors = {"name": "tensors", "arg": {"as_tensors": [{"name": last}] * 2}, "kind": 1}
        nodes.append(node("torch.ops.aten.cat.default", joined, tensors, argument("dim", "as_int", 0)))
        bounds = {"dim": {"as_int": 0}, "start": {"as_int": 1}, "end": {"as_int": 3}}
        nodes.append(call("slice.Tensor", part, joined, **bounds))
        shapes[joined] = [4, 4]
        last = part
    import_torch(packed(with_nodes(nodes, shapes)))


def test_many_quantizations_of_one_network() -> None:
    """Each of them would compute everything before it once more."""
    width, readers = 60, 400
    names = [f"v{index}" for index in range(width)]
    nodes = [call("tanh.default", names[0], "numbers")]
    for old, new in pairwise(names):
        joined = {"name": "tensors", "arg": {"as_tensors": [{"name": old}, {"name": old}]}, "kind": 1}
        nodes.append(node("torch.ops.aten.cat.default", f"{new}_both", joined, argument("dim", "as_int", 0)))
        nodes.append(
            call("slice.Tensor", new, f"{new}_both", dim={"as_int": 0}, start={"as_int": 0}, end={"as_int": 2})
        )
    total = names[-1]
    for index in range(readers):
        nodes += [quantization("quantize", f"q{index}", names[-1], 0.1 + index / 1000)]
        nodes += [quantization("dequantize", f"d{index}", f"q{index}", 0.1 + index / 1000)]
        nodes.append(call("add.Tensor", f"sum{index}", total, f"d{index}"))
        total = f"sum{index}"
    shapes = {f"{name}_both": [4, 4] for name in names}
    message = notes(with_nodes(nodes, shapes))[0]
    assert "program must not take more than" in message


def _joins(operand: str, name: str) -> dict[str, Any]:
    return call("mul.Tensor", name, "numbers", operand)


def created(kind: str, *arguments: dict[str, Any]) -> Members:
    """A program whose input is multiplied with what a node creates."""
    return with_nodes([node(f"torch.ops.aten.{kind}", "made", *arguments), _joins("made", "last")])


LARGE: dict[str, Members] = {
    "full": created("full.default", argument("size", "as_ints", [1 << 36]), argument("fill_value", "as_int", 1)),
    "zeros": created("zeros.default", argument("size", "as_ints", [1 << 20, 1 << 20])),
    "arange": created("arange.default", argument("end", "as_int", 1 << 40)),
    "expand": with_nodes(
        [call("expand.default", "made", "p_weight", size={"as_ints": [1 << 40, 3, 4]}), _joins("made", "last")]
    ),
    "repeat": with_nodes(
        [call("repeat.default", "made", "p_weight", repeats={"as_ints": [1 << 20, 1 << 20]}), _joins("made", "last")]
    ),
}


@pytest.mark.parametrize("kind", LARGE)
def test_constants_that_are_created(kind: str) -> None:
    (note,) = notes(LARGE[kind])
    assert note.startswith(f"node 'made' aten.{kind}")
    assert "constants that a model makes must have at most" in note


def test_constants_that_are_created_again_and_again() -> None:
    size = argument("size", "as_ints", [1 << 24])
    nodes = [node("torch.ops.aten.ones.default", f"made{index}", size) for index in range(100)]
    nodes += [call("add.Tensor", f"sum{index}", f"made{index}", f"made{index + 1}") for index in range(99)]
    nodes += [_joins(f"sum{index}", f"product{index}") for index in range(99)]
    nodes += [call("add.Tensor", "last", "product0", "product98")]
    found = notes(with_nodes(nodes))
    assert any("constants that a model makes must have at most" in note for note in found)


def test_products_of_constants() -> None:
    """Time counts as well as memory: each product of these takes 69 billion steps."""
    size = argument("size", "as_ints", [1 << 12, 1 << 12])
    nodes = [node("torch.ops.aten.ones.default", "made", size)]
    operands = [{"name": key, "arg": tensor("made"), "kind": 1} for key in ("self", "mat2")]
    nodes += [node("torch.ops.aten.mm.default", "product", *operands), _joins("product", "last")]
    (note,) = notes(with_nodes(nodes))
    assert note.startswith("node 'product' aten.mm: constants that a model makes must have at most")
