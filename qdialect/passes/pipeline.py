"""The pass manager: text pipelines that mix our passes with every upstream one.

``builtin.module(qnn-fuse-bias,func.func(cse),qnn-decompose{x=1})`` is such a text."""

from __future__ import annotations

import functools
import re
import sys
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Self, TypeVar, cast

from qdialect.ir._mlir import ir, passmanager
from qdialect.ir.context import converted, load_dialects, location_of, make_context, verify
from qdialect.ir.module_text import Printing
from qdialect.ir.suggestions import UPSTREAM_PASSES
from qdialect.passes import observers, options
from qdialect.passes.registry import CompositePass, Pass, all_passes, lookup
from qdialect.support.diagnostics import Diagnostic, PassError, PipelineError, QDialectError, Severity, did_you_mean

# Our passes work on modules and run here; an upstream pass goes to MLIR's pass manager, with the ops it is nested in.
# Each runs on its own, so that a failure can be told with the name of the pass.

Result = TypeVar("Result")

_IS_LIBRARY = re.compile(r"[\\/](?:site-packages|lib[\\/]python3)[\\/.]")
# The message of MLIR's parser for an unknown name.
_UNKNOWN = "does not refer to a registered pass"


@dataclass(frozen=True)
class UpstreamPass:
    """A pass of MLIR itself: its name, its options as text, and the ops it is nested in, outermost first."""

    name: str
    options: str = ""
    anchors: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"{self.name}{{{self.options}}}" if self.options else self.name

    def manager(self, context: ir.Context) -> passmanager.PassManager:
        """MLIR's pass manager for this pass alone; raises `ValueError` where MLIR refuses it."""
        return passmanager.PassManager.parse(f"builtin.module({joined([(self.anchors, str(self))])})", context)


class PassManager:
    """A list of passes to run on a module::

        manager = PassManager("fuse-qnn", "func.func(cse)", MyPass())
        manager.run(module)

    A text names passes of the project, of plugins and of MLIR. With `verify` the module is verified after each pass.
    Raises `PipelineError` as `parse` does.
    """

    def __init__(self, *passes: Pass | str, verify: bool = True) -> None:
        self._passes: list[Pass | UpstreamPass] = []
        self._verify = verify
        self._printers: list[observers.IRPrinter] = []
        self._is_timed = False
        for one in passes:
            self.add(one)

    @classmethod
    def parse(cls, text: str, *, verify: bool = True) -> Self:
        """The passes of a text such as ``builtin.module(qnn-fuse-bias,func.func(cse))``.

        The outer ``builtin.module`` may be left out.  Raises `PipelineError`, with the column, for a malformed text, an
        unknown pass, an option that a pass does not take, and a pass of ours below another op than the module.
        """
        return cls(text, verify=verify)

    def add(self, one: Pass | str) -> Self:
        """Append a pass, or the passes of a text; raises `PipelineError` as `parse` does."""
        if isinstance(one, Pass):
            self._passes.append(one)
        elif not isinstance(cast("object", one), str):
            raise PipelineError(f"pass must be a text or a pass, but got an object of {type(one).__name__}")
        else:
            self._passes += map(_pass_of, elements(one))
        return self

    def run(self, module: ir.Module) -> None:
        """Run the passes on `module` in place.

        Raises `PassError`, whose message starts with the name of the pass, when a pass fails or leaves an invalid
        module; its diagnostics are located, and `__cause__` is the exception that the pass raised.
        """
        if not hasattr(module, "context"):
            wanted = "a module, which qdialect.parse makes of a text"
            raise PipelineError(f"passes must run on {wanted}, but got an object of {type(module).__name__}")
        timer = observers.Timer()
        with module.context, observers.observing(*self._printers, *([timer] if self._is_timed else [])):
            try:
                for one in self._passes:
                    self._run_pass(one, module)
            finally:
                if self._is_timed:
                    print(timer.report(), file=sys.stderr)

    def enable_ir_printing(
        self,
        print_before_all: bool = False,
        print_after_all: bool = True,
        print_module_scope: bool = False,
        print_after_change: bool = False,
        print_after_failure: bool = False,
        large_elements_limit: int | None = None,
        large_resource_limit: int | None = None,
        enable_debug_info: bool = False,
        print_generic_op_form: bool = False,
        tree_printing_dir_path: str | None = None,
    ) -> None:
        """Print the module on stderr around every pass, as the method of this name of MLIR's pass manager does.

        Of a pass that is nested in other ops, such as ``func.func(cse)``, each of these ops is printed by itself, or
        with `print_module_scope` the whole module once. With `print_after_change` an op is printed only where the pass
        has changed it, with `print_after_failure` only the module that a failed pass has left. The limits are the
        elements of a constant and the characters of a resource above which its data is left out. With
        `tree_printing_dir_path` every print is a file below this folder.
        """
        printing = Printing(
            large_elements_limit=large_elements_limit,
            large_resource_limit=large_resource_limit,
            enable_debug_info=enable_debug_info,
            print_generic_op_form=print_generic_op_form,
        )
        self._printers.append(
            observers.IRPrinter(
                before_all=print_before_all,
                after_all=print_after_all,
                only_changed=print_after_change,
                on_failure=print_after_failure,
                module_scope=print_module_scope,
                printing=printing,
                folder=Path(tree_printing_dir_path) if tree_printing_dir_path else None,
            )
        )

    def enable_timing(self) -> None:
        """Print the wall time of each pass in seconds, and its share, on stderr at the end of `run`."""
        self._is_timed = True

    def __len__(self) -> int:
        return len(self._passes)

    def __str__(self) -> str:
        parts = [(one.anchors if isinstance(one, UpstreamPass) else (), str(one)) for one in self._passes]
        return f"builtin.module({joined(parts)})"

    def _run_pass(self, one: Pass | UpstreamPass, module: ir.Module) -> None:
        watching = observers.active()
        observed = _observed(one)
        for observer in watching:
            observer.before(observed, module)
        if isinstance(one, CompositePass):
            for part in _guarded(one.name, module, one.passes):
                self._run_pass(part, module)
        else:
            self._run_simple(one, module)
        for observer in reversed(watching):
            observer.after(observed, module)

    def _run_simple(self, one: Pass | UpstreamPass, module: ir.Module) -> None:
        try:
            if isinstance(one, Pass):
                _guarded(one.name, module, lambda: self._run_own(one, module))
            else:
                _guarded(one.name, module, lambda: self._run_upstream(one, module))
        except PassError:
            for observer in observers.active():
                observer.failed(_observed(one), module)
            raise

    def _run_own(self, one: Pass, module: ir.Module) -> None:
        load_dialects(module.context, one.dependent_dialects)
        one.run(module)
        if self._verify:
            verify(module)

    def _run_upstream(self, one: UpstreamPass, module: ir.Module) -> None:
        manager = one.manager(module.context)
        manager.enable_verifier(self._verify)
        manager.run(module.operation)


