"""Archives of PyTorch programs by strangers: nothing in them is executed, and messages say where they are wrong."""

from __future__ import annotations

import copy
import io
import json
from collections.abc import Callable, Iterator
from pathlib import Path, PurePosixPath
from typing import Any

import pytest
import torch
from torch_archives import (
    CONSTANTS,
    PROGRAM,
    ROOT,
    SAMPLES,
    WEIGHTS,
    Members,
    argument,
    bare_pickle,
    edited,
    good,
    good_content,
    graph_of,
    node,
    packed,
    pickled,
    program,
    with_node,
)

import qdialect
from qdialect.cli.import_model import main
from qdialect.cli.run import main as run_main
from qdialect.frontends.torch import import_torch, nodes_of

Attack = Callable[[str], Members]
"""Members of an archive that would make a file of the given name."""


def _symbol(marker: str) -> dict[str, Any]:
    call = f"__import__('os').system('touch {marker}')"
    return {"as_expr": {"expr_str": call, "hint": {"as_int": 2}}}


def _extent(marker: str) -> Members:
    def change(held: Any) -> None:
        graph_of(held)["tensor_values"]["x"]["sizes"][0] = _symbol(marker)

    return edited(PROGRAM, change)


def _inner_extent(marker: str) -> Members:
    def change(held: Any) -> None:
        graph_of(held)["tensor_values"]["relu"]["strides"][0] = _symbol(marker)
        graph_of(held)["tensor_values"]["relu"]["sizes"][0] = _symbol(marker)

    return edited(PROGRAM, change)


def _weight_extent(marker: str) -> Members:
    def change(held: Any) -> None:
        held["config"]["weight"]["tensor_meta"]["sizes"][0] = _symbol(marker)

    return edited(WEIGHTS, change)


def _symbol_table(marker: str) -> Members:
    def change(held: Any) -> None:
        graph_of(held)["sym_int_values"]["s0"] = _symbol(marker)
        graph_of(held)["nodes"][0]["inputs"][0]["arg"] = {"as_sym_int": {"as_name": "s0"}}

    return edited(PROGRAM, change)


def _pickled_weight(marker: str) -> Members:
    def change(held: Any) -> None:
        held["config"]["weight"].update(use_pickle=True, path_name="weight_7")

    return {**edited(WEIGHTS, change), "data/weights/weight_7": pickled(marker)}


def _custom_object(file: str, content: bytes) -> Members:
    """A constant that is an object, as the first input."""

    def change(held: Any) -> None:
        held["graph_module"]["signature"]["input_specs"][0] = {
            "custom_obj": {"arg": {"name": "p_weight", "class_fqn": "Boom"}, "custom_obj_name": "boom"}
        }

    members = edited(PROGRAM, change)
    config = {"boom": {"path_name": file, "is_param": False, "use_pickle": True, "tensor_meta": None}}
    return {**members, CONSTANTS: json.dumps({"config": config}).encode(), f"data/constants/{file}": content}


def _file_of_weights(marker: str, *, kind: str = "data/weights/model.pt") -> Members:
    """Where earlier versions put all weights, or all constants."""
    return {**good(), kind: pickled(marker)}


def _before_2_8(marker: str) -> Members:
    return {"serialized_exported_program.json": good()[PROGRAM], "serialized_state_dict.pt": pickled(marker)}


def _from_file(marker: str) -> Members:
    where = argument("filename", "as_string", marker)
    size = argument("size", "as_int", 16)
    return with_node(node("torch.ops.aten.from_file.default", "boom", where, argument("shared", "as_bool", True), size))


def _calls(target: str, *, shell: bool = False) -> Attack:
    def attack(marker: str) -> Members:
        text = f"touch {marker}" if shell else marker
        return with_node(node(target, "boom", argument("", "as_string", text)))

    return attack


