"""Which variants of its kernels a module is to get: the attribute `qnn.tuning`, which `--tune` writes.

It names the target that kernels were measured for, and the variants that were faster than what the cost model chose:

  qnn.tuning = {target = "avx512vbmi", variants = {"3136 pixels ..." = "6 rows x 4 vectors"}}

A module that is lowered for another target gets what the model chooses.
"""

from __future__ import annotations

from collections.abc import Mapping

from qdialect._mlir import ir
from qdialect.lowering import attribute_tree
from qdialect.lowering.lowered import error_at_module
from qdialect.target import Target

TUNING = "qnn.tuning"
_WANTED = '{target = "...", variants = {"KERNEL" = "VARIANT", ...}}'


def read(module: ir.Module, target: Target) -> Mapping[str, str] | None:
    """The variants by kernel that `module` is to get on `target`; None where it was not tuned.

    Raises `CompileError` for an attribute that is not what `write` writes.
    """
    attributes = module.operation.attributes
    if TUNING not in attributes:
        return None
    attribute = attributes[TUNING]
    found = _tree(attribute)
    if found is None:
        raise error_at_module(module, f"{TUNING} must be {_WANTED}, but got {attribute}")
    name, variants = found
    return variants if name == target.name else None


def write(module: ir.Module, target: Target, variants: Mapping[str, str]) -> None:
    """Say on `module` which variants its kernels are to get on `target`."""
    with module.context, ir.Location.unknown():
        module.operation.attributes[TUNING] = attribute_tree.written({"target": target.name, "variants": variants})


def _tree(attribute: ir.Attribute) -> tuple[str, dict[str, str]] | None:
    if (
        not isinstance(attribute, ir.DictAttr)
        or len(attribute) != 2
        or not {"target", "variants"} <= set(_names(attribute))
    ):
        return None
    target, variants = attribute["target"], attribute["variants"]
    if not isinstance(target, ir.StringAttr) or not isinstance(variants, ir.DictAttr):
        return None
    entries = [variants[i] for i in range(len(variants))]
    if not all(isinstance(entry.attr, ir.StringAttr) for entry in entries):
        return None
    return target.value, {entry.name: ir.StringAttr(entry.attr).value for entry in entries}


def _names(attribute: ir.DictAttr) -> list[str]:
    return [attribute[i].name for i in range(len(attribute))]
