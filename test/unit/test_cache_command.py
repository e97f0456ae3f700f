"""The command ``qdialect-cache``, and options of others that turn the cache off."""

from __future__ import annotations

from pathlib import Path

import pytest
from cached import CLIP, kept, names, nothing_is_compiled

from qdialect.cache.store import Store
from qdialect.cli import cache, run

__all__ = ["kept"]


def printed(capsys: pytest.CaptureFixture[str], *arguments: str, status: int = 0) -> str:
    assert cache.main(arguments) == status
    said = capsys.readouterr()
    return said.err if status else said.out


def test_info_says_where_and_how_much(kept: Store, capsys: pytest.CaptureFixture[str]) -> None:
    kept.put("key", {"content": bytes(5000)})
    (kept.path / ".draft").touch()
    lines = printed(capsys, "info").splitlines()
    assert lines == [f"folder:  {kept.path.parent}", "entries: 1", f"size:    8192 bytes of at most {1 << 30}"]


def test_info_of_a_cache_that_is_not_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("QDIALECT_CACHE", str(tmp_path / "absent"))
    assert "entries: 0" in printed(capsys, "info")
    assert printed(capsys, "clear") == "removed 0 files\n"
    assert not (tmp_path / "absent").exists()


def test_info_says_that_it_is_off(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("QDIALECT_CACHE", "off")
    assert printed(capsys, "info") == "nothing is kept: QDIALECT_CACHE is off\n"
    assert printed(capsys, "clear") == "removed 0 files\n"


def test_clear_removes_everything(kept: Store, capsys: pytest.CaptureFixture[str]) -> None:
    kept.put("key", {"content": b""})
    (kept.path / ".draft").touch()
    assert printed(capsys, "clear") == "removed 2 files\n"
    assert names(kept) == set()


def test_prune_leaves_so_much(kept: Store, capsys: pytest.CaptureFixture[str]) -> None:
    for key in "abcd":
        kept.put(key, {"content": b""})
    assert printed(capsys, "prune") == "removed 0 files\n"
    assert printed(capsys, "prune", "--size", "12K") == "removed 2 files\n"
    assert printed(capsys, "prune", "--size", "0") == "removed 2 files\n"


def test_what_is_wrong_is_said(
    kept: Store, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    wanted = "error: --size must be a number of bytes such as 2000000, 500M or 2G, but got 'much'\n"
    assert printed(capsys, "prune", "--size", "much", status=1) == wanted
    kept.path.chmod(0o755)
    for command in ("info", "clear", "prune"):
        said = printed(capsys, command, status=1)
        assert (
            said
            == f"error: cannot use the cache in '{kept.path.parent}': '{kept.path}' must have mode 700, but has 755\n"
        )
    monkeypatch.setenv("QDIALECT_CACHE_SIZE", "1.5G")
    assert "QDIALECT_CACHE_SIZE must be a number of bytes" in printed(capsys, "info", status=1)


def test_run_keeps_what_it_compiles(kept: Store, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "clip.mlir"
    path.write_text(CLIP)
    assert run.main([str(path), "--no-cache"]) == 0
    assert names(kept) == set()
    assert run.main([str(path)]) == 0
    cold = names(kept)
    assert cold
    with nothing_is_compiled():
        assert run.main([str(path), "--reference"]) == 0
    assert names(kept) == cold
    assert "0 of 6 elements differ" in capsys.readouterr().out
