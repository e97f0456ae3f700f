"""Archives of PyTorch programs by strangers: nothing in them is executed, and messages say where they are wrong."""

import copy
import io
import json
import re
import stat
import struct
import zipfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import Any

import pytest
import torch
from bounds import memory_at_most
from torch_models import (
    CONSTANTS,
    PROGRAM,
    ROOT,
    SAMPLES,
    WEIGHTS,
    Members,
    argument,
    bare_pickle,
    directory,
    edited,
    good,
    good_content,
    graph_of,
    node,
    packed,
    pickled,
    program,
    tensor,
    with_node,
)

import qdialect
from qdialect.cli.import_model import main
from qdialect.cli.run import main as run_main
from qdialect.frontends.torch import import_torch, nodes_of

Attack = Callable[[str], Members]
"""Members of an archive that would make a file of the given name."""
NODES, VALUES, META = "graph_module/graph/nodes", "graph_module/graph/tensor_values", "config/weight/tensor_meta"
GONE = object()


def changed(member: str, values: Mapping[str, Any], **others: bytes) -> Members:
    """The good members, but in the JSON of one the values at these paths are others, or `GONE`."""

    def change(held: Any) -> None:
        for path, value in values.items():
            at: Any = held
            way = path.split("/")
            for key in way[:-1]:
                at = at[int(key) if isinstance(at, list) else key]
            key: Any = int(way[-1]) if isinstance(at, list) else way[-1]
            if value is GONE:
                del at[key]
            else:
                at[key] = value

    return edited(member, change, **others)


def _symbol(marker: str) -> dict[str, Any]:
    call = f"__import__('os').system('touch {marker}')"
    return {"as_expr": {"expr_str": call, "hint": {"as_int": 2}}}


def _pickled_weight(marker: str) -> Members:
    values = {"config/weight/use_pickle": True, "config/weight/path_name": "weight_7"}
    return {**changed(WEIGHTS, values), "data/weights/weight_7": pickled(marker)}


def _constants(file: str, content: bytes) -> Members:
    config = {"boom": {"path_name": file, "is_param": False, "use_pickle": True, "tensor_meta": None}}
    return {CONSTANTS: json.dumps({"config": config}).encode(), f"data/constants/{file}": content}


def _custom_object(file: str, content: bytes) -> Members:
    """A constant that is an object, as the first input."""
    given = {"arg": {"name": "p_weight", "class_fqn": "Boom"}, "custom_obj_name": "boom"}
    members = changed(PROGRAM, {"graph_module/signature/input_specs/0": {"custom_obj": given}})
    return {**members, **_constants(file, content)}


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
    return {**members, **_constants("custom_obj_0", pickled(marker))}


