"""docs/ops/choices.md: the named choices that ops carry as string attributes, from the classes that list them."""

import ast
import inspect
from collections.abc import Iterator

from qdialect.arithmetic import choices

INTRODUCTION = """\
# Named choices

The values of the string attributes of ops. Runtimes differ in each of these choices, so an importer states the choice
of its format.
"""


def page() -> str:
    """The text of the page."""
    sections = (_section(node) for node in _classes(inspect.getsource(choices)))
    return "\n".join([INTRODUCTION, *sections])


def _classes(source: str) -> Iterator[ast.ClassDef]:
    return (node for node in ast.parse(source).body if isinstance(node, ast.ClassDef))


def _section(node: ast.ClassDef) -> str:
    rows = [f'| `"{value}"` | {meaning} |' for value, meaning in _members(node)]
    table = "\n".join(["| value | meaning |", "|---|---|", *rows])
    return f"## {node.name}\n\n{ast.get_docstring(node) or ''}\n\n{table}\n"


def _members(node: ast.ClassDef) -> Iterator[tuple[str, str]]:
    """Each value with the text below it."""
    for statement, following in zip(node.body, [*node.body[1:], None], strict=True):
        if isinstance(statement, ast.Assign) and isinstance(statement.value, ast.Constant):
            yield str(statement.value.value), " ".join(_text(following).split())


def _text(statement: ast.stmt | None) -> str:
    """The text of a statement that is nothing but one."""
    if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant):
        return str(statement.value.value)
    return ""
