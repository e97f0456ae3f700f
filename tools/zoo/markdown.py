"""What the pages of the zoo are made of."""

from __future__ import annotations

from collections.abc import Sequence

ABSENT = "-"
"""The cell of what was not measured."""


def escaped(text: str) -> str:
    """Text from elsewhere as one line of Markdown that means only its letters."""
    return "".join(f"\\{letter}" if letter in "\\|`*_<>[]" else letter for letter in " ".join(text.split()))


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A Markdown table with an empty line behind it."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines) + "\n"
