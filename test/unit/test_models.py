"""The look-up and the download of models, against a server of our own."""

import hashlib
import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from qdialect.bench.models import MODELS, Model, ModelError, download, find, find_reference, main

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


def test_damaged_model_is_named(server: str, folder: Path) -> None:
    folder.mkdir()
    (folder / "net.tflite").write_bytes(DATA[:-1])
    with pytest.raises(ModelError, match=r"but got [0-9a-f]{64} from .*models/net\.tflite"):
        list(download([net(server)]))


def test_http_failure_is_named(server: str, folder: Path) -> None:
    with pytest.raises(ModelError, match=r"cannot download model 'net\.tflite' from .*: HTTP Error 404"):
        list(download([net(server + "/nowhere")]))


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
