"""Values of a JSON file with where they stand in it, so that each is checked before it is used."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NoReturn, cast

from qdialect.diagnostics import ImportModelError

_NAME = re.compile(r"\w+", re.ASCII)
_LONGEST_SHOWN = 100
_FLOATS = {"Infinity": math.inf, "-Infinity": -math.inf, "NaN": math.nan}


def shown(value: object) -> str:
    """A value of a file as messages show it: on one line, without control characters and not too long."""
    text = value if isinstance(value, str) else _kind(value)
    text = text if len(text) <= _LONGEST_SHOWN else f"{text[:_LONGEST_SHOWN]}..."
    return "".join(part if part.isprintable() else part.encode("unicode_escape").decode() for part in text)


def _kind(value: object) -> str:
    if isinstance(value, dict):
        return "an object"
    return "a list" if isinstance(value, list) else json.dumps(value)


@dataclass(frozen=True)
class Field:
    """A value of the JSON file `member`; `key` is its name or index in `parent`, which the root lacks.

    The methods that take it apart raise `ImportModelError` where it is of another kind.
    """

    value: object
    member: str
    parent: Field | None = None
    key: str | int = ""

    def __getitem__(self, name: str) -> Field:
        found = self.get(name)
        return found if found is not None else self.refuse(f"must have '{name}'")

    def get(self, name: str) -> Field | None:
        """A part of an object; None where it is left out or null."""
        held = self._object()
        return None if held.get(name) is None else Field(held[name], self.member, self, name)

    def entries(self) -> Iterator[tuple[str, Field]]:
        """The parts of an object by their names."""
        for name, value in self._object().items():
            yield name, Field(value, self.member, self, name)

    def items(self) -> Iterator[Field]:
        """The parts of a list."""
        if not isinstance(self.value, list):
            self._expected("a list")
        for index, value in enumerate(cast("list[object]", self.value)):
            yield Field(value, self.member, self, index)

    def union(self) -> tuple[str, Field]:
        """The name and the value of an object's one part."""
        parts = list(self.entries())
        if len(parts) != 1:
            self.refuse(f"must have one part, but got {len(parts)}")
        return parts[0]

    def text(self) -> str:
        """A string."""
        return self.value if isinstance(self.value, str) else self._expected("a string")

    def name(self) -> str:
        """A string of letters, digits and underscores, as tracers name what they find."""
        text = self.text()
        return text if _NAME.fullmatch(text) else self._expected("a name of letters, digits and underscores")

    def integer(self) -> int:
        """An integer, not a truth value."""
        return self.value if type(self.value) is int else self._expected("an integer")

    def boolean(self) -> bool:
        """A truth value."""
        return self.value if isinstance(self.value, bool) else self._expected("true or false")

    def number(self) -> float:
        """A float; those that JSON lacks are strings."""
        if isinstance(self.value, str) and self.value in _FLOATS:
            return _FLOATS[self.value]
        if type(self.value) is int:
            return self._finite(self.value)
        return self.value if isinstance(self.value, float) else self._expected("a number")

    def _finite(self, value: int) -> float:
        try:
            return float(value)
        except OverflowError:
            return self._expected("a number")

    def refuse(self, reason: str) -> NoReturn:
        """Raise `ImportModelError` with `reason` and the path of this value."""
        raise ImportModelError(f"member '{self.member}': {self._path()} {reason}")

    def _expected(self, what: str) -> NoReturn:
        found = f"'{shown(self.value)}'" if isinstance(self.value, str) else shown(self.value)
        self.refuse(f"must be {what}, but got {found}")

    def _object(self) -> dict[str, object]:
        return cast("dict[str, object]", self.value) if isinstance(self.value, dict) else self._expected("an object")

    def _path(self) -> str:
        keys: list[str | int] = []
        field = self
        while field.parent is not None:
            keys.append(field.key)
            field = field.parent
        text = "".join(f"[{key}]" if isinstance(key, int) else f".{shown(key)}" for key in reversed(keys))
        return text.removeprefix(".") or "the file"


def parse_json(content: bytes, member: str) -> Field:
    """The value of a JSON file; raises `ImportModelError` if it is not valid JSON."""
    try:
        return Field(json.loads(content.decode()), member)
    except (ValueError, RecursionError) as error:
        # What follows the first sentence says the same of the nesting.
        raise ImportModelError(f"member '{member}' must be JSON: {shown(str(error))}") from error
