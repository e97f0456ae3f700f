"""Regions of a graph, the frameworks that run them, and what a lacking model or package means."""

import hashlib
import re
import threading
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import pytest
from bounds import deadline

from qdialect.bench.models import find, find_reference
from qdialect.frontends.planning.partition import FOLLOWS, TOO_SMALL, Partition, PartitionNode, partition
from tools.models import MODELS, Model, ModelError, download, main

WORK = 1 << 20


def node(name: str, *reads: str, reason: str = "", products: int = WORK) -> PartitionNode:
    return PartitionNode(name, reads, (name,), products, reason=reason, is_narrow=True)


def refused(name: str, *reads: str) -> PartitionNode:
    return node(name, *reads, reason="operator is not supported")


def shown(nodes: Sequence[PartitionNode], found: Partition) -> list[str]:
    """One text a region: the names of its nodes, those of the framework in brackets."""
    texts = [" ".join(nodes[index].title for index in part.nodes) for part in found.parts]
    return [text if part.is_compiled else f"[{text}]" for text, part in zip(texts, found.parts, strict=True)]


def regions(nodes: Sequence[PartitionNode], *outputs: str, crossing: int = WORK) -> list[str]:
    return shown(nodes, partition(nodes, outputs, crossing))


def test_an_unsupported_node_in_the_middle_at_the_beginning_and_at_the_end() -> None:
    assert regions([node("a", "x"), refused("b", "a"), node("c", "b")], "c") == ["a", "[b]", "c"]
    assert regions([refused("a", "x"), node("b", "a"), node("c", "b")], "c") == ["[a]", "b c"]
    assert regions([node("a", "x"), node("b", "a"), refused("c", "b")], "c") == ["a b", "[c]"]


def test_a_diamond_around_an_unsupported_node_is_not_one_region() -> None:
    nodes = [node("top", "x"), node("left", "top"), refused("right", "top"), node("sum", "left", "right")]
    found = partition(nodes, ["sum"])
    assert shown(nodes, found) == ["top left", "[right]", "sum"]
    assert [part.inputs for part in found.parts] == [("x",), ("top",), ("left", "right")]
    assert [part.outputs for part in found.parts] == [("top", "left"), ("right",), ("sum",)]


def test_a_float_that_a_later_region_reads_is_computed_there() -> None:
    quantized, lone = node("a", "x"), replace(node("conv", "a"), is_narrow=False)
    nodes = [quantized, lone, refused("b", "a"), node("sum", "conv", "b")]
    assert regions(nodes, "sum") == ["a", "[b]", "conv sum"]
    assert regions(nodes, "sum", "conv") == ["a conv", "[b]", "sum"]


def test_copies_are_made_where_they_are_read() -> None:
    copy = replace(node("dq", "a"), is_copied=True, products=0)
    nodes = [node("a", "x"), copy, node("conv", "dq"), refused("b", "dq"), node("sum", "conv", "b", "dq")]
    found = partition(nodes, ["sum"])
    assert shown(nodes, found) == ["a dq conv", "[dq b]", "dq sum"]
    assert [part.inputs for part in found.parts] == [("x",), ("a",), ("a", "conv", "b")]
    # A copy that the caller asks for is given once.
    found = partition(nodes, ["sum", "dq"])
    assert [part.outputs for part in found.parts] == [("a", "dq", "conv"), ("b",), ("sum",)]


def test_a_quantized_group_stays_whole() -> None:
    ends = replace(node("q", "b", products=0), ends_group=True)
    nodes = [node("a", "x"), refused("b", "a"), ends, node("c", "q")]
    found = partition(nodes, ["c"])
    assert shown(nodes, found) == ["a", "[b q]", "c"]
    assert found.reasons == {1: "operator is not supported", 2: FOLLOWS}


def test_parts_that_are_too_small_go_with_their_neighbours() -> None:
    nodes = [node("a", "x"), refused("b", "a"), node("c", "b", products=10), refused("d", "c"), node("e", "d")]
    found = partition(nodes, ["e"], WORK)
    assert shown(nodes, found) == ["a", "[b c d]", "e"]
    assert found.reasons[2] == TOO_SMALL


def drawn(rng: np.random.Generator, count: int) -> list[PartitionNode]:
    nodes: list[PartitionNode] = []
    for index in range(count):
        reads = {f"n{rng.integers(max(index - 9, 0), index)}" if index else "x" for _ in range(rng.integers(1, 4))}
        one = node(f"n{index}", *sorted(reads), reason="no" if rng.random() < 0.2 else "")
        flags = {"is_copied": not one.reason and rng.random() < 0.2, "is_narrow": rng.random() < 0.5}
        products = int(rng.integers(0, 2 * WORK))
        nodes.append(replace(one, **flags, products=products, ends_group=rng.random() < 0.1))
    return nodes


