"""The options of a model's import, the same on every command that takes one."""

from __future__ import annotations

import argparse

from qdialect.frontends.model_files import FORMATS
from qdialect.support.options import DYNAMIC, FALLBACKS, ImportOptions


class ImportArguments(argparse.Namespace):
    """The values of the options."""

    model: str
    batch: int | str
    dim: list[tuple[str, int]]
    profile: str
    signature: str
    branch: list[tuple[str, bool]]
    trust_pt2: bool


def add_import_arguments(parser: argparse.ArgumentParser, *, takes_any_batch: bool = False) -> None:
    """Add the options to `parser`; with `takes_any_batch` the batch may be `DYNAMIC`."""
    parser.add_argument(
        "--batch",
        type=_batch if takes_any_batch else int,
        default=1,
        metavar=f"N|{DYNAMIC}" if takes_any_batch else "N",
        help="first extent of inputs that leave it open (default 1)"
        + (f"; {DYNAMIC} is any, given with each call" if takes_any_batch else ""),
    )
    parser.add_argument(
        "--dim",
        action="append",
        default=[],
        type=_dim,
        metavar="NAME=N",
        help="another extent that an input leaves open, by its name or as INPUT:AXIS; may be given again",
    )
    profiles = "; ".join(f"{suffix}: {', '.join(entry.profiles())}" for suffix, entry in FORMATS.items())
    parser.add_argument(
        "--profile", default="", metavar="NAME", help=f"whose arithmetic, the first by default ({profiles})"
    )
    parser.add_argument(
        "--signature",
        default="",
        metavar="NAME",
        help="which signature of a .tflite file (default: its first subgraph)",
    )
    parser.add_argument(
        "--branch",
        action="append",
        default=[],
        type=_branch,
        metavar="NAME=0|1",
        help="the value of a condition of If nodes that an .onnx file leaves to run time; may be given again",
    )
    parser.add_argument(
        "--trust-pt2",
        action="store_true",
        help="let PyTorch load a .pt2 file, which can run any code; needed for pickled weights and older files",
    )


def add_fallback_argument(parser: argparse.ArgumentParser, default: str) -> None:
    """Add the option to `parser`; `default` describes the default in its help."""
    parser.add_argument(
        "--fallback",
        choices=FALLBACKS,
        help=f"who runs what cannot be compiled: the model's own framework or nobody (default: {default})",
    )


def import_options(arguments: argparse.Namespace) -> ImportOptions:
    """The options in the arguments."""
    return ImportOptions(
        batch=1 if arguments.batch == DYNAMIC else arguments.batch,
        dims=dict(arguments.dim),
        profile=arguments.profile,
        trust=arguments.trust_pt2,
        signature=arguments.signature,
        branches=dict(arguments.branch),
    )


def _batch(text: str) -> int | str:
    if text != DYNAMIC and not text.removeprefix("-").isdecimal():
        raise argparse.ArgumentTypeError(f"must be an integer or '{DYNAMIC}', but got '{text}'")
    return text if text == DYNAMIC else int(text)


def _branch(text: str) -> tuple[str, bool]:
    name, _, value = text.rpartition("=")
    if not name or value not in ("0", "1"):
        raise argparse.ArgumentTypeError(f"must be NAME=0 or NAME=1, but got '{text}'")
    return name, value == "1"


def _dim(text: str) -> tuple[str, int]:
    name, _, extent = text.rpartition("=")
    if not name or not extent.isdecimal():
        raise argparse.ArgumentTypeError(f"must be NAME=N, but got '{text}'")
    return name, int(extent)
