"""Checks untrusted text and bytecode before MLIR reads them: some input would end the process or corrupt its memory."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from qdialect.support.child_processes import ChildError, answer

# A look at MLIR text before MLIR sees it: what would end the process, or take far more time than the text is long.
#
# MLIR's parser and printer recurse without a limit of their own: some thousand levels end the process.  Attributes and
# types that aliases name are printed in full wherever they are used, so that forty lines can stand for more text than
# any disk holds.  Each character is looked at once.

LIMIT = 500
"""Levels of nesting, aliases written out. Real modules stay below some dozens; a stack of 8 MiB holds thousands."""

MAX_OPERATORS = 1000
"""Arithmetic operators between one pair of brackets: MLIR's time for an affine expression grows with their square."""

MAX_WORD = 1000
"""Characters of a number, or of a name without quotes."""

MAX_WIDTH = 1024
"""Bits of an integer type: every value of one takes so much memory, however short its text is."""

MAX_SHOWN = 60
"""Characters of a string that a message shows."""

MIN_EXPANSION = 1 << 24
"""Characters that a text, its aliases written out, may always have."""

MAX_GROWTH = 16
"""How many times longer than it is a text may become when its aliases are written out, beyond `MIN_EXPANSION`."""

# The alternatives begin with different characters, and none gives back what it has taken: linear in the text. MLIR ends
# a comment at a carriage return too, and skips NUL.
_BLANK = r"(?:[\s\0]++|//[^\n\r]*+)"
_TOKEN = re.compile(
    r"(?P<words>[\w$.%^,:=?@\s\0]++)"
    r"|(?P<comparison>[<>]=)|(?P<open>[(\[{<])|(?P<close>[)\]}>])"
    r'|(?P<string>"(?:[^"\\\n]++|\\.)*+"?)|(?P<comment>//[^\n\r]*+)'
    rf"|(?P<alias>[#!][\w$.-]++)(?P<definition>{_BLANK}*+=(?!=))?"
    rf"|(?P<arrow>->)|(?P<signs>-(?:-(?!>)|{_BLANK})*+)|(?P<operator>[+*])",
    re.DOTALL,
)
_OPERATOR = re.compile(r"\b(?:mod|floordiv|ceildiv)\b")
_LONG_WORD = re.compile(rf"[\w$.?]{{{MAX_WORD + 1}}}")
_MANY_DIGITS = re.compile(r"i\d{4}")
_INTEGER_TYPE = re.compile(r"(?<![\w$.%^@])(?:[\d?x]*x)?[su]?i(\d{4,})(?![\w$.])")
_ESCAPE = re.compile(rb"\\(?:([0-9A-Fa-f]{2})|.)", re.DOTALL)
# What an op begins with or has, and no attribute and no type outside of brackets.
_OP = re.compile(r"[%^]|(?<![\w$.@])(?:module\b|[A-Za-z_][\w$]*\.)")
# A sign after one of these is a number's.
_BEFORE_NUMBERS = (",", "=", ":")
_BEFORE_EXPONENT = re.compile(r"(?<![\w$.%^])\d+(?:\.\d*)?[eE]$")
"""The end of a number before the sign of its exponent; names may end alike."""
_UNCOUNTED = -(1 << 62)
_TOO_DEEP = f"text must nest at most {LIMIT} deep, aliases written out"


@dataclass(frozen=True)
class LimitViolation:
    """The first limit that a text exceeds, and the index of the character where it does."""

    position: int
    message: str


class _LimitError(Exception):
    pass


@dataclass
class _Alias:
    """The expansion of an alias, with the aliases in it expanded; `base` is the depth at which it is defined."""

    base: int = 0
    depth: int = 0
    size: int = 0


def first_violation(text: str) -> LimitViolation | None:
    """The first limit that `text` exceeds; None for a text that MLIR may be given."""
    scanner = _Scanner(max(MIN_EXPANSION, MAX_GROWTH * len(text)))
    take = {
        "words": scanner.words,
        "open": scanner.open,
        "close": scanner.close,
        "alias": scanner.alias,
        "definition": scanner.alias,
        "signs": scanner.signs,
        "operator": scanner.operator,
        "string": scanner.string,
    }
    for token in _TOKEN.finditer(text):
        kind = token.lastgroup or ""
        try:
            if kind in take:
                take[kind](token)
            scanner.count(len(token[0]))
        except _LimitError as error:
            return LimitViolation(token.start(), str(error))
        scanner.previous = token
    return None


