"""What `make release-check` finds: files that the sdist lacks, wheels that differ, interpreters."""

from __future__ import annotations

import importlib
import io
import sys
import tarfile
import zipfile
from pathlib import Path
from typing import Any

import pytest

TOOLS = Path(__file__).resolve().parents[2] / "tools"


@pytest.fixture
def check_release(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The script as a module."""
    monkeypatch.setattr(sys, "path", [str(TOOLS), *sys.path])
    return importlib.import_module("check_release")


def wheel_of(path: Path, contents: dict[str, str]) -> Path:
    with zipfile.ZipFile(path, "w") as archive:
        for name, text in contents.items():
            archive.writestr(name, text)
    return path


def test_a_file_that_the_sdist_lacks(check_release: Any, tmp_path: Path) -> None:
    source = tmp_path / "source"
    for name in ("docs/a.md", "test/b.py", "build/lib/c.py"):
        (source / name).parent.mkdir(parents=True, exist_ok=True)
        (source / name).write_text("")
    with tarfile.open(tmp_path / "x.tar.gz", "w:gz") as archive:
        archive.addfile(tarfile.TarInfo("x-1/docs/a.md"), io.BytesIO())
    assert check_release.missing_files(tmp_path / "x.tar.gz", source) == ["sdist must hold test/b.py"]


def test_wheels_that_differ(check_release: Any, tmp_path: Path) -> None:
    one = wheel_of(tmp_path / "one.whl", {"a.py": "1", "b.py": "2"})
    two = wheel_of(tmp_path / "two.whl", {"a.py": "1", "b.py": "3", "c.py": ""})
    assert check_release.differences(one, one) == []
    found = check_release.differences(one, two)
    assert [text.rpartition(" ")[2] for text in found] == ["b.py", "c.py"]


def test_the_metadata_names_what_is_checked(check_release: Any) -> None:
    named = check_release.named_versions()
    assert named[0] == "3.11"
    assert set(named) <= set(check_release.VERSIONS)


@pytest.mark.parametrize(
    ("script", "end"),
    [
        ("exit 0", "; the wheels of all that it needs are to be had"),
        ("echo WARNING: old >&2; echo ERROR: no torch-mlir >&2; exit 1", "; ERROR: no torch-mlir"),
    ],
)
def test_an_absent_version_says_what_it_lacks(check_release: Any, tmp_path: Path, script: str, end: str) -> None:
    builder = tmp_path / "python"
    builder.write_text(f'#!/bin/sh\necho "$@" > {tmp_path}/asked\n{script}\n')
    builder.chmod(0o755)
    found = check_release.absence(builder, "3.14", tmp_path / "x.whl")
    assert found == f"Python 3.14: not checked, because no interpreter of it is here{end}"
    assert "--dry-run --python-version 3.14 --only-binary :all:" in (tmp_path / "asked").read_text()


def test_a_shim_is_no_interpreter(check_release: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shim = tmp_path / "python3.11"
    shim.write_text("#!/bin/sh\nexit 127\n")
    shim.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("PYENV_ROOT", str(tmp_path))
    monkeypatch.setenv("UV_PYTHON_INSTALL_DIR", str(tmp_path))
    assert check_release.find("3.11") is None
    other = tmp_path / "versions" / "3.11.9" / "bin" / "python"
    other.parent.mkdir(parents=True)
    other.write_text("#!/bin/sh\necho 3.11\n")
    other.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/bin:/usr/bin")
    assert check_release.find("3.11") == other