BEFORE = "the format before 2.8"
REFUSED: dict[str, Attack] = {
    "open extents": lambda marker: changed(PROGRAM, {f"{VALUES}/x/sizes/0": _symbol(marker)}),
    "extents of results": lambda marker: changed(
        PROGRAM, {f"{VALUES}/relu/{what}/0": _symbol(marker) for what in ("strides", "sizes")}
    ),
    "extents of weights": lambda marker: changed(WEIGHTS, {f"{META}/sizes/0": _symbol(marker)}),
    "symbols": lambda marker: changed(
        PROGRAM,
        {
            "graph_module/graph/sym_int_values/s0": _symbol(marker),
            f"{NODES}/0/inputs/0/arg": {"as_sym_int": {"as_name": "s0"}},
        },
    ),
    "pickled weights": _pickled_weight,
    "custom objects": lambda marker: _custom_object("custom_obj_0", pickled(marker)),
    "opaque objects": lambda marker: _custom_object("opaque_obj_0", bare_pickle(marker)),
    "pickled constants": lambda marker: _custom_object("tensor_0", pickled(marker)),
    BEFORE: lambda marker: {
        "serialized_exported_program.json": good()[PROGRAM],
        "serialized_state_dict.pt": pickled(marker),
    },
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
    # Where earlier versions put all weights, and all constants.
    "all weights in one file": lambda marker: {**good(), "data/weights/model.pt": pickled(marker)},
    "all constants in one file": lambda marker: {**good(), "data/constants/model.pt": pickled(marker)},
    "extra files": lambda marker: {**good(), "extra/boom.pkl": pickled(marker)},
    "shared libraries": lambda marker: {
        **good(),
        "data/aotinductor/model/boom.so": pickled(marker),
        "data/aotinductor/model/boom_metadata.json": b"{}",
    },
    "another program": lambda marker: {**good(), "models/other.json": REFUSED["open extents"](marker)[PROGRAM]},
    "an archive in the archive": lambda marker: {**good(), "extra/inner.pt2": packed(_pickled_weight(marker))},
    "guards": lambda marker: changed(PROGRAM, {"guards_code": [_symbol(marker)["as_expr"]["expr_str"]]}),
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
    return packed({**_pickled_weight(""), "data/weights/weight_7": stream.getvalue()})


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


# What a .pt2 file may look like from outside: its zip file, the members' sizes, and the JSON of a program.


def message_of(content: bytes) -> str:
    with pytest.raises(qdialect.ImportModelError) as caught:
        import_torch(content)
    message = str(caught.value)
    assert message.startswith("'model.pt2': ")
    return message.removeprefix("'model.pt2': ")


def with_entry(name: str, content: bytes = b"", *, mode: int = 0) -> bytes:
    """The good archive with one member more."""
    stream = io.BytesIO(good_content())
    with zipfile.ZipFile(stream, "a") as archive:
        info = zipfile.ZipInfo(name)
        info.external_attr = mode << 16
        archive.writestr(info, content)
    return stream.getvalue()


@pytest.mark.parametrize(
    "name", ["/etc/passwd", "../boom", "archive/../../boom", "archive/a\\..\\boom", "\x1b[31mboom"]
)
def test_names_must_be_paths_below_the_folder(name: str) -> None:
    message = message_of(with_entry(name))
    assert message.endswith("must have a path below the archive's folder")
    assert "\x1b" not in message


def test_members_are_files_that_are_there_once() -> None:
    content = with_entry("archive/data/weights/weight_9", b"/etc/passwd", mode=stat.S_IFLNK | 0o777)
    assert message_of(content) == "member 'archive/data/weights/weight_9' must be a file, but is a link"
    with pytest.warns(UserWarning, match="Duplicate name"):
        content = with_entry(ROOT + PROGRAM, b"{}")
    assert message_of(content).endswith("models/model.json' must be there once")
    assert message_of(with_entry("other/model.json")) == "archive must have one folder, but got 2"


@pytest.mark.parametrize("member", [PROGRAM, WEIGHTS, CONSTANTS, "data/weights/weight_0"])
def test_missing_members(member: str) -> None:
    members = good()
    del members[member]
    assert message_of(packed(members)) == f"member '{member}' is missing"


def test_members_are_not_compressed() -> None:
    """So that no member is larger than the file."""
    bomb = {**good(), PROGRAM: b" " * (1 << 24)}
    content = packed(bomb, zipfile.ZIP_DEFLATED)
    assert len(content) < 1 << 20
    assert message_of(content).endswith("must be stored without compression")


def test_members_lie_apart() -> None:
    """Many members in the same bytes would take more memory than the file."""
    members = good()
    members["data/weights/large"] = bytes(1 << 16)
    members |= {f"data/weights/alias_{index}": b"" for index in range(100)}
    content = bytearray(packed(members))
    start = directory(content)
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        large = archive.getinfo(ROOT + "data/weights/large")
    for entry in re.finditer(rb"PK\x01\x02", bytes(content[start:])):
        at = start + entry.start()
        name_length = int.from_bytes(content[at + 28 : at + 30], "little")
        if b"alias_" in content[at + 46 : at + 46 + name_length]:
            content[at + 16 : at + 28] = struct.pack("<III", large.CRC, large.file_size, large.file_size)
            content[at + 42 : at + 46] = struct.pack("<I", large.header_offset)
    assert re.fullmatch(
        r"members must lie apart in a file of \d+ bytes, but have \d+ bytes together", message_of(bytes(content))
    )


def test_declared_sizes_are_not_allocated() -> None:
    content = bytearray(packed(good()))
    at = directory(content)
    content[at + 24 : at + 28] = struct.pack("<I", 0xFFFFFFF0)
    assert "stored without compression" in message_of(bytes(content))


def test_checksums() -> None:
    content = bytearray(packed(good()))
    at = content.index(b'"graph_module"')
    content[at + 1] ^= 1
    assert message_of(bytes(content)).startswith("member 'models/model.json' is damaged: Bad CRC-32")


def _integers(*numbers: int) -> list[dict[str, int]]:
    return [{"as_int": number} for number in numbers]


OUTSIDE = "must lie among the 12 elements of its member, but has"
WEIGHT_META: list[tuple[dict[str, Any], str]] = [
    ({"sizes": _integers(3, 1 << 40)}, "must have at most"),
    ({"sizes": _integers(4, 4)}, f"{OUTSIDE} 16, the last at 15"),
    # Repeated elements.
    ({"strides": _integers(0, 0)}, ""),
    ({"strides": _integers(100, 1)}, f"{OUTSIDE} 12, the last at 203"),
    ({"strides": _integers(-4, 1)}, "must not be negative, but got -4"),
    ({"strides": _integers(4)}, "must have a stride for each of 2 sizes, but got 1"),
    ({"storage_offset": {"as_int": 1}}, "the last at 12"),
    ({"dtype": 99}, "must be an element type, but got 99"),
    ({"dtype": 9}, "must not be complex32"),
    ({"layout": 1}, "must be 7, but got 1"),
    ({"sizes": _integers(*[1] * 40), "strides": _integers(*[1] * 40)}, "at most 32 dimensions"),
]


def _weight(values: Mapping[str, Any]) -> Members:
    return changed(WEIGHTS, {f"{META}/{name}": value for name, value in values.items()})


@pytest.mark.parametrize(("values", "wanted"), WEIGHT_META)
def test_weights_lie_in_their_members(values: dict[str, Any], wanted: str) -> None:
    content = packed(_weight(values))
    if wanted:
        assert wanted in message_of(content)
    else:
        import_torch(content)


def test_empty_members_hold_no_tensors() -> None:
    """PyTorch takes them for zeros of whatever size is declared."""
    content = packed({**_weight({"sizes": _integers(1 << 15, 1 << 15)}), "data/weights/weight_0": b""})
    assert "must lie among the 0 elements" in message_of(content)


UNKNOWN, NO_NAME = {"as_tensor": {"name": "nobody"}}, {"as_tensor": {"name": "a\nb"}}
INPUTS = f"{NODES}/1/inputs"
GRAPH: list[tuple[str, Any, str]] = [
    (NODES, GONE, "graph_module.graph must have 'nodes'"),
    (NODES, 5, "graph_module.graph.nodes must be a list, but got 5"),
    (f"{NODES}/0", "x", "nodes[0] must be an object, but got 'x'"),
    (f"{NODES}/0/inputs/0/arg", UNKNOWN, ".inputs[0].arg.as_tensor.name must be defined before, but 'nobody' is not"),
    (f"{NODES}/1/outputs/0", tensor("mul"), "name must be defined once, but 'mul' is defined before"),
    (f"{NODES}/0/outputs/0", NO_NAME, "must be a name of letters, digits and underscores, but got 'a\\nb'"),
    (f"{INPUTS}/2/arg", {"as_int": True}, "nodes[1].inputs[2].arg.as_int must be an integer, but got true"),
    (f"{INPUTS}/1/arg", {"as_float": 10**400}, "nodes[1].inputs[1].arg.as_float must be a number"),
    (f"{INPUTS}/1/arg", {"as_float": 1.0, "as_int": 5}, "nodes[1].inputs[1].arg must have one part, but got 2"),
    ("schema_version/major", 9, "schema_version.major must be 8, but got 9"),
]


@pytest.mark.parametrize(("path", "value", "wanted"), GRAPH)
def test_programs_follow_the_schema(path: str, value: Any, wanted: str) -> None:
    message = message_of(packed(changed(PROGRAM, {path: value})))
    assert message.startswith("member 'models/model.json': ")
    assert wanted in message


@pytest.mark.parametrize("text", [b"", b"{", b"[" * 100_000, b'"\xff"', b"1" * 10_000, b"nul\x00"])
def test_members_are_json(text: bytes) -> None:
    message = message_of(packed({**good(), PROGRAM: text}))
    assert message.startswith("member 'models/model.json' must be JSON: ")


def test_memory_of_weights_that_are_named_often() -> None:
    """Tensors of one member share its memory, whatever their names."""
    members = good()
    config = json.loads(members[WEIGHTS])["config"]
    large: dict[str, Any] = copy.deepcopy({**config["weight"], "path_name": "large"})
    size = 1 << 20
    large["tensor_meta"] |= {"sizes": _integers(size), "strides": _integers(1)}
    specs: list[Any] = []
    for index in range(1000):
        config[f"weight_{index}"] = large
        specs.append({"parameter": {"arg": {"name": f"p_{index}"}, "parameter_name": f"weight_{index}"}})
    program = json.loads(members[PROGRAM])
    program["graph_module"]["signature"]["input_specs"][:0] = specs
    changed = {PROGRAM: json.dumps(program).encode(), WEIGHTS: json.dumps({"config": config}).encode()}
    content = packed({**members, **changed, "data/weights/large": bytes(4 * size)})
    with memory_at_most(1 << 28):
        import_torch(content)
