"""What this machine, and the container around this process, allow."""

from __future__ import annotations

import os
import resource
from collections.abc import Iterator
from pathlib import Path

_MEMBERSHIP = Path("/proc/self/cgroup")
_CONTROL_GROUPS = Path("/sys/fs/cgroup")
_LITTLE = 1 << 22


def memory_limit() -> int:
    """Bytes of memory that this process may have: the smallest of the limits of machine, container and process."""
    machine = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    process, _ = resource.getrlimit(resource.RLIMIT_AS)
    own = [machine] if process == resource.RLIM_INFINITY else [machine, process]
    return min([*own, *container_limits()])


def exceeded_limit(size: int) -> int | None:
    """The memory limit where `size` bytes are more than that; None where this process may have them."""
    # What every process has need not be looked up, which takes as long as a small compilation step.
    limit = memory_limit() if size > _LITTLE else size
    return limit if size > limit else None


def container_limits(membership: Path = _MEMBERSHIP, root: Path = _CONTROL_GROUPS) -> list[int]:
    """Bytes of memory that each control group around this process allows; a group without a limit is left out.

    `membership` names the groups as cgroups(7) describes, in version 1 or 2; `root` is where they are mounted. Inside
    of a container the named group may be outside of the mount, whose top is the container's own group then.
    """
    limits = [_number(file) for line in _text(membership).splitlines() for file in _limit_files(line, root)]
    return [limit for limit in limits if limit is not None]


def _limit_files(line: str, root: Path) -> Iterator[Path]:
    """The files with the limit of the group that ``ID:CONTROLLERS:PATH`` names, and of those around it."""
    _, _, controllers_and_path = line.partition(":")
    controllers, _, path = controllers_and_path.partition(":")
    if controllers and "memory" not in controllers.split(","):
        return
    top, file = (root / "memory", "memory.limit_in_bytes") if controllers else (root, "memory.max")
    group = Path(path.removeprefix("/"))
    for folder in (group, *group.parents):
        if ".." not in folder.parts:
            yield top / folder / file


def _number(file: Path) -> int | None:
    """The number in `file`; None where the file is absent or says ``max``."""
    text = _text(file).strip()
    return int(text) if text.isdecimal() else None


def _text(file: Path) -> str:
    try:
        return file.read_text()
    except OSError:
        return ""