@pytest.mark.parametrize("seed", range(60))
def test_drawn_graphs(seed: int) -> None:
    """Regions run in order, hold every node, and none is refused in a compiled one."""
    rng = np.random.default_rng(seed)
    nodes = drawn(rng, int(rng.integers(1, 60)))
    read = {name for one in nodes for name in one.reads}
    outputs = [one.title for one in nodes if one.title not in read or rng.random() < 0.1]
    found = partition(nodes, outputs, WORK)
    known = {"x"}
    for part in found.parts:
        assert set(part.inputs) <= known
        inside = set(part.inputs)
        for index in part.nodes:
            assert set(nodes[index].reads) <= inside
            inside.update(nodes[index].gives)
            assert not part.is_compiled or nodes[index].is_copied or index not in found.reasons
        assert set(part.outputs) <= inside - set(part.inputs)
        known.update(part.outputs)
    assert set(outputs) <= known
    held = [index for part in found.parts for index in part.nodes]
    assert set(held) == set(range(len(nodes)))
    assert all(held.count(index) == 1 for index, one in enumerate(nodes) if not one.is_copied)
    assert all(index in found.reasons for index, one in enumerate(nodes) if one.reason)


def test_time_grows_with_the_number_of_nodes() -> None:
    nodes = drawn(np.random.default_rng(0), 20_000)
    with deadline():
        partition(nodes, [nodes[-1].title])


# Every extra that the Makefile, the docs or a message names is one of pyproject.toml.

ROOT = Path(__file__).resolve().parents[2]
# As pip is told of one (``.[test]``, ``qdialect[onnx]``) and as sentences name it.
NAMED = re.compile(r"(?:qdialect|\.)\[([a-z,]+)\]|extra ['`]+([a-z]+)['`]")


def sources() -> list[Path]:
    written = [ROOT / name for name in ("Makefile", "README.md", "CONTRIBUTING.md", "pyproject.toml")]
    return [*written, *sorted((ROOT / "docs").rglob("*.md")), *sorted((ROOT / "qdialect").rglob("*.py"))]


def named(text: str) -> set[str]:
    return {name for several, one in NAMED.findall(text) for name in (several or one).split(",")}


def extras() -> set[str]:
    return set(tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"])


@pytest.mark.parametrize("path", [path for path in sources() if named(path.read_text())], ids=lambda path: path.name)
def test_an_extra_that_is_named_exists(path: Path) -> None:
    assert named(path.read_text()) <= extras()


# The look-up and the download of models, against a server of our own.

DATA = bytes(range(256)) * 1000


class QuietHandler(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture
def server(tmp_path: Path) -> Iterator[str]:
    served = tmp_path / "served"
    served.mkdir()
    (served / "net.tflite").write_bytes(DATA)
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(QuietHandler, directory=str(served))) as http:
        threading.Thread(target=http.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{http.server_port}"
        http.shutdown()


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "models"
    monkeypatch.setenv("QDIALECT_MODELS", str(path))
    return path


def net(url: str, data: bytes = DATA) -> Model:
    return Model("net.tflite", f"{url}/net.tflite", len(data), hashlib.sha256(data).hexdigest(), "Apache-2.0")


def test_downloads_once(server: str, folder: Path) -> None:
    assert [is_new for _, _, is_new in download([net(server)])] == [True]
    assert (folder / "net.tflite").read_bytes() == DATA
    assert find("net.tflite") == folder / "net.tflite"
    assert [is_new for _, _, is_new in download([net(server)])] == [False]


def test_wrong_content_is_refused_and_leaves_nothing(server: str, folder: Path) -> None:
    with pytest.raises(ModelError, match=r"must have sha256 [0-9a-f]{64}, but got [0-9a-f]{64} from http"):
        list(download([net(server, b"other")]))
    assert not folder.exists() or not list(folder.iterdir())


def test_unwritable_folder_is_an_error(server: str, tmp_path: Path, folder: Path) -> None:
    folder.write_text("a file, not a folder")
    with pytest.raises(ModelError, match=r"cannot download model 'net\.tflite'"):
        list(download([net(server)]))


def test_environment_comes_first_and_format_folders_count(folder: Path) -> None:
    (folder / "tflite").mkdir(parents=True)
    for file in ("kws_ref_model.tflite", "kws_ref_model.npz", "kws_ref_model.layers.npz"):
        (folder / "tflite" / file).touch()
    assert find("kws_ref_model") == folder / "tflite" / "kws_ref_model.tflite"
    assert find_reference("kws_ref_model") == folder / "tflite" / "kws_ref_model.npz"
    assert find_reference("kws_ref_model", "layers") == folder / "tflite" / "kws_ref_model.layers.npz"
    assert find("no_such_model") is None


def test_unknown_name(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["no_such_model"]) == 1
    assert capsys.readouterr().err.startswith("error: unknown model 'no_such_model'; known: ")


def test_table_is_pinned() -> None:
    assert len({model.sha256 for model in MODELS.values()}) == len(MODELS)
    for model in MODELS.values():
        commit = model.url.removeprefix("https://raw.githubusercontent.com/").split("/")[2]
        assert len(commit) == 40
        assert len(model.sha256) == 64