class _Scanner:
    """The state between two tokens."""

    def __init__(self, allowed: int) -> None:
        self.previous: re.Match[str] | None = None
        self._allowed = allowed
        self._expanded = 0
        self._operators = [_UNCOUNTED]
        """Of each open bracket, the outermost first: the operators inside. The first entry is for the text itself."""
        self._aliases: dict[str, _Alias] = {}
        self._current: _Alias | None = None
        """The alias whose definition this is; it ends at the latest where something stands that it cannot hold."""

    def words(self, token: re.Match[str]) -> None:
        """Names, numbers and what stands between them."""
        text = token[0]
        if len(text) > MAX_WORD and _LONG_WORD.search(text):
            raise _LimitError(f"a number or a name without quotes must have at most {MAX_WORD} characters")
        for found in _INTEGER_TYPE.finditer(text) if _MANY_DIGITS.search(text) else ():
            if int(found[1]) > MAX_WIDTH:
                raise _LimitError(f"an integer type must have at most {MAX_WIDTH} bits, but got {found[0]}")
        if "mod" in text or "div" in text:
            self._add_operators(len(_OPERATOR.findall(text)))
        if self._current and len(self._operators) - 1 <= self._current.base and _OP.search(text):
            self._current = None

    def open(self, token: re.Match[str]) -> None:
        """An opening bracket."""
        depth = len(self._operators)
        if self._current and depth - 1 <= self._current.base and token[0] == "(" and self._kind() == "string":
            # An op in the generic form.
            self._current = None
        # Between braces stand ops, each with operators of its own.
        self._operators.append(_UNCOUNTED if token[0] == "{" else 0)
        self._check_depth(depth)

    def close(self, token: re.Match[str]) -> None:
        """A closing bracket; MLIR itself complains of one too many."""
        if len(self._operators) > 1:
            self._operators.pop()

    def alias(self, token: re.Match[str]) -> None:
        """An alias that is defined or used, or an attribute or a type of a dialect."""
        depth = len(self._operators) - 1
        if token["definition"]:
            self._current = self._aliases[token["alias"]] = _Alias(depth)
            return
        used = self._aliases.get(token["alias"])
        if used:
            self._check_depth(depth + used.depth)
            self.count(used.size)

    def signs(self, token: re.Match[str]) -> None:
        """Signs in a row, each of which nests as a bracket does, or an operator."""
        if token[0].count("-") > LIMIT:
            raise _LimitError(_TOO_DEEP)
        before = self.previous[0] if self.previous and self._kind() == "words" else ""
        if not before.rstrip().endswith(_BEFORE_NUMBERS) and not _BEFORE_EXPONENT.search(before[-MAX_WORD - 2 :]):
            self._add_operators(1)

    def operator(self, token: re.Match[str]) -> None:
        """An operator that is one character."""
        self._add_operators(1)

    def string(self, token: re.Match[str]) -> None:
        """A string: where its escapes are no UTF-8, the bindings end the process as they read it."""
        text = token[0]
        if "\\" in text and not _is_utf8(text):
            shown = text if len(text) <= MAX_SHOWN else f"{text[:MAX_SHOWN]}..."
            raise _LimitError(f"a string must be UTF-8 text, but got {shown}")

    def count(self, size: int) -> None:
        """Count characters of the text with its aliases written out."""
        self._expanded += size
        if self._current:
            self._current.size += size
        if self._expanded > self._allowed:
            raise _LimitError(f"text must have at most {self._allowed} characters, aliases written out")

    def _kind(self) -> str:
        return (self.previous.lastgroup or "") if self.previous else ""

    def _add_operators(self, count: int) -> None:
        self._operators[-1] += count
        if self._operators[-1] > MAX_OPERATORS:
            raise _LimitError(f"an expression must have at most {MAX_OPERATORS} operators between two brackets")

    def _check_depth(self, depth: int) -> None:
        if depth > LIMIT:
            raise _LimitError(_TOO_DEEP)
        if self._current:
            self._current.depth = max(self._current.depth, depth - self._current.base)


def _is_utf8(text: str) -> bool:
    """Whether a string of MLIR, its escapes resolved, is UTF-8."""
    raw = text.encode("utf-8", "replace")
    try:
        _ESCAPE.sub(lambda escape: bytes.fromhex(escape[1].decode()) if escape[1] else b" ", raw).decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


# MLIR bytecode, read in a process of its own: MLIR's reader takes what it reads for well-formed, and damaged content
# can corrupt its memory.
#
# The child prints the module as text, and this process parses that, with all the checks that texts get.

BYTECODE_MAGIC = b"ML\xefR"
"""The first bytes of MLIR bytecode."""

# Seconds for a start of Python and MLIR, and bytes of bytecode a second on a slow machine.
_START, _RATE = 120, 1_000_000


def text_of(content: bytes, reader: str, flags: Sequence[str]) -> str | None:
    """The text of a module with its locations; None where `content` is damaged.

    `reader`, as ``MODULE:FUNCTION``, gives it in the child, from the content and `flags`. Raises `ChildError` where no
    process can be started.
    """
    try:
        found = answer(reader, content, flags, seconds=_START + len(content) / _RATE)
        return found.decode("utf-8") or None
    except UnicodeDecodeError:
        return None
    except ChildError as error:
        if error.is_crash:
            return None
        raise
