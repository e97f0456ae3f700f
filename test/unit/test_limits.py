"""The memory limit: of the machine, of the control groups around the process, and of the process."""

from pathlib import Path

import pytest

from qdialect import limits

GIB = 1 << 30


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def groups(folder: Path, membership: str, files: dict[str, str]) -> list[int]:
    write(folder / "cgroup", membership)
    for name, text in files.items():
        write(folder / "root" / name, text)
    return limits.container_limits(folder / "cgroup", folder / "root")


def test_version_2_counts_every_group_around_the_process(tmp_path: Path) -> None:
    files = {"memory.max": "max\n", "a/memory.max": f"{GIB}\n", "a/b/memory.max": f"{2 * GIB}\n"}
    assert sorted(groups(tmp_path, "0::/a/b\n", files)) == [GIB, 2 * GIB]


def test_version_1_has_a_folder_for_memory(tmp_path: Path) -> None:
    membership = "5:cpu,cpuacct:/x\n4:memory:/a\n"
    files = {"memory/memory.limit_in_bytes": "9223372036854771712\n", "memory/a/memory.limit_in_bytes": f"{GIB}\n"}
    assert min(groups(tmp_path, membership, files)) == GIB


def test_the_top_of_the_mount_stands_for_a_group_outside_of_it(tmp_path: Path) -> None:
    assert groups(tmp_path, "0::/machine/of/the/host\n", {"memory.max": f"{GIB}\n"}) == [GIB]
    assert groups(tmp_path, "0::/../beside\n", {"memory.max": f"{GIB}\n"}) == [GIB]


@pytest.mark.parametrize("membership", ["", "nonsense", "0::/", "4:memory:/a"])
def test_without_files_the_container_sets_no_limit(tmp_path: Path, membership: str) -> None:
    assert groups(tmp_path, membership, {}) == []


def test_the_smallest_limit_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "container_limits", lambda: [3 * GIB, 123])
    assert limits.memory_limit() == 123
    assert limits.exceeded_limit(123) is None
    assert limits.exceeded_limit(3 * GIB) == 123
