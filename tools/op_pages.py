"""docs/ops/: one page for each family of ops, from the op classes and their round-trip tests."""

import inspect
import re
import sys
from collections.abc import Iterator
from enum import Enum
from pathlib import Path
from typing import cast

from lit_tests import first_function, op_lines, shortened

from qdialect.dialect import OPS, QnnOp
from qdialect.dialect.fields import OptionalOperandField, VariadicOperandField
from qdialect.dialect.op_base import MAX_VARIADIC

_TYPE = re.compile(r"\w+<\w*>")


def family_of(op_class: type[QnnOp]) -> str:
    """Name of an op's page: its module without ``_ops``."""
    return op_class.__module__.rpartition(".")[2].removesuffix("_ops")


def short_name(op_class: type[QnnOp]) -> str:
    return op_class.OPERATION_NAME.removeprefix("qnn.")


def families() -> dict[str, list[type[QnnOp]]]:
    """Ops by family, in the order of definition."""
    found: dict[str, list[type[QnnOp]]] = {}
    for op_class in OPS:
        found.setdefault(family_of(op_class), []).append(op_class)
    return found


def pages(tests: Path) -> Iterator[tuple[str, str]]:
    """File name and text of each page."""
    for family, members in families().items():
        module = sys.modules[members[0].__module__]
        title, _, text = inspect.cleandoc(module.__doc__ or "").partition("\n\n")
        introduction = [f"# {title.removesuffix('.')}\n", *([f"{text}\n"] if text else [])]
        yield f"{family}.md", "\n".join([*introduction, *(_section(op, tests) for op in members)])


def _section(op_class: type[QnnOp], tests: Path) -> str:
    # The docstring of the class itself: an inherited one would speak of another op.
    text = inspect.cleandoc(op_class.__doc__ or "").partition("Constraints:")[0]
    shared = _shared_meaning(op_class)
    parts = [
        f"## `{op_class.OPERATION_NAME}`",
        text.strip(),
        *([shared] if shared else []),
        _operands(op_class),
        _attributes(op_class),
        "Constraints:",
        "\n".join(constraints_of(op_class)),
        "Example:",
        f"```mlir\n{_example(op_class, tests)}\n```",
    ]
    return "\n\n".join(parts) + "\n"


def _shared_meaning(op_class: type[QnnOp]) -> str:
    """What the nearest base of the family that is more than shared fields says of all its ops."""
    own = (base for base in op_class.__mro__[1:] if base.__module__ == op_class.__module__)
    texts = (inspect.cleandoc(base.__doc__ or "").partition("Constraints:")[0].strip() for base in own)
    return next((text for text in texts if not text.startswith("Shared fields: ")), "")


def constraints_of(op_class: type[QnnOp]) -> list[str]:
    """A list item for each constraint that the op or a base class of it states, by label."""
    documents = [inspect.cleandoc(vars(one).get("__doc__") or "") for one in op_class.__mro__]
    items = [item for text in documents for item in constraint_lines(text.partition("Constraints:")[2])]
    return sorted(items, key=lambda item: labels_of(item)[0])


def labels_of(item: str) -> range:
    """The numbers of the labels of an item: 1, 2 and 3 of ``C1 to C3``."""
    first, last = re.findall(r"\*\*C(\d+)(?: to C(\d+))?\*\*", item)[0]
    return range(int(first), int(last or first) + 1)


def constraint_lines(constraints: str) -> Iterator[str]:
    """A list item for each constraint; a line that is indented further continues the one before."""
    for rule in re.split(r"\n(?=C\d)", inspect.cleandoc(constraints)) if constraints.strip() else []:
        label, _, text = rule.partition(": ")
        yield f"- **{label}** " + "\n  ".join(line.strip() for line in text.splitlines())


def _operands(op_class: type[QnnOp]) -> str:
    rows = ["| operand | type |", "|---|---|"]
    for field in op_class.operand_fields:
        many = isinstance(field, VariadicOperandField)
        note = ", optional" if isinstance(field, OptionalOperandField) else f", 1 to {MAX_VARIADIC} times" * many
        rows.append(f"| `{field.name}`{note} | {cell_text(str(field.constraint))} |")
    field = op_class.result_fields[0]
    return "\n".join([*rows, f"| `{field.name}` (result) | {cell_text(str(field.constraint))} |"])


def _attributes(op_class: type[QnnOp]) -> str:
    rows = ["| attribute | kind | default |", "|---|---|---|"]
    for name, field in op_class.attribute_fields.items():
        rows.append(f"| `{name}` | {cell_text(field.kind.description)} | {default_text(field.default)} |")
    return "\n".join(rows)


def default_text(value: object) -> str:
    """What the absence of an attribute says; empty where it must be written."""
    if value is None:
        return ""
    if isinstance(value, Enum):
        return f'`"{value}"`'
    text = list(cast("tuple[object, ...]", value)) if isinstance(value, tuple) else value
    return f"`{text}`".lower()


def cell_text(text: str) -> str:
    """`text` for a table: types as code, since Markdown takes their brackets for tags."""
    return _TYPE.sub(r"`\g<0>`", text)


def _example(op_class: type[QnnOp], tests: Path) -> str:
    function = first_function(tests / f"{short_name(op_class)}.mlir")
    return shortened("\n".join(op_lines(function, op_class.OPERATION_NAME)))
