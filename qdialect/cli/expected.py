"""``--verify-diagnostics``: comments that say which diagnostics a file must cause.

A comment ``expected-error {{text}}`` stands on the line of the error, or gives its distance: ``@+1``, ``@-2``,
``@above`` and ``@below`` (the nearest line without such a comment) or ``@unknown`` (a diagnostic without a location).
``error`` may be ``warning``, ``note`` or ``remark``.  The message must contain the text; in ``expected-error-re`` what
stands between inner double braces is a regular expression.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from qdialect.support.diagnostics import Diagnostic, Severity

_COMMENT = re.compile(
    r"expected-(?P<kind>error|warning|note|remark)(?P<re>-re)? *+"
    r"(?:@(?P<where>[+-]\d++|above|below|unknown))? *+\{\{(?P<text>.*)\}\}$"
)
# A line number that no diagnostic with a location has.
_UNKNOWN = 0


@dataclass(frozen=True)
class Expectation:
    """One comment: the expected message, its line, and the line of the comment."""

    severity: Severity
    pattern: re.Pattern[str]
    text: str
    line: int
    at: tuple[int, int]

    def fits(self, diagnostic: Diagnostic) -> bool:
        is_same_line = diagnostic.severity == self.severity and diagnostic.line == self.line
        return is_same_line and self.pattern.search(diagnostic.message) is not None


def problems(text: str, name: str, diagnostics: Sequence[Diagnostic]) -> list[Diagnostic]:
    """The differences between the comments of `text` and the `diagnostics` that it caused, in the order of lines.

    Every diagnostic and every note of one must have a comment of its own, and every comment a diagnostic.
    """
    try:
        missing = expectations(text)
    except MalformedCommentError as error:
        return [replace(error.diagnostic, file=name)]
    found: list[Diagnostic] = []
    for diagnostic in _with_notes(diagnostics):
        here = diagnostic if diagnostic.file == name else replace(diagnostic, line=_UNKNOWN)
        fitting = next((e for e in missing if e.fits(here)), None)
        if fitting:
            missing.remove(fitting)
        else:
            message = f"unexpected {diagnostic.severity.value}: {diagnostic.message}"
            found.append(replace(diagnostic, severity=Severity.ERROR, message=message, notes=()))
    for e in missing:
        message = f'expected {e.severity.value} "{e.text}" was not produced'
        found.append(Diagnostic(Severity.ERROR, message, name, *e.at))
    return sorted(found, key=lambda diagnostic: diagnostic.line)


class MalformedCommentError(Exception):
    """A comment with a malformed regular expression."""

    def __init__(self, diagnostic: Diagnostic) -> None:
        super().__init__(diagnostic.message)
        self.diagnostic = diagnostic


def expectations(text: str) -> list[Expectation]:
    """The comments of `text`."""
    lines = text.split("\n")
    matches = list(map(_comment, lines))
    plain = [number for number, match in enumerate(matches, 1) if match is None]
    return [_expectation(match, number, plain) for number, match in enumerate(matches, 1) if match]


def _comment(line: str) -> re.Match[str] | None:
    line = line.rstrip(" ")
    # Without this a line of many beginnings would be searched to its end from each.
    return _COMMENT.search(line) if line.endswith("}}") else None


def _expectation(match: re.Match[str], number: int, plain: Sequence[int]) -> Expectation:
    at = (number, match.start() + 1)
    line = _line(match["where"], number, plain)
    try:
        pattern = re.compile(_regex(match["text"]) if match["re"] else re.escape(match["text"]))
    except re.error as error:
        message = f"invalid regular expression in '{match['text']}': {error}"
        raise MalformedCommentError(Diagnostic(Severity.ERROR, message, "", *at)) from error
    return Expectation(Severity(match["kind"]), pattern, match["text"], line, at)


def _line(where: str | None, number: int, plain: Sequence[int]) -> int:
    if where is None:
        return number
    if where == "unknown":
        return _UNKNOWN
    if where == "above":
        return max((line for line in plain if line < number), default=number)
    if where == "below":
        return min((line for line in plain if line > number), default=number)
    return number + int(where)


def _regex(text: str) -> str:
    """`text` with everything outside of inner double braces taken literally."""
    parts: list[str] = []
    start = 0
    while (opened := text.find("{{", start)) >= 0 and (closed := text.find("}}", opened + 2)) >= 0:
        parts += [re.escape(text[start:opened]), f"(?:{text[opened + 2 : closed]})"]
        start = closed + 2
    return "".join([*parts, re.escape(text[start:])])


def _with_notes(diagnostics: Sequence[Diagnostic]) -> Iterator[Diagnostic]:
    for diagnostic in diagnostics:
        yield diagnostic
        yield from _with_notes(diagnostic.notes)
