"""MLIR bytecode, read in a process of its own: MLIR's reader takes what it reads for well-formed, and damaged content
can corrupt its memory.

The child prints the module as text, and this process parses that, with all the checks that texts get.
"""

from __future__ import annotations

from qdialect.child_processes import ChildError, answer

MAGIC = b"ML\xefR"
"""What MLIR bytecode begins with."""

_ALLOW_UNREGISTERED = "--allow-unregistered-dialect"
# Seconds for a start of Python and MLIR, and bytes of bytecode a second on a slow machine.
_START, _RATE = 120, 1_000_000


def text_of(content: bytes, *, allow_unregistered: bool) -> str | None:
    """The text of a module with its locations; None where `content` is damaged.

    Raises `ChildError` where no process can be started to read it.
    """
    flags = [_ALLOW_UNREGISTERED] if allow_unregistered else []
    try:
        found = answer(f"{__name__}:{read.__name__}", content, flags, seconds=_START + len(content) / _RATE)
        return found.decode("utf-8") or None
    except UnicodeDecodeError:
        return None
    except ChildError as error:
        if error.is_crash:
            return None
        raise


def read(content: bytes, *flags: str) -> bytes:
    """The text of a module, as UTF-8; empty where `content` is damaged. MLIR may end the process instead."""
    # What is imported here imports this module.
    from qdialect._mlir import ir
    from qdialect.context import make_context

    with make_context() as context:
        context.allow_unregistered_dialects = _ALLOW_UNREGISTERED in flags
        try:
            return ir.Module.parse(content).operation.get_asm(enable_debug_info=True).encode()
        except (ir.MLIRError, ValueError):
            return b""
