"""Plugins: Python modules from outside of the project that define ops and register passes.

A command loads the files that ``--load-pass-plugin`` names, and the modules of installed packages with an entry point
in the group ``qdialect.plugins``. Programs in Python import them.
"""

from __future__ import annotations

import argparse
import os
import sys
import traceback
from collections.abc import Callable
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_loader
from pathlib import Path

from qdialect.support.diagnostics import QDialectError
from qdialect.support.files import is_same_file

GROUP = "qdialect.plugins"


class PluginError(QDialectError):
    """A plugin cannot be loaded."""


def add_plugin_argument(add: Callable[..., object]) -> None:
    """Add ``--load-pass-plugin FILE`` by the method `add` of a parser or group; the file is run when it is parsed."""
    add(
        "--load-pass-plugin",
        dest="plugins",
        action="append",
        default=[],
        type=_loaded,
        metavar="FILE",
        help="run a Python file that defines ops and registers passes of your own",
    )


def load_installed() -> None:
    """Load the plugins of installed packages; raises `PluginError` where one fails."""
    if not any(_has_group(folder) for folder in sys.path):
        return
    # It takes longer to import than most commands without plugins run.
    from importlib.metadata import entry_points

    for one in entry_points(group=GROUP):
        try:
            one.load()
        except Exception as error:
            raise PluginError(f"cannot load plugin '{one.name}' ({one.value}): {_described(error)}") from error


def _has_group(folder: str) -> bool:
    files = Path(folder or ".").glob("*.dist-info/entry_points.txt")
    return any(f"[{GROUP}]".encode() in file.read_bytes() for file in files)


def _loaded(path: str) -> str:
    # Whether a module is this file, as that of an editable package with an entry point is.
    files = (vars(module).get("__file__") for module in list(sys.modules.values()))
    named = (file for file in files if file and os.path.basename(file) == os.path.basename(path))
    if any(is_same_file(Path(file), Path(path)) for file in named):
        return path
    name = f"qdialect_plugin_{Path(path).stem}"
    loader = SourceFileLoader(name, path)
    spec = spec_from_loader(name, loader)
    assert spec is not None
    # Dataclasses look their module up.
    module = sys.modules[name] = module_from_spec(spec)
    try:
        loader.exec_module(module)
    except (Exception, SystemExit) as error:
        raise argparse.ArgumentTypeError(f"cannot load '{path}': {_described(error)}") from error
    return path


def _described(error: BaseException) -> str:
    """The error, and the line that raised it: the last one outside of this package."""
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if "importlib" not in frame.filename]
    own = str(Path(__file__).parents[1])
    last = next((frame for frame in reversed(frames) if not frame.filename.startswith(own)), None)
    return f"{f'{last.filename}:{last.lineno}: ' if last else ''}{type(error).__name__}: {error}"