def _operator_argument(marker: str) -> Members:
    given = argument("f", "as_operator", "torch.os.system")
    text = argument("x", "as_string", f"touch {marker}")
    return with_node(node("torch.ops.higher_order.wrap", "boom", given, text))


def _subgraph(marker: str) -> Members:
    graph = graph_of(json.loads(_from_file(marker)[PROGRAM]))
    branch = argument("true_graph_0", "as_graph", {"name": "true_graph_0", "graph": graph})
    return with_node(node("torch.ops.higher_order.cond", "boom", argument("", "as_bool", True), branch))


def _torchbind(marker: str) -> Members:
    given = argument("", "as_custom_obj", {"name": "boom", "class_fqn": "Boom"})
    method = argument("", "as_string", "__reduce__")
    members = with_node(node("torch.ops.higher_order.call_torchbind", "boom", given, method))
    config = {"boom": {"path_name": "custom_obj_0", "is_param": False, "use_pickle": True, "tensor_meta": None}}
    extra = {CONSTANTS: json.dumps({"config": config}).encode(), "data/constants/custom_obj_0": pickled(marker)}
    return {**members, **extra}


BEFORE = "the format before 2.8"
REFUSED: dict[str, Attack] = {
    "open extents": _extent,
    "extents of results": _inner_extent,
    "extents of weights": _weight_extent,
    "symbols": _symbol_table,
    "pickled weights": _pickled_weight,
    "custom objects": lambda marker: _custom_object("custom_obj_0", pickled(marker)),
    "opaque objects": lambda marker: _custom_object("opaque_obj_0", bare_pickle(marker)),
    "pickled constants": lambda marker: _custom_object("tensor_0", pickled(marker)),
    BEFORE: _before_2_8,
    "aten.from_file": _from_file,
    "functions below torch": _calls("torch.os.system", shell=True),
    "private functions": _calls("torch._C._pickle_load_obj"),
    "loading": _calls("torch.ops.load_library"),
    "unpickling": _calls("torch.load"),
    "evaluation": _calls("torch.ops.aten.eval.default"),
    "operators of an extension": _calls("#boom:load"),
    "operators of a library": _calls("torch.ops.boom.load.default"),
    "scripts": _calls("torch.jit.load"),
    "operators as arguments": _operator_argument,
    "graphs as arguments": _subgraph,
    "methods of objects": _torchbind,
    "Python's operators": _calls("_operator.attrgetter"),
}
IGNORED: dict[str, Attack] = {
    "sample inputs": lambda marker: {**good(), SAMPLES: pickled(marker)},
    "bare sample inputs": lambda marker: {**good(), SAMPLES: bare_pickle(marker)},
    "all weights in one file": _file_of_weights,
    "all constants in one file": lambda marker: _file_of_weights(marker, kind="data/constants/model.pt"),
    "extra files": lambda marker: {**good(), "extra/boom.pkl": pickled(marker)},
    "shared libraries": lambda marker: {
        **good(),
        "data/aotinductor/model/boom.so": pickled(marker),
        "data/aotinductor/model/boom_metadata.json": b"{}",
    },
    "another program": lambda marker: {**good(), "models/other.json": _extent(marker)[PROGRAM]},
    "an archive in the archive": lambda marker: {**good(), "extra/inner.pt2": packed(_pickled_weight(marker))},
    "guards": lambda marker: edited(
        PROGRAM, lambda held: held.update(guards_code=[_symbol(marker)["as_expr"]["expr_str"]])
    ),
}


@pytest.fixture
def marker(tmp_path: Path) -> Iterator[str]:
    """A file that must not be there at the end."""
    path = tmp_path / "boom"
    yield str(path)
    assert not path.exists()


def test_attacks_work_without_protection(tmp_path: Path) -> None:
    """The markers are written where such an archive is trusted, so that their absence means something."""
    marker = tmp_path / "boom"
    path = tmp_path / "evil.pt2"
    path.write_bytes(packed(_pickled_weight(str(marker))))
    with pytest.raises(qdialect.ImportModelError):
        import_torch(path, trust=True)
    assert marker.exists()


