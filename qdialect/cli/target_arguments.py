"""The options that say which CPU code is for, and the list of CPUs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from qdialect.cli.table import render
from qdialect.target import TARGETS, host, resolve
from qdialect.target.cpu_names import CPUS


class TargetArguments(Protocol):
    """What the options set."""

    target: str
    mattr: str | None


def target_name(options: TargetArguments) -> str:
    """The target that options name, as `qdialect.target.resolve` takes it."""
    return f"{options.target},{options.mattr}" if options.mattr else options.target


def add_target_arguments(add: Callable[..., object]) -> None:
    """Add `--target`, `--mcpu` and `--mattr`."""
    add(
        *("--target", "--mcpu"),
        dest="target",
        default="host",
        metavar="NAME",
        help=f"the CPU: host (default: all this one has), {', '.join(TARGETS)} or one that --print-targets lists",
    )
    add_features_argument(add)


def add_features_argument(add: Callable[..., object]) -> None:
    """Add `--mattr`."""
    add("--mattr", metavar="+F,-F", help="features that the CPU has more or less: --mattr=+avxvnni,-fma")


def target_list() -> str:
    """A line for each CPU: its name and the kind of code that it gets."""
    rows = [[name, resolve(name).kind.name] for name in (*TARGETS, *(one for one in CPUS if one not in TARGETS))]
    return f"{render(['target', 'kind of code'], rows)}\n\nhost is {host().name}\n"
