"""The rows as files: docs/evidence/SOURCE.tsv, a line for each."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from tools.evidence.case import Key
from tools.evidence.outcomes import Outcome

FOLDER = Path(__file__).parents[2] / "docs" / "evidence"
_HEAD = "operator\ttypes\tform\tfrom\toutcome"


def read(source: str) -> dict[Key, Outcome]:
    """The rows of a source; none where it was never measured."""
    path = FOLDER / f"{source}.tsv"
    lines = path.read_text().splitlines()[1:] if path.is_file() else []
    rows = [line.split("\t") for line in lines]
    return {Key(*row[:4]): Outcome.parse(row[4]) for row in rows}


def write(source: str, rows: Mapping[Key, Outcome]) -> None:
    """Replace the rows of a source, in the order of the alphabet."""
    FOLDER.mkdir(exist_ok=True)
    lines = [f"{key}\t{outcome}" for key, outcome in sorted(rows.items())]
    (FOLDER / f"{source}.tsv").write_text("\n".join([_HEAD, *lines, ""]))
