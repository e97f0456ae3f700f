"""The commands: a module and a ``main`` for each, such as `opt` for ``qdialect-opt``."""

import sys
from pathlib import Path
from types import TracebackType


def _told(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    """No traceback of Ctrl-C while a command imports its modules, before its `main` handles it."""
    if not issubclass(kind, KeyboardInterrupt):
        sys.__excepthook__(kind, error, trace)


if Path(sys.argv[0]).name.startswith("qdialect"):
    sys.excepthook = _told
