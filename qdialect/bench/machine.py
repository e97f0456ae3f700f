"""What this machine is."""

from __future__ import annotations

import os
import platform
from datetime import UTC, datetime
from pathlib import Path


def describe() -> dict[str, str]:
    """CPU, caches, cores, kernel, Python and date."""
    return {
        "cpu": _cpu(),
        "cores": str(os.cpu_count()),
        **_caches(Path("/sys/devices/system/cpu/cpu0/cache")),
        "memory": _memory(),
        "system": f"{platform.system()} {platform.release()}",
        "python": platform.python_version(),
        "date": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
    }


def _cpu() -> str:
    fields = _fields(Path("/proc/cpuinfo"))
    parts = [fields.get("model name", platform.machine())]
    parts += [f"{key} {fields[key]}" for key in ("cpu family", "model", "stepping") if key in fields]
    return ", ".join(parts)


def _memory() -> str:
    return _fields(Path("/proc/meminfo")).get("MemTotal", "unknown")


def _fields(path: Path) -> dict[str, str]:
    """The first value of each key of lines like ``key : value``."""
    found: dict[str, str] = {}
    try:
        for line in path.read_text().splitlines():
            key, _, value = line.partition(":")
            found.setdefault(key.strip(), value.strip())
    except OSError:
        return {}
    return found


def _caches(folder: Path) -> dict[str, str]:
    found: dict[str, str] = {}
    for index in sorted(folder.glob("index*")):
        try:
            level, kind, size = ((index / name).read_text().strip() for name in ("level", "type", "size"))
        except OSError:
            continue
        if kind != "Instruction":
            found[f"L{level} cache"] = size
    return found