@pytest.mark.parametrize("attack", REFUSED)
def test_refused(attack: str, marker: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    content = packed(REFUSED[attack](marker), root="" if attack == BEFORE else ROOT)
    with pytest.raises(qdialect.ImportModelError) as caught:
        import_torch(content)
    assert "'model.pt2'" in str(caught.value)
    path = tmp_path / "evil.pt2"
    path.write_bytes(content)
    assert main([str(path), "--report"]) == 1
    assert main([str(path)]) == 1
    assert capsys.readouterr().err.count("'evil.pt2'") == 2


@pytest.mark.parametrize("attack", IGNORED)
def test_ignored(attack: str, marker: str, tmp_path: Path) -> None:
    content = packed(IGNORED[attack](marker))
    assert str(import_torch(content)) == str(import_torch(good_content()))
    path = tmp_path / "evil.pt2"
    path.write_bytes(content)
    assert main([str(path), "--report"]) == 0


def _with_pickled_tensor(*, needs_trust: bool) -> bytes:
    """An archive as PyTorch writes it for a weight of a class of its own: nothing hostile in it, but a pickle."""
    stream, weight = io.BytesIO(), copy.deepcopy(program().state_dict["weight"])
    if needs_trust:
        weight.origin = PurePosixPath("somewhere")
    torch.save(weight, stream)

    def change(held: Any) -> None:
        held["config"]["weight"].update(use_pickle=True, path_name="weight_7")

    return packed({**edited(WEIGHTS, change), "data/weights/weight_7": stream.getvalue()})


def test_trust(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What needs a pickle is read on demand, and then it is the same program."""
    path = tmp_path / "pickled.pt2"
    path.write_bytes(_with_pickled_tensor(needs_trust=True))
    hint = "must be false, unless it is trusted (--trust-pt2, trust=True): loading a pickle can run any code"
    for command in (main, run_main):
        assert command([str(path)]) == 1
        assert hint in capsys.readouterr().err
    with pytest.raises(qdialect.ImportModelError, match="use_pickle must be false"):
        nodes_of(path)
    wanted = str(import_torch(program()))
    assert main([str(path), "--trust-pt2"]) == 0
    assert capsys.readouterr().out == wanted
    assert main([str(path), "--trust-pt2", "--report"]) == 0
    assert run_main([str(path), "--trust-pt2", "--reference"]) == 0
    assert str(import_torch(path, trust=True)) == wanted
    assert len(nodes_of(path, trust=True)) == len(nodes_of(program()))
    assert qdialect.compile(path, trust=True).inputs[0].shape == (2, 4)


def test_pickles_of_nothing_but_tensors_need_no_trust(tmp_path: Path) -> None:
    path = tmp_path / "pickled.pt2"
    path.write_bytes(_with_pickled_tensor(needs_trust=False))
    assert str(import_torch(path)) == str(import_torch(program()))


def test_archives_hold_the_program(tmp_path: Path) -> None:
    """Read from its archive, a program is what it is in memory: nodes, names and modules."""
    path = tmp_path / "good.pt2"
    path.write_bytes(good_content())
    assert nodes_of(path) == nodes_of(program())
    assert str(import_torch(path)) == str(import_torch(program()))


def test_names_in_messages_are_escaped(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    bad = node("torch.ops.aten.\x1b[31mboom", "boom", argument("", "as_string", "\x1b[0m"))
    bad["metadata"] = {"nn_module_stack": "k,inner\x1b[2J,type"}
    path = tmp_path / "evil.pt2"
    path.write_bytes(packed(with_node(bad)))
    assert main([str(path)]) == 1
    assert "node 'boom' aten.\\x1b[31mboom (inner\\x1b[2J): operator is not supported" in capsys.readouterr().err
