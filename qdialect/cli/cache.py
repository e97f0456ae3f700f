"""``qdialect-cache``: what is in the cache of compiled networks, and how to make it smaller."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Mapping, Sequence

from qdialect.cache import store as folder
from qdialect.cache.fingerprint import cpu, own_files, unknown
from qdialect.cache.store import Store, opened
from qdialect.cli import terminal
from qdialect.cli.arguments import CommandParser, add_json_argument
from qdialect.support.diagnostics import InputError

PROGRAM = "qdialect-cache"
_EXAMPLES = f"""\
'qdialect.compile' keeps what it compiled, and finds it by the content of the model. {folder.VARIABLE} names the folder,
or is 'off'; {folder.SIZE_VARIABLE} is what it may hold (default 1G). Entries that were not used for longest go first.

examples:
  qdialect-cache info                  the folder, how many entries it has, and their size
  qdialect-cache prune                 remove what is left of writers that were ended, and what exceeds the limit
  qdialect-cache prune --size 100M     remove entries until 100 MiB are left
  qdialect-cache clear                 remove all entries
  {folder.VARIABLE}=off qdialect-run model.tflite    compile without the cache
"""


class Arguments(argparse.Namespace):
    """The command line."""

    command: str
    size: str | None
    json: bool


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; the exit status."""
    options = _parser().parse_args(arguments, namespace=Arguments())
    return terminal.run(PROGRAM, lambda: _run(options))


def _run(options: Arguments) -> int:
    if options.size is not None and options.command != "prune":
        raise InputError(f"--size must be given with prune, but got {options.command}")
    if options.json and options.command != "info":
        raise InputError(f"--json must be given with info, but got {options.command}")
    return _COMMANDS[options.command](options)


def _parser() -> argparse.ArgumentParser:
    parser = CommandParser(PROGRAM, "Show or shrink the cache of compiled networks.", _EXAMPLES)
    parser.add_argument("command", choices=tuple(_COMMANDS), help="what to do")
    parser.add_argument(
        "--size", metavar="BYTES", help="of prune: what may stay, such as 100M (default: the limit of the cache)"
    )
    add_json_argument(parser.add_argument)
    return parser


def _info(options: Arguments) -> int:
    root, limit = folder.location(), folder.size_limit()
    if folder.is_off() or root is None:
        reason = f"{folder.VARIABLE} is off" if folder.is_off() else "the user has no home folder"
        root = None
    else:
        reason = unknown(cpu(), own_files())[1]
    store = opened(root) if root else None
    entries = [file for file in (store.files() if store else []) if not file.is_draft]
    size = sum(file.size for file in entries)
    if options.json:
        place = str(root) if root else None
        found = {"folder": place, "entries": len(entries), "bytes": size, "limit": limit, "unused_because": reason}
        terminal.write_json("-", found)
        return 0
    if reason:
        print(f"nothing is kept: {reason}")
    if root:
        print(f"folder:  {root}\nentries: {len(entries)}\nsize:    {size} bytes of at most {limit}")
    return 0


def _prune(options: Arguments) -> int:
    limit = folder.size_limit() if options.size is None else folder.parsed_size(options.size, "--size")
    return _removed(lambda store: store.trim(limit))


def _clear(_: Arguments) -> int:
    return _removed(Store.clear)


def _removed(remove: Callable[[Store], int]) -> int:
    root = folder.location()
    store = opened(root) if root and not folder.is_off() else None
    print(f"removed {remove(store) if store else 0} files")
    return 0


_COMMANDS: Mapping[str, Callable[[Arguments], int]] = {"info": _info, "clear": _clear, "prune": _prune}


if __name__ == "__main__":
    sys.exit(main())
