"""Error types and the grammar of messages.

Grammar, in MLIR's voice: ``'qnn.op' op <what> must be <expected>, but got <actual>``; lower-case, no final period, both
numbers.  Whatever reaches a user is a `QDialectError`; a traceback means a bug in qdialect.

Messages quote names, and a name is any text in a stranger's file: `printable` makes every one of them harmless
to the terminal that shows it, and `bounded` leaves out the middle of what is too long to be read.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import Enum
from typing import ClassVar

_LONGEST_WORD, _LONGEST_MESSAGE = 400, 2000


def printable(text: str) -> str:
    """`text` on one line, with an escape for each character that is not seen or that changes how others are shown.

    These are control characters, line ends, marks of the direction of writing and lone surrogates::

        >>> printable("a\x1b[2J\u202eb")
        'a\\x1b[2J\\u202eb'
    """
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def bounded(message: str) -> str:
    """`message`, `printable`, without the middle of long words and of a long message, whose lengths stand there::

    >>> bounded("name " + "n" * 5000)[170:250]
    'nnnnnnnnnnnnnnnnnnnnnn...(4626 characters)...nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn'
    """
    text = printable(message)
    if len(text) > _LONGEST_WORD:
        text = re.sub(rf"\S{{{_LONGEST_WORD + 1},}}", lambda word: _cut(word[0], _LONGEST_WORD), text)
    return text if len(text) <= _LONGEST_MESSAGE else _cut(text, _LONGEST_MESSAGE)


def _cut(text: str, longest: int) -> str:
    kept = longest // 2 - len("...(1000000 characters)...") // 2
    return f"{text[:kept]}...({len(text) - 2 * kept} characters)...{text[-kept:]}"


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """``, did you mean 'x'?`` with the nearest of `known`; nothing where none is near."""
    close = difflib.get_close_matches(name, list(known), 1)
    return f", did you mean '{close[0]}'?" if close else ""


class Severity(Enum):
    """How bad a diagnostic is; the values are MLIR's own words."""

    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"
    REMARK = "remark"


@dataclass(frozen=True)
class Diagnostic:
    """One message with its location; its text is `bounded`.

    `file`, `line` and `column` are empty or zero where the location is unknown; `notes` hang below the message.
    """

    severity: Severity
    message: str
    file: str = ""
    line: int = 0
    column: int = 0
    notes: tuple[Diagnostic, ...] = field(default=())

    @property
    def location(self) -> str:
        """``file:line:column: ``, empty where it is unknown."""
        return f"{bounded(self.file)}:{self.line}:{self.column}: " if self.file and self.line else ""

    def __str__(self) -> str:
        own = f"{self.location}{self.severity.value}: {bounded(self.message)}"
        return "\n".join([own, *map(str, self.notes)])


class QDialectError(Exception):
    """Base of every error a user can cause; `diagnostics` holds what to print."""

    tells_all: ClassVar[bool] = False
    """Whether ``str()``, which is all that a traceback shows, has the location and, on lines of their own, the notes
    with theirs."""

    def __init__(self, message: str, diagnostics: tuple[Diagnostic, ...] = ()) -> None:
        self.message = bounded(message)
        """The message on one line, without location and notes."""
        self.diagnostics = diagnostics or (Diagnostic(Severity.ERROR, message),)
        told = diagnostics if self.tells_all else ()
        location = next((one.location for one in told if one.message == message), "")
        notes = [f"  {note.location}{bounded(note.message)}" for one in told for note in one.notes]
        super().__init__("\n".join([f"{location}{self.message}", *notes]))

    def render(self) -> str:
        """The text a command prints on stderr: every diagnostic on lines of its own."""
        return "\n".join(map(str, self.diagnostics))


class ParseError(QDialectError):
    """The text is not MLIR, or its ops break a constraint."""

    tells_all = True


class VerificationError(QDialectError):
    """A module built or rewritten in memory breaks a constraint."""


class PassError(QDialectError):
    """A pass could not do its work; the message starts with the pass name."""


class PipelineError(QDialectError):
    """A pipeline text or a pass option is malformed."""


class ImportModelError(QDialectError):
    """A model file is damaged or uses what the front end does not support."""

    tells_all = True


class UnusedBatchError(ImportModelError):
    """A size of the batch was given, and no input of the model leaves its first extent open."""


class CompileError(QDialectError):
    """A module cannot be lowered; the unsupported ops are notes."""

    tells_all = True


NOT_COMPILED = (ImportModelError, CompileError, PassError, VerificationError)
"""The exceptions of any stage between a model file and machine code."""


class RegistrationError(QDialectError):
    """Two definitions claim one name, for example two conversions of one op."""


class InputError(QDialectError):
    """A compiled model was called with arrays it does not take."""


class LoadError(QDialectError):
    """A file is not a compiled network that this machine can load."""


class ExternalCallError(QDialectError):
    """A function of another library that a compiled network calls has failed."""

    tells_all = True
