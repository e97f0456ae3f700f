"""The options of a pass as text: ``{max-size=4 fast sizes=1,2}``, the syntax that MLIR's own passes have."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, get_args, get_origin

from qdialect.support.diagnostics import PipelineError

Scalar = bool | int | float | str

_KEY = re.compile(r"[A-Za-z0-9_.-]+")
TRUTH = {"true": True, "1": True, "false": False, "0": False}
_CLOSING = {"{": "}", "[": "]", "(": ")"}
_KINDS = {int: "an integer", float: "a number", bool: "true or false"}


def split(text: str) -> dict[str, str]:
    """The options of ``a=1 b={x y} c``, without the outer braces: a value may be quoted or braced, a bare name is true.

    Raises `PipelineError` for a missing name, a name given twice and an open quote or brace.
    """
    options: dict[str, str] = {}
    at = 0
    while rest := text[at:].strip():
        at = len(text) - len(text[at:].lstrip())
        key = _KEY.match(rest)
        if not key:
            raise PipelineError(f"expected the name of an option, but got '{rest}'")
        at += key.end()
        value = "true"
        if text[at : at + 1] == "=":
            end = _value_end(text, at + 1)
            value, at = text[at + 1 : end], end
        if key[0] in options:
            raise PipelineError(f"option '{key[0]}' is given twice")
        wrapped = len(value) >= 2 and value[0] + value[-1] in ("''", '""', "{}")
        options[key[0]] = value[1:-1] if wrapped else value
    return options


def joined(options: Mapping[str, str]) -> str:
    """The text that `split` takes apart again; each option has its value, so that nothing hangs on a default."""
    return " ".join(f"{key}={_quoted(value)}" for key, value in options.items())


def value_of(text: str, kind: Any) -> Any:
    """`text` as a value of the type `kind`: bool, int, float, str or a tuple of these.

    Raises `PipelineError` with what was expected and found.
    """
    if get_origin(kind) is tuple:
        return tuple(value_of(item, get_args(kind)[0]) for item in text.split(",") if item)
    if kind is str:
        return text
    try:
        return TRUTH[text.lower()] if kind is bool else kind(text)
    except (KeyError, ValueError) as error:
        raise PipelineError(f"must be {_KINDS[kind]}, but got '{text}'") from error


def text_of(value: Scalar | tuple[Scalar, ...]) -> str:
    """The text that `value_of` reads back as `value`."""
    if isinstance(value, tuple):
        return ",".join(map(text_of, value))
    return str(value).lower() if isinstance(value, bool) else str(value)


def is_supported(kind: Any) -> bool:
    """Whether an option can have the type `kind`."""
    if get_origin(kind) is tuple:
        item, *rest = get_args(kind)
        return rest == [Ellipsis] and item in (bool, int, float, str)
    return kind in (bool, int, float, str)


def _value_end(text: str, at: int) -> int:
    """Where the value that starts at `at` ends: at a blank outside of quotes and brackets."""
    open_: list[str] = []
    for i in range(at, len(text)):
        char = text[i]
        if open_ and char == open_[-1]:
            open_.pop()
        elif open_ and open_[-1] in "'\"":
            continue
        elif char in "'\"":
            open_.append(char)
        elif char in _CLOSING:
            open_.append(_CLOSING[char])
        elif char.isspace() and not open_:
            return i
    if open_:
        raise PipelineError(f"expected '{open_[-1]}' at the end of '{text[at:]}'")
    return len(text)


def _quoted(value: str) -> str:
    plain = value and not re.search(r"[\s'\"{}\[\]()]", value)
    return value if plain else f'"{value}"' if '"' not in value else f"'{value}'"
