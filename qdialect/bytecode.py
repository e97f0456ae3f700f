"""MLIR bytecode, read in a process of its own: MLIR's reader takes what it reads for well-formed, and damaged content
can corrupt its memory.

The child prints the module as text, and this process parses that, with all the checks that texts get.
"""

from __future__ import annotations

import sys

from qdialect.late_imports import LATE_IMPORTS

MAGIC = b"ML\xefR"
"""What MLIR bytecode begins with."""

_ALLOW_UNREGISTERED = "--allow-unregistered-dialect"
# Seconds for a start of Python and MLIR, and bytes of bytecode a second on a slow machine.
_START, _RATE = 120, 1_000_000


def text_of(content: bytes, *, allow_unregistered: bool) -> str | None:
    """The text of a module with its locations; None where `content` is damaged."""
    with LATE_IMPORTS:
        import subprocess

    flags = [_ALLOW_UNREGISTERED] if allow_unregistered else []
    command = [sys.executable, "-m", "qdialect.bytecode", *flags]
    try:
        done = subprocess.run(
            command, input=content, capture_output=True, timeout=_START + len(content) / _RATE, check=False
        )
        return done.stdout.decode("utf-8") if done.returncode == 0 else None
    except (subprocess.TimeoutExpired, UnicodeDecodeError):
        return None


def _main() -> None:
    # What is imported here imports this module.
    from qdialect._mlir import ir
    from qdialect.context import make_context

    with make_context() as context:
        context.allow_unregistered_dialects = _ALLOW_UNREGISTERED in sys.argv
        module = ir.Module.parse(sys.stdin.buffer.read())
        sys.stdout.buffer.write(module.operation.get_asm(enable_debug_info=True).encode())


if __name__ == "__main__":
    _main()
