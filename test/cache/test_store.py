"""The folder of the cache: who may write it, how large it grows, and what happens where it refuses."""

import os
import resource
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest
from subprocesses import output_of

from qdialect.cache import store
from qdialect.cache.store import Store, open_store, opened
from qdialect.support.diagnostics import InputError, QDialectError

SECTIONS = {"content": bytes(5000)}
SIZE = 8192
"""Bytes of an entry with `SECTIONS` on the disk."""


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("QDIALECT_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def kept(root: Path) -> Store:
    found = open_store()
    assert found is not None
    return found


def used_at(kept: Store, key: str, seconds: float) -> None:
    os.utime(kept.path / key, (seconds, seconds))


def test_only_the_user_can_read_and_write_it(kept: Store, root: Path) -> None:
    assert kept.put("key", SECTIONS)
    modes = [stat.S_IMODE(path.stat().st_mode) for path in (root, kept.path, kept.path / "key")]
    assert modes == [0o700, 0o700, 0o600]


@pytest.mark.parametrize("mode", [0o750, 0o770, 0o707, 0o777])
def test_a_folder_that_others_can_open_is_not_used(kept: Store, root: Path, mode: int) -> None:
    kept.path.chmod(mode)
    assert open_store() is None
    with pytest.raises(QDialectError, match=f"must have mode 700, but has {mode:o}"):
        opened(root)


def test_a_root_that_others_can_write_is_not_used(kept: Store, root: Path) -> None:
    root.chmod(0o777)
    assert open_store() is None
    root.chmod(0o1777)
    assert open_store() == kept


def test_a_folder_of_another_user_is_not_used(kept: Store, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert kept.put("key", SECTIONS)
    monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
    assert kept.get("key") is None
    assert open_store() is None
    with pytest.raises(QDialectError, match="must belong to the user"):
        opened(root)


def test_a_link_in_the_place_of_the_folder_is_not_followed(kept: Store, root: Path) -> None:
    kept.path.rename(root / "elsewhere")
    kept.path.symlink_to(root / "elsewhere")
    assert open_store() is None


def test_an_entry_that_is_a_link_or_no_file_is_not_read(kept: Store, tmp_path: Path) -> None:
    assert kept.put("key", SECTIONS)
    (kept.path / "key").rename(tmp_path / "elsewhere")
    (kept.path / "key").symlink_to(tmp_path / "elsewhere")
    os.mkfifo(kept.path / "pipe")
    (kept.path / "folder").mkdir()
    assert [kept.get(key) for key in ("key", "pipe", "folder", "x" * 300)] == [None] * 4
    # A link is replaced, not written through.
    before = (tmp_path / "elsewhere").read_bytes()
    assert kept.put("key", {"content": b"new"})
    assert not (kept.path / "key").is_symlink()
    assert (tmp_path / "elsewhere").read_bytes() == before


def test_an_entry_that_others_can_write_is_not_read(kept: Store) -> None:
    assert kept.put("key", SECTIONS)
    (kept.path / "key").chmod(0o622)
    assert kept.get("key") is None


def test_the_folder_is_that_of_the_xdg_rules(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("QDIALECT_CACHE", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    assert store.location() == tmp_path / ".cache" / "qdialect"
    monkeypatch.setenv("XDG_CACHE_HOME", "/var/cache/user")
    assert store.location() == Path("/var/cache/user/qdialect")
    # The specification says of a relative path that it is ignored.
    monkeypatch.setenv("XDG_CACHE_HOME", "cache")
    assert store.location() == tmp_path / ".cache" / "qdialect"


def test_without_a_home_nothing_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("QDIALECT_CACHE", "XDG_CACHE_HOME", "HOME"):
        monkeypatch.delenv(name, raising=False)

    def unknown(path: str) -> str:
        return path

    monkeypatch.setattr("os.path.expanduser", unknown)
    assert store.location() is None
    assert open_store() is None


@pytest.mark.parametrize("text", ["much", "-1", "1.5G", "1 G", "G", "5B", "²"])
def test_another_size_is_an_error(text: str, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("QDIALECT_CACHE_SIZE", text)
    with pytest.raises(InputError, match="QDIALECT_CACHE_SIZE must be a number of bytes such as 2000000, 500M or 2G"):
        open_store()


def test_the_entry_not_used_for_longest_goes_first(kept: Store) -> None:
    now = time.time()
    for age, key in enumerate(["new", "middle", "old"]):
        assert kept.put(key, SECTIONS)
        used_at(kept, key, now - 100 * (age + 1))
    # It is used.
    assert kept.get("old") is not None
    assert kept.trim(2 * SIZE + SIZE // 2) == 1
    assert [kept.get(key) is not None for key in ("new", "middle", "old")] == [True, False, True]


def test_drafts_of_writers_that_were_ended_go(kept: Store) -> None:
    for name, age in ((".old", 4000), (".future", -4000), (".young", 10)):
        (kept.path / name).write_bytes(b"half")
        used_at(kept, name, time.time() - age)
    assert kept.put("key", SECTIONS)
    assert kept.trim() == 2
    assert sorted(file.path.name for file in kept.files()) == [".young", "key"]


def test_a_full_disk_keeps_nothing_and_breaks_nothing(kept: Store) -> None:
    assert kept.put("key", {"content": b"whole"})
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (2000, before[1]))
    try:
        assert not kept.put("key", SECTIONS)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    found = kept.get("key")
    assert found is not None
    assert found["content"] == b"whole"
    assert [file.path.name for file in kept.files()] == ["key"]


def test_a_folder_that_cannot_be_written_serves_what_it_has(kept: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    assert kept.put("key", SECTIONS)
    system_open = os.open

    def refusing(path: str | Path, flags: int, mode: int = 0o777) -> int:
        if flags & os.O_CREAT:
            raise PermissionError(30, "Read-only file system")
        return system_open(path, flags, mode)

    def refused(*_: object) -> None:
        raise PermissionError(30, "Read-only file system")

    monkeypatch.setattr(os, "open", refusing)
    monkeypatch.setattr(os, "utime", refused)
    assert not kept.put("other", SECTIONS)
    assert kept.get("key") is not None


WRITER = """
import sys
from qdialect.cache.store import open_store
store = open_store()
store.put("key", {"content": bytes(500_000)})
print("ready", flush=True)
while True:
    for byte in range(256):
        store.put("key", {"content": bytes([byte]) * 500_000})
"""


def test_a_writer_that_is_killed_leaves_no_half_of_an_entry(kept: Store) -> None:
    for _ in range(3):
        writer = subprocess.Popen([sys.executable, "-c", WRITER], stdout=subprocess.PIPE, text=True)
        assert writer.stdout is not None
        assert writer.stdout.readline() == "ready\n"
        for _ in range(20):
            found = kept.get("key")
            assert found is None or len(set(bytes(found["content"]))) == 1
        writer.kill()
        writer.wait()
        writer.stdout.close()
    assert kept.get("key") is not None


def test_the_store_imports_nothing_of_mlir() -> None:
    program = "import sys, qdialect.cache.store; assert 'torch_mlir' not in sys.modules and 'numpy' not in sys.modules"
    assert output_of(program) == ""
