"""The flags of ``qdialect-opt`` that say how modules are printed, by the names that ``mlir-opt`` has for them."""

from __future__ import annotations

import argparse
from collections.abc import Callable

from qdialect.module_text import Printing


class PrintingArguments(argparse.Namespace):
    """What the flags below say."""

    large_elements_limit: int | None
    large_resource_limit: int | None
    enable_debug_info: bool
    print_generic_op_form: bool
    use_local_scope: bool
    use_name_loc_as_prefix: bool
    emit_bytecode: bool

    @property
    def printing(self) -> Printing:
        """The form of a print."""
        return Printing(
            large_elements_limit=self.large_elements_limit,
            large_resource_limit=self.large_resource_limit,
            enable_debug_info=self.enable_debug_info,
            print_generic_op_form=self.print_generic_op_form,
            use_local_scope=self.use_local_scope,
            use_name_loc_as_prefix=self.use_name_loc_as_prefix,
        )


def add_printing_flags(add: Callable[..., object]) -> None:
    """Add the flags to a parser or one of its groups."""
    add("--emit-bytecode", action="store_true", help="write MLIR bytecode instead of text")
    for flag, dest, text in (
        ("--mlir-print-debuginfo", "enable_debug_info", "print the location of each op"),
        ("--mlir-print-op-generic", "print_generic_op_form", "print every op in the generic form"),
        ("--mlir-print-local-scope", "use_local_scope", "print locations and attributes in place, without aliases"),
        ("--mlir-use-nameloc-as-prefix", "use_name_loc_as_prefix", "name values after the names in their locations"),
    ):
        add(flag, dest=dest, action="store_true", help=text)
    for flag, dest, unit in (
        ("--mlir-elide-elementsattrs-if-larger", "large_elements_limit", "constants of more than N elements"),
        ("--mlir-elide-resource-strings-if-larger", "large_resource_limit", "resources of more than N characters"),
    ):
        add(flag, dest=dest, type=_count, metavar="N", help=f"leave out the data of {unit}")


def _count(text: str) -> int:
    if not text.isascii() or not text.isdigit():
        raise argparse.ArgumentTypeError(f"must be a number of elements, but got '{text}'")
    return int(text)
