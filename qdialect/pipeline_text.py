"""The text form of pipelines: ``builtin.module(qnn-fuse-bias,func.func(cse),qnn-decompose{x=1})``.

Upstream's parser cannot know passes written in Python, so the text is taken apart here.  Grammar::

    pipeline = element ("," element)*
    element  = name ["{" options "}"]  |  anchor "(" pipeline ")"
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from qdialect.diagnostics import Diagnostic, PipelineError, Severity

# What diagnostics call the text.
TEXT_NAME = "<pass-pipeline>"

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.$-]*")
_BLANK = re.compile(r"\s*")
_DEPTH_LIMIT = 64


@dataclass(frozen=True)
class Element:
    """One pass of a text: its `name`, `options` without the braces, and the ops it is nested in, outermost first.

    `at` is where the name starts in `text`, so that later complaints can point there.
    """

    name: str
    options: str
    anchors: tuple[str, ...]
    text: str
    at: int

    def error(self, message: str) -> PipelineError:
        """A complaint about this element, with its column."""
        return error_at(self.text, self.at, message)


def error_at(text: str, at: int, message: str) -> PipelineError:
    """A complaint about the character `at` of a pipeline text."""
    line = text.count("\n", 0, at) + 1
    column = at - text.rfind("\n", 0, at)
    position = f"column {column}" if line == 1 else f"line {line}, column {column}"
    diagnostic = Diagnostic(Severity.ERROR, message, TEXT_NAME, line, column)
    return PipelineError(f"{position}: {message}", (diagnostic,))


def elements(text: str) -> list[Element]:
    """The passes of a pipeline in their order; the outer ``builtin.module(...)`` may be left out.

    Raises `PipelineError` with the column of what is wrong.
    """
    parser = _Parser(text)
    found = parser.pipeline(())
    parser.expect_end()
    whole = [e for e in found if e.anchors[:1] not in (("builtin.module",), ("any",))]
    return found if whole else [Element(e.name, e.options, e.anchors[1:], e.text, e.at) for e in found]


def joined(parts: Sequence[tuple[tuple[str, ...], str]]) -> str:
    """The text of (anchors, pass) pairs: neighbours below the same anchor share its parentheses."""
    texts: list[str] = []
    at = 0
    while at < len(parts):
        anchors, text = parts[at]
        end = at + 1
        if anchors:
            while end < len(parts) and parts[end][0][:1] == anchors[:1]:
                end += 1
            inner = joined([(inner_anchors[1:], inner_text) for inner_anchors, inner_text in parts[at:end]])
            text = f"{anchors[0]}({inner})"
        texts.append(text)
        at = end
    return ",".join(texts)


class _Parser:
    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0

    def pipeline(self, anchors: tuple[str, ...]) -> list[Element]:
        found = self._element(anchors)
        while self._take(","):
            found += self._element(anchors)
        return found

    def expect_end(self) -> None:
        if self._peek():
            raise error_at(self._text, self._at, f"expected ',' or the end, but got '{self._peek()}'")

    def _element(self, anchors: tuple[str, ...]) -> list[Element]:
        self._peek()
        name = _NAME.match(self._text, self._at)
        if not name:
            found = f"'{self._peek()}'" if self._peek() else "the end"
            raise error_at(self._text, self._at, f"expected the name of a pass, but got {found}")
        self._at = name.end()
        if self._take("("):
            return self._nested((*anchors, name[0]), name.start())
        options = self._options() if self._peek() == "{" else ""
        return [Element(name[0], options, anchors, self._text, name.start())]

    def _nested(self, anchors: tuple[str, ...], at: int) -> list[Element]:
        if len(anchors) > _DEPTH_LIMIT:
            raise error_at(self._text, at, f"anchors must nest at most {_DEPTH_LIMIT} deep")
        if anchors in (("builtin.module",), ("any",)) and self._take(")"):
            return []
        found = self.pipeline(anchors)
        if not self._take(")"):
            got = f"'{self._peek()}'" if self._peek() else "the end"
            raise error_at(self._text, self._at, f"expected ',' or ')', but got {got}")
        return found

    def _options(self) -> str:
        start = self._at
        depth = 0
        quote = ""
        for i in range(start, len(self._text)):
            char = self._text[i]
            if quote or char in "'\"":
                quote = "" if char == quote else quote or char
            elif char in "{}":
                depth += 1 if char == "{" else -1
            if depth == 0:
                self._at = i + 1
                return self._text[start + 1 : i]
        raise error_at(self._text, start, "expected '}' at the end of the options")

    def _peek(self) -> str:
        blank = _BLANK.match(self._text, self._at)
        self._at = blank.end() if blank else self._at
        return self._text[self._at : self._at + 1]

    def _take(self, char: str) -> bool:
        taken = self._peek() == char
        self._at += taken
        return taken
