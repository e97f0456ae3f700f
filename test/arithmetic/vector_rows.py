"""Reads the recorded vectors that the tests of this folder check against."""

import json
from functools import cache
from pathlib import Path
from typing import Any

Row = dict[str, Any]

_FOLDER = Path(__file__).parent / "vectors"


@cache
def document(name: str) -> dict[str, Any]:
    return json.loads((_FOLDER / f"{name}.json").read_text())


def tvm_rows(group: str) -> list[Row]:
    """The rows of one op of tvm_vectors.json."""
    return document("tvm_vectors")["groups"][group]


def row_id(row: Row) -> str:
    """What pytest prints for a row."""
    return str(row.get("id") or row.get("name") or row.get("desc"))
