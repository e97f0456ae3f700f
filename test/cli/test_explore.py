"""`qdialect-explore`: what the page holds of a network, and what a browser shows of it."""

import json
import re
import shutil
import subprocess
import sys
from html import unescape
from pathlib import Path
from urllib.parse import quote, unquote

import pytest
from drawn_networks import CONVOLUTION
from onnx_graphs import divided_model

import qdialect
from qdialect.cli import explore
from qdialect.cli.explorer.data import Explored, bodies_of_functions, explored, hottest
from qdialect.cli.explorer.main import graphs, layers_of, node_data
from qdialect.frontends.building.checks import GraphNode
from qdialect.lowering.pipeline.phases import Phase, lower
from qdialect.support.interface import kernel_names
from qdialect.support.options import ImportOptions
from qdialect.targets import GENERIC, host, resolve

PHASES = ("linalg", "vector", "x86", "llvm")
BROWSER = shutil.which("chromium") or shutil.which("google-chrome")


def model(folder: Path) -> Path:
    path = folder / "model.onnx"
    path.write_bytes(divided_model())
    return path


@pytest.fixture(scope="module")
def divided(tmp_path_factory: pytest.TempPathFactory) -> Explored:
    path = model(tmp_path_factory.mktemp("models"))
    return explored(path, host(), ImportOptions(), is_measured=True, progress=lambda text: None)


@pytest.mark.parametrize("name", ["host", GENERIC])
def test_every_call_has_its_kernel_in_every_phase(name: str, tmp_path: Path) -> None:
    path, target = tmp_path / "a.mlir", resolve(name)
    path.write_text(CONVOLUTION)
    found = explored(path, target, ImportOptions(), is_measured=name == "host", progress=lambda text: None)
    calls = lower(qdialect.read_model(path), target, Phase.LINALG).calls
    assert [call["kernel"] for call in found.calls] == list(kernel_names(calls))
    assert [call["label"] for call in found.calls] == [call.label for call in calls]
    assert found.kernels.keys() == found.texts.keys() == set(kernel_names(calls))
    for kernel, texts in found.texts.items():
        assert all(f"@{kernel}(" in texts[phase] for phase in PHASES)
    (op,) = (op for op in found.ops if op["name"] == "qnn.fused_conv2d")
    (call,) = (call for call in found.calls if call["label"] == "qnn.fused_conv2d")
    assert call["id"] in op["calls"]
    assert op["stages"] == ["requantize", "lut"]
    assert call["macs"] == 6 * 6 * 8 * 9 * 4
    kernel = found.kernels[call["kernel"]]
    assert "weight_scales" in op["text"]
    if shutil.which("objdump"):
        assert kernel["instructions"] == len(found.texts[call["kernel"]]["asm"].splitlines()) > 10
    if name == "host":
        assert all(one["seconds"] >= 0 for one in found.calls)
        assert found.summary["seconds"] == pytest.approx(sum(one["seconds"] for one in found.calls))
    else:
        assert "seconds" not in found.calls[0]
        assert kernel["resources"] == {}
    if name == "host" and host().has_vnni:
        assert kernel["tile"]["own"] == next(iter(kernel["tile"]["cycles"]))
        assert max(kernel["resources"].values()) == pytest.approx(kernel["bound"])


def test_regions_of_the_framework_are_marked_and_the_others_have_kernels(divided: Explored) -> None:
    assert [region["compiled"] for region in divided.regions] == [True, False, True]
    nodes = {node["kind"]: node for node in divided.nodes}
    assert nodes["Hardmax"]["region"] == 1
    assert nodes["Hardmax"]["calls"] == ()
    assert divided.regions[1]["reasons"][nodes["Hardmax"]["title"]] == "operator is not supported"
    assert {call["region"] for call in divided.calls} == {0, 2}
    assert all(call["kernel"].startswith(f"region {call['region']}: kernel_") for call in divided.calls)
    assert [call["id"] for call in divided.calls] == list(range(len(divided.calls)))
    assert [op["id"] for op in divided.ops] == list(range(len(divided.ops)))
    # One kernel stands for the first convolution and the addition.
    first = next(node for node in divided.nodes if node["kind"] == "Conv")
    shared = set(first["calls"]) & set(nodes["Add"]["calls"])
    assert "qnn.fused_conv2d" in [divided.calls[call]["label"] for call in shared]
    assert all(read < op["id"] for op in divided.ops for read in op["reads"])
    # Regions read what those before them give.
    (foreign,) = (op for op in divided.ops if op["region"] == 1)
    assert foreign["name"] == divided.regions[1]["runner"]
    assert [divided.ops[read]["region"] for read in foreign["reads"]] == [0]
    assert [op["region"] for op in divided.ops if foreign["id"] in op["reads"]] == [2]