def _observed(one: Pass | UpstreamPass) -> observers.Observed:
    anchors = one.anchors if isinstance(one, UpstreamPass) else ()
    return observers.Observed(one.name, isinstance(one, CompositePass), anchors)


def pass_names() -> list[str]:
    """The names of our passes and of those of MLIR that are suggested."""
    return [*all_passes(), *UPSTREAM_PASSES]


def is_known(name: str) -> bool:
    """Whether there is a pass of this name, ours or upstream's."""
    try:
        return bool(lookup(name) or UpstreamPass(name).manager(_scratch_context()))
    except ValueError as error:
        return _UNKNOWN not in str(error)


def _guarded(name: str, module: ir.Module, work: Callable[[], Result]) -> Result:
    """The result of `work`; whatever it raises becomes a `PassError` of the pass `name`."""
    try:
        return work()
    except QDialectError as error:
        raise _failure(name, module, error.diagnostics) from error
    except ir.MLIRError as error:
        raise _failure(name, module, tuple(map(converted, error.error_diagnostics))) from error
    except Exception as error:
        problem = Diagnostic(Severity.ERROR, f"{type(error).__name__}: {error}", notes=_raised_at(error))
        raise _failure(name, module, (problem,)) from error


def _raised_at(error: Exception) -> tuple[Diagnostic, ...]:
    """Where an exception that is not ours was raised: the line of a plugin, for one."""
    frames = traceback.extract_tb(error.__traceback__)
    if not frames:
        return ()
    # The pass itself rather than a library that it calls.
    own = [frame for frame in frames if not _IS_LIBRARY.search(frame.filename)] or frames
    last = own[-1]
    text = f"raised here, in '{last.name}'"
    return (Diagnostic(Severity.NOTE, text, last.filename, last.lineno or 1, (last.colno or 0) + 1),)


def _failure(name: str, module: ir.Module, diagnostics: Sequence[Diagnostic]) -> PassError:
    """The error whose first diagnostic starts with `name` and has a line, the module's where it lacks one."""
    first, *others = diagnostics or (Diagnostic(Severity.ERROR, "failed without a message"),)
    if not first.line:
        file, line, column = location_of(module.operation.location)
        first = replace(first, file=file, line=max(line, 1), column=max(column, 1))
    message = first.message if first.message.startswith(f"{name}: ") else f"{name}: {first.message}"
    return PassError(message, (replace(first, message=message), *others))


def _pass_of(element: Element) -> Pass | UpstreamPass:
    own = lookup(element.name)
    if own is None:
        return _upstream(element)
    if element.anchors:
        raise element.error(f"'{element.name}' works on a module, so it cannot be nested in '{element.anchors[-1]}'")
    try:
        return own.from_options(options.split(element.options))
    except PipelineError as error:
        raise element.error(error.message) from error


def _upstream(element: Element) -> UpstreamPass:
    one = UpstreamPass(element.name, element.options, element.anchors)
    try:
        one.manager(_scratch_context())
    except ValueError as error:
        raise element.error(_reason(element, str(error))) from error
    return one


def _reason(element: Element, complaint: str) -> str:
    """The problem with an upstream pass, from the output of MLIR's parser."""
    if _UNKNOWN in complaint:
        return f"unknown pass '{element.name}'{did_you_mean(element.name, pass_names())}"
    first = next((line for line in complaint.splitlines() if line.strip()), f"MLIR refuses '{element.name}'")
    return first.removeprefix("<Pass-Options-Parser>: ")


@functools.cache
def _scratch_context() -> ir.Context:
    """Where upstream passes are looked up while there is no module yet."""
    return make_context()


# The text form of pipelines: ``builtin.module(qnn-fuse-bias,func.func(cse),qnn-decompose{x=1})``.
#
# Upstream's parser cannot know passes written in Python, so the text is taken apart here.  Grammar::
#
#     pipeline = element ("," element)*
#     element  = name ["{" options "}"]  |  anchor "(" pipeline ")"

# The file name of the text in diagnostics.
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
