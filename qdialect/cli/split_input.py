"""``--split-input-file``: one file, several modules."""

from __future__ import annotations

MARKER = "// -----"


def split(text: str, marker: str = MARKER) -> list[str]:
    """The parts of `text` between the lines that consist of `marker`.

    Each part begins with as many empty lines as the file has before it, so that its line numbers are the file's.
    """
    parts: list[str] = []
    lines: list[str] = []
    for number, line in enumerate(text.split("\n"), 1):
        if line.rstrip() == marker:
            parts.append("\n".join(lines) + "\n")
            lines = [""] * number
        else:
            lines.append(line)
    return [*parts, "\n".join(lines)]
