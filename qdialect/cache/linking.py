"""Object files as one shared library, where the machine has a linker."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path

from qdialect.aot.linking import c_compiler, run_linker
from qdialect.cache.openmp_calls import SHOWN_ENTRY, TABLE
from qdialect.diagnostics import CompileError

_OPTIONS = (
    *("-shared", "-nostartfiles", "-Wl,--version-script=symbols.map", "-Wl,--build-id=none", "-Wl,--gc-sections"),
    *("-Wl,-z,now", "-Wl,-z,relro", "-Wl,-z,noexecstack", "-Wl,--as-needed", "-o", "network.so"),
)


def linked(objects: Sequence[bytes]) -> bytes | None:
    """The shared library of a network's objects, the same for the same ones; None where no C compiler links it."""
    try:
        command = c_compiler()
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            files = [f"{number}.o" for number in range(len(objects))]
            for file, content in zip(files, objects, strict=True):
                (folder / file).write_bytes(content)
            (folder / "symbols.map").write_text(f"{{ global: {SHOWN_ENTRY}; {TABLE}; local: *; }};\n")
            run_linker([*command, *_OPTIONS, *files, "-lm"], folder)
            return (folder / "network.so").read_bytes()
    except (CompileError, OSError):
        return None