def test_data_of_nodes_is_laid_over_the_model(divided: Explored, tmp_path: Path) -> None:
    data = node_data(divided)
    titles = {node["outputs"][0]: node["kind"] for node in divided.nodes}
    runners = {titles[name]: entry["value"] for name, entry in data["runner"]["results"].items()}
    assert runners["Hardmax"] == divided.regions[1]["runner"] != runners["Conv"] == runners["Add"] == "qdialect"
    kernels = {name: entry["value"].split(", ") for name, entry in data["kernel"]["results"].items()}
    assert {one for names in kernels.values() for one in names} <= divided.kernels.keys()
    assert not any(titles[name] == "Hardmax" for name in kernels)
    # A kernel of several nodes counts once.
    owned = {call for node in divided.nodes for call in node["calls"]}
    wanted = 1e6 * sum(call["seconds"] for call in divided.calls if call["id"] in owned)
    assert sum(entry["value"] for entry in data["time"]["results"].values()) == pytest.approx(wanted, abs=0.1)
    assert all(0 <= entry["value"] <= 100 for entry in data["bound"]["results"].values())

    assert explore.main([str(model(tmp_path)), "-o", str(tmp_path / "a.json"), "--no-measure"]) == 0
    assert {path.name for path in tmp_path.glob("a.*")} == {"a.kernel.json", "a.runner.json"}
    assert json.loads((tmp_path / "a.runner.json").read_text())["results"].keys() == data["runner"]["results"].keys()


def test_model_explorer_has_a_graph_of_each_phase(tmp_path: Path) -> None:
    found = {graph["id"]: graph["nodes"] for graph in graphs(model(tmp_path), ImportOptions(), host())}
    phases = ("qnn", "fused", "linalg", "vector")
    assert list(found) == ["model", *(f"region {number}: {phase}" for number in (0, 2) for phase in phases)]
    for nodes in found.values():
        places = {node["id"]: len(node["outputsMetadata"]) for node in nodes}
        assert len(places) == len(nodes)
        edges = [edge for node in nodes for edge in node["incomingEdges"]]
        assert edges
        assert all(int(edge["sourceNodeOutputId"]) < places[edge["sourceNodeId"]] for edge in edges)
    labels = {node["label"] for node in found["region 0: fused"]}
    assert {"arguments", "qnn.fused_conv2d"} <= labels
    layers = {node["namespace"].split("/")[0] for node in found["region 0: vector"]}
    assert layers
    assert all(layer.startswith("kernel_") for layer in layers)


def test_layers_are_paths_of_nodes_or_modules() -> None:
    found = [
        GraphNode("node 0 Conv ('x/stem/Conv')", "Conv", ("x",), ("a",)),
        GraphNode("node 1 QuantizeLinear ('b')", "QuantizeLinear", ("a",), ("b",)),
        GraphNode("node 2 Relu ('c')", "Relu", ("b",), ("c",)),
        GraphNode("node 'conv2d_1' aten.conv2d (blocks.0.conv)", "aten.conv2d.default", ("b",), ("d",)),
    ]
    assert layers_of(found) == {"a": "x/stem", "b": "x/stem", "c": "", "d": "blocks/0/conv"}


