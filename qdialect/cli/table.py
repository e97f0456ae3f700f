"""Aligned tables for a terminal."""

from __future__ import annotations

from collections.abc import Sequence

from qdialect.diagnostics import printable


def render(header: Sequence[str], rows: Sequence[Sequence[str]], *, right: Sequence[int] = ()) -> str:
    """Lines of `header` and `rows` in columns as wide as they need; the columns `right` are flush right.

    Cells are names of a model more often than not: they are shown `printable`.
    """
    lines = [[printable(cell) for cell in line] for line in (header, *rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(header))]

    def text(line: Sequence[str]) -> str:
        cells = (
            cell.rjust(width) if column in right else cell.ljust(width)
            for column, (cell, width) in enumerate(zip(line, widths, strict=True))
        )
        return "  ".join(cells).rstrip()

    return "\n".join(map(text, lines))
