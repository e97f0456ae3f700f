"""Which fused ops a code generator takes: a function of the user's."""

from __future__ import annotations

import re
from collections.abc import Callable
from importlib import import_module
from operator import attrgetter
from typing import cast

from qdialect.context import location_of
from qdialect.diagnostics import Diagnostic, PassError, PipelineError, Severity
from qdialect.dialect import FusedOp

Predicate = Callable[[FusedOp], bool | str | None]
"""Whether a code generator takes a fused op, or why not as a text; None is for an op that it takes."""

_NAME = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_][\w.]*")


def resolved(predicate: Predicate | str | None, title: str) -> Predicate | None:
    """The function that ``module:function`` names; raises `PipelineError`, which begins with `title`, without one.

    The module is imported as by an import statement.
    """
    if not isinstance(predicate, str):
        return predicate
    if not predicate:
        return None
    if not _NAME.fullmatch(predicate):
        raise PipelineError(f"{title} must be MODULE:FUNCTION, but got '{predicate}'")
    module, _, function = predicate.partition(":")
    try:
        found = cast("object", attrgetter(function)(import_module(module)))
    except Exception as error:  # An import runs the module, which may raise anything.
        raise PipelineError(f"{title} cannot be found: {type(error).__name__}: {error}") from error
    if not callable(found):
        raise PipelineError(f"{title} must be a function, but '{predicate}' is of type {type(found).__name__}")
    return cast("Predicate", found)


def text_of(predicate: Predicate | str | None) -> str:
    """``module:function``, empty without a predicate."""
    if predicate is None or isinstance(predicate, str):
        return predicate or ""
    return f"{predicate.__module__}:{getattr(predicate, '__qualname__', type(predicate).__qualname__)}"


def reason_of(predicate: Predicate, op: FusedOp) -> str | None:
    """Why `op` stays, None where it goes; raises `PassError`, at the op, where the predicate raises or says neither."""
    try:
        answer = cast("object", predicate(op))
    except Exception as error:  # It is the user's code.
        raise _error(op, f"has a predicate that raised {type(error).__name__}: {error}") from error
    if answer is None or answer is True:
        return None
    if answer is False:
        return f"is not taken by {text_of(predicate)}"
    if isinstance(answer, str) and answer:
        return answer
    raise _error(op, f"must have a predicate that returns a bool or a reason, but got {answer!r}")


def _error(op: FusedOp, text: str) -> PassError:
    message = f"qnn-outline-fused: '{op.operation.name}' op {text}"
    return PassError(message, (Diagnostic(Severity.ERROR, message, *location_of(op.operation.location)),))
