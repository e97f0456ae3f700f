"""How a module is printed, and whether it is the same module when that text is parsed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import zip_longest

import numpy as np

from qdialect.ir import resources
from qdialect.ir._mlir import ir
from qdialect.ir.context import bytecode, make_context, parse
from qdialect.support.diagnostics import VerificationError

_CONSTANTS = "qnn.constants"


@dataclass(frozen=True)
class Printing:
    """The form of a print; the fields are named as the arguments of the bindings' `get_asm` are."""

    large_elements_limit: int | None = None
    """Elements of a constant above which ``dense_resource<__elided__>`` stands for it."""
    large_resource_limit: int | None = None
    """Characters of a `dense_resource` above which its data is left out."""
    enable_debug_info: bool = False
    """Whether locations are printed."""
    print_generic_op_form: bool = False
    use_local_scope: bool = False
    """Whether locations and attributes are printed in place, without aliases."""
    use_name_loc_as_prefix: bool = False
    """Whether values are named after the names in their locations."""

    def text(self, printed: ir.Module | ir.Operation, name: str = "-") -> str:
        """The print of a module or another op, parsed from the file `name`.

        The constants of a module that is a program are printed as a `dense_resource`.
        """
        op = _with_resource(printed).operation if isinstance(printed, ir.Module) else printed
        text = op.get_asm(
            large_elements_limit=self.large_elements_limit,
            large_resource_limit=self.large_resource_limit,
            enable_debug_info=self.enable_debug_info,
            print_generic_op_form=self.print_generic_op_form,
            use_local_scope=self.use_local_scope,
            use_name_loc_as_prefix=self.use_name_loc_as_prefix,
        )
        # No string attribute can contain this: their quotes are escaped.
        text = text.replace('loc("-":', f'loc("{name}":') if self.enable_debug_info else text
        return text.rstrip("\n") + "\n"


def _with_resource(module: ir.Module) -> ir.Module:
    """A program whose constants are a `dense_resource`; every other module is itself."""
    if _CONSTANTS not in module.operation.attributes:
        return module
    attribute = module.operation.attributes[_CONSTANTS]
    if not isinstance(attribute, ir.DenseElementsAttr):
        return module
    # A context keeps its resources for good, so the copy has one of its own.
    context = make_context()
    context.allow_unregistered_dialects = module.context.allow_unregistered_dialects
    copy = ir.Module.parse(bytecode(module), context)
    elements = np.broadcast_to(np.array(attribute), ir.ShapedType(attribute.type).shape)
    content = np.ascontiguousarray(elements).view(np.uint8)
    with context, ir.Location.unknown():
        copy.operation.attributes[_CONSTANTS] = resources.resource("constants", content)
    return copy


def check_round_trip(module: ir.Module) -> None:
    """Print `module` as text and as bytecode, and parse each in a context of its own.

    Raises `ParseError` where the printed text is no module, and `VerificationError` with the first line that differs
    where it is another one.
    """
    printed = Printing().text(module)
    _compare("text", printed, parse(printed, _context_for(module)))
    # The reader of strangers' bytecode is a process of its own; this was written here.
    _compare("bytecode", printed, ir.Module.parse(bytecode(module), _context_for(module)))


def _context_for(module: ir.Module) -> ir.Context:
    context = make_context()
    context.allow_unregistered_dialects = module.context.allow_unregistered_dialects
    return context


def _compare(form: str, printed: str, module: ir.Module) -> None:
    lines = zip_longest(printed.splitlines(), Printing().text(module).splitlines(), fillvalue="")
    for number, (wanted, found) in enumerate(lines, 1):
        if wanted != found:
            difference = f"line {number} of its print must be '{wanted}', but got '{found}'"
            raise VerificationError(f"module must be the same after a round trip through {form}: {difference}")


_METADATA = "qnn.metadata"


def set_metadata(module: ir.Module, metadata: Mapping[str, str]) -> None:
    """Set the metadata of a model file on its module, texts by names."""
    if metadata:
        with module.context:
            texts: dict[str, ir.Attribute] = {name: ir.StringAttr.get(text) for name, text in metadata.items()}
            module.operation.attributes[_METADATA] = ir.DictAttr.get(texts)


def metadata_of(module: ir.Module) -> dict[str, str]:
    """The metadata of a model; empty in another form."""
    attributes = module.operation.attributes
    if _METADATA not in attributes or not isinstance(attributes[_METADATA], ir.DictAttr):
        return {}
    found = ir.DictAttr(attributes[_METADATA])
    entries = (found[index] for index in range(len(found)))
    return {entry.name: entry.attr.value for entry in entries if isinstance(entry.attr, ir.StringAttr)}