def test_model_explorer_finds_the_extension(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    explorer = pytest.importorskip("model_explorer.extension_manager").ExtensionManager(["qdialect.cli.explorer"])
    # As in its own process, which imports the extension last.
    monkeypatch.delitem(sys.modules, "qdialect.cli.explorer.main")
    explorer.load_extensions()
    path = tmp_path / "a.mlir"
    path.write_text(CONVOLUTION)
    command: dict[str, object] = {"extensionId": "qdialect", "cmdId": "convert", "modelPath": str(path), "settings": {}}
    collections = explorer.run_cmd(command)["graphCollections"]
    names = [[graph["id"] for graph in collection["graphs"]] for collection in collections]
    assert names == [["model", "qnn", "fused"], ["linalg", "vector"]]


def test_no_name_ends_an_element_of_the_page() -> None:
    title = "</script><b>&"
    text = explore.page(Explored(title, "host", [{"title": title}], []))
    assert title not in text
    data = re.search(r'id="data">(.*?)</script>', text, re.DOTALL)
    assert data
    assert json.loads(data[1])["nodes"] == [{"title": title}]


def test_the_hot_loop_is_the_one_with_the_most_dot_products() -> None:
    lines = [
        *("0: vmulps %zmm0", "4: vmulps %zmm1", "8: jl 0 <f>", "c: vpdpbusd %zmm0", "10: vpdpbusd %zmm1"),
        *("14: nop", "18: jne c <f+0xc>", "1c: ret"),
    ]
    text = "0000000000000000 <f>:\n" + "\n".join(re.sub(r"(\w+): (\w+) ?", r"  \1:\t\2 ", line) for line in lines)
    loop = hottest(*list(bodies_of_functions(text))[-1])
    assert loop
    assert loop.counts == {"vpdpbusd": 2, "jne": 1}
    assert hottest("g", []) is None


def test_the_page_must_be_html(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert explore.main([str(model(tmp_path)), "-o", str(tmp_path / "a.svg")]) == 1
    assert "error: --output must name an .html or .json file" in capsys.readouterr().err


def shown(page: str, folder: Path, link: str = "") -> str:
    """What a browser makes of a page."""
    path = folder / "page.html"
    path.write_text(page)
    command = [str(BROWSER), "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={folder / 'profile'}"]
    return subprocess.run(
        [*command, "--window-size=700,900", "--virtual-time-budget=4000", "--dump-dom", f"file://{path}#{link}"],
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    ).stdout


@pytest.mark.skipif(BROWSER is None, reason="no browser is installed")
def test_a_browser_shows_the_same_kernel_everywhere(divided: Explored, tmp_path: Path) -> None:
    number: int = next(call["id"] for call in divided.calls if call["label"] == "qnn.fused_conv2d")
    name = str(divided.calls[number]["kernel"])
    found = shown(explore.page(divided), tmp_path, f"kernel={quote(name)}")
    assert "data-ready=" in found
    assert f"<h1>{name}</h1>" in found
    nodes = sum(number in node["calls"] for node in divided.nodes)
    ops = sum(number in op["calls"] for op in divided.ops)
    assert len(re.findall(r'class="box[^"]* on"', found)) == nodes + ops
    # The nodes, and what takes their place after fusion.
    assert len(re.findall(r'class="box foreign[^"]*"', found)) == sum(node["region"] == 1 for node in divided.nodes) + 1
    # The texts of its phases have been unpacked.
    assert all(f">{phase} (" in found for phase in ("fused", *PHASES))
    assert found.count("<mark>") > 5


_USER = """<script>{
const log = [], key = one => document.dispatchEvent(new KeyboardEvent("keydown", { key: one, bubbles: true }));
const heading = () => document.querySelector("#details h1").textContent;
const on = id => [...document.querySelectorAll(`#${id} .box.on`)].length;
const field = at("search");
document.querySelector("#before .box.foreign").dispatchEvent(new MouseEvent("click"));
log.push(["foreign", heading(), on("before"), location.hash]);
document.querySelector("#after .box:not(.none):not(.foreign)").dispatchEvent(new MouseEvent("click"));
log.push(["op", heading(), on("before") > 0 && on("after") > 0, location.hash]);
field.value = "fused_conv2d"; field.oninput();
document.querySelector("#hits li").dispatchEvent(new MouseEvent("mousedown"));
log.push(["search", heading(), on("after") > 0, document.querySelectorAll("#strip .on").length]);
field.value = "no such thing"; field.oninput();
log.push(["nothing", document.querySelector("#hits").textContent]);
for (const one of ["t", "Escape", "j"]) key(one);
log.push(["keys", heading(), document.documentElement.classList.contains("dark")]);
log.push(["width", document.body.scrollWidth <= innerWidth]);
document.body.dataset.log = JSON.stringify(log);
}</script>"""


@pytest.mark.skipif(BROWSER is None, reason="no browser is installed")
def test_clicks_searches_and_keys_choose_the_same_everywhere(divided: Explored, tmp_path: Path) -> None:
    found = shown(explore.page(divided).replace("</body>", _USER + "</body>"), tmp_path)
    log = {name: rest for name, *rest in json.loads(unescape(re.findall(r'data-log="([^"]*)"', found)[0]))}
    kernels = [str(call["kernel"]) for call in divided.calls]
    hardmax = next(node for node in divided.nodes if node["region"] == 1)
    assert log["foreign"] == [hardmax["title"], 1, f"#node={hardmax['id']}"]
    title, is_chosen, link = log["op"]
    assert is_chosen
    assert title in kernels
    assert unquote(link) == f"#kernel={title}"
    conv = next(call for call in divided.calls if call["label"] == "qnn.fused_conv2d")
    assert log["search"] == [str(conv["kernel"]), True, 1]
    assert log["nothing"] == ["nothing has this in its name"]
    assert log["keys"] == [kernels[0], True]
    assert log["width"] == [True]
