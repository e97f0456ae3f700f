"""What a user may say about the import of a model, the same on every command that takes one."""

from __future__ import annotations

import argparse

from qdialect.model_files import FORMATS, ImportOptions


def add_import_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options to `parser`."""
    parser.add_argument(
        "--batch", type=int, default=1, metavar="N", help="first extent of inputs that leave it open (default 1)"
    )
    profiles = "; ".join(f"{suffix}: {', '.join(entry.profiles())}" for suffix, entry in FORMATS.items())
    parser.add_argument(
        "--profile", default="", metavar="NAME", help=f"whose arithmetic, the first by default ({profiles})"
    )


def import_options(arguments: argparse.Namespace) -> ImportOptions:
    """What the arguments say."""
    return ImportOptions(batch=arguments.batch, profile=arguments.profile)
