"""The only factory of MLIR contexts, and how their diagnostics become Python errors.

With threads on, a Python verifier and more than one function, the bindings hang in parse, verify and print: contexts
come from here alone, with threads off. `several_threads` turns them on where nothing calls Python.
"""

from __future__ import annotations

import os
import re
from collections.abc import Generator, Hashable, Iterable, Sequence
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path

from qdialect.ir import LOADERS, untrusted_input
from qdialect.ir._mlir import ir
from qdialect.ir.resources import inline
from qdialect.ir.suggestions import with_nearest_op
from qdialect.support.child_processes import ChildError
from qdialect.support.diagnostics import Diagnostic, ParseError, Severity, VerificationError
from qdialect.support.files import read_bytes
from qdialect.support.limits import can_start_threads, check_free_memory, check_stack
from qdialect.support.registry import foreign_modules

_RESOURCE = "dense_resource<"
# The dialects of a graph other than `qnn`; `irdl` describes that one.
_GRAPH_DIALECTS = ("arith", "func", "irdl", "math", "tensor")
_SUFFIXES = (".mlir", ".mlirbc")
_NOWHERE = ("", 0, 0)
_SEVERAL = 2
_ALLOW_UNREGISTERED = "--allow-unregistered-dialect"
_SURROGATE = re.compile("[\ud800-\udfff]")
# An op in a pretty form, where a line or an assignment begins.
_AVAILABLE = re.compile(r"Available dialects: ((?:\w+(?: \(\*\))?(?:, )?)+)")
_PRETTY_OP = re.compile(r'^(?:[^"/\n]*=)?[ \t]*(qnn\.\w)', re.MULTILINE)
_SEVERITIES = {
    ir.DiagnosticSeverity.ERROR: Severity.ERROR,
    ir.DiagnosticSeverity.WARNING: Severity.WARNING,
    ir.DiagnosticSeverity.NOTE: Severity.NOTE,
    ir.DiagnosticSeverity.REMARK: Severity.REMARK,
}


def make_context() -> ir.Context:
    """A context with the dialects of quantized graphs loaded, every upstream dialect available and threads off.

    The parser loads a dialect where it meets it.  Who builds something of another one calls `load_dialects` before: to
    load all takes three times as long as everything else, so that is done for modules from outside alone.
    """
    check_stack()
    check_free_memory()
    context = ir.Context(load_on_create_dialects=())
    context.enable_multithreading(False)
    load_dialects(context, None if foreign_modules() else _GRAPH_DIALECTS)
    for load in LOADERS:
        load(context)
    return context


def load_dialects(context: ir.Context, names: Iterable[str] | None) -> None:
    """Load the dialects `names` into `context`, and every one that it has where `names` is None."""
    if names is None:
        context.load_all_available_dialects()
    for name in names or ():
        context.get_dialect_descriptor(name)


@contextmanager
def several_threads(context: ir.Context, count: int) -> Generator[None]:
    """Let passes work on `count` functions of a module at the same time, inside.

    They must call no Python, which waits for the interpreter lock that the caller holds: they are run without verifying
    what they leave. Diagnostics of several functions come in the order of the functions.
    """
    if count < _SEVERAL or context.get_num_threads() >= _SEVERAL or not can_start_threads(count):
        yield
        return
    cpus = os.sched_getaffinity(0)
    # MLIR has a thread for each CPU that the thread which turns them on may use.
    os.sched_setaffinity(0, sorted(cpus)[:count])
    try:
        context.enable_multithreading(True)
    finally:
        os.sched_setaffinity(0, cpus)
    try:
        yield
    finally:
        context.enable_multithreading(False)


def available_dialects() -> list[str]:
    """The namespaces of all dialects that a context has, in order.

    The bindings do not list them; MLIR's parser names them where it meets an op of a dialect that is not there.
    """
    with make_context():
        try:
            ir.Module.parse("no_dialect_of_this_name.op")
        except ir.MLIRError as error:
            notes = [note.message for info in error.error_diagnostics for note in info.notes]
            found = _AVAILABLE.search(" ".join(notes))
            # A star stands after a dialect that is loaded and was not registered: one that Python defines.
            return [name.removesuffix(" (*)") for name in found[1].split(", ")] if found else []
    return []


def parse(source: str | bytes | Path, context: ir.Context | None = None, file_name: str | None = None) -> ir.Module:
    """Parse MLIR text or bytecode, or the file at a path, into a verified module.

    A `Path`, or a one-line `str` that ends in ``.mlir`` or ``.mlirbc``, is a file to read; any other `str` is MLIR
    text. Bytecode is told by its first bytes. `file_name` is the file in the diagnostics of a text. A `dense_resource`
    whose data the text has becomes a dense constant. Raises `ParseError` with every diagnostic, each with file, line
    and column.
    """
    path = _path_of(source)
    name = file_name or (str(path) if path else "-")
    content = read_bytes(path) if path else source if isinstance(source, bytes) else str(source)
    context = context or make_context()
    bytes_ = content if isinstance(content, bytes) and content.startswith(untrusted_input.BYTECODE_MAGIC) else b""
    text = _bytecode_text(bytes_, context, name) if bytes_ else decoded(content, name)
    _check_text(text, name)
    # Only so do the locations of the ops have the name of their file.  A pipe can be read but once, and the bindings
    # take no name that is not Unicode.
    reread = path if path and path.is_file() and not bytes_ and not _SURROGATE.search(str(path)) else None
    module = _parsed(text, context, name, reread)
    if _RESOURCE in text:
        inline(module)
    return module


def parse_generated(text: str, context: ir.Context, name: str) -> ir.Module:
    """Parse and verify text that this package has written: it is not searched for what would harm MLIR.

    Raises `ParseError`, with `name` for the name of the file.
    """
    return _parsed(text, context, name, None)


def read_bytecode(content: bytes, *flags: str) -> bytes:
    """The text of a module, as UTF-8; empty where `content` is damaged. MLIR may end the process instead."""
    with make_context() as context:
        context.allow_unregistered_dialects = _ALLOW_UNREGISTERED in flags
        try:
            return ir.Module.parse(content).operation.get_asm(enable_debug_info=True).encode()
        except (ir.MLIRError, ValueError):
            return b""


def bytecode(module: ir.Module | ir.Operation) -> bytes:
    """A module, or another op, as MLIR bytecode, locations and constants included."""
    content = BytesIO()
    module.operation.write_bytecode(content)
    return content.getvalue()


def read_text(path: Path) -> str:
    """The text of a file; raises `ParseError` where it cannot be read or is not UTF-8."""
    return decoded(read_bytes(path), str(path))


def decoded(content: str | bytes, name: str) -> str:
    """`content` as text with the line ends of this platform; raises `ParseError` where it is not UTF-8."""
    if isinstance(content, str):
        return content
    try:
        return content.decode("utf-8").replace("\r\n", "\n").replace("\r", "\n")
    except ValueError as error:
        raise ParseError(f"cannot read '{name}': it must be UTF-8 text") from error


def copy(module: ir.Module) -> ir.Module:
    """A copy of `module` in its own context, locations included; both share the data of constants."""
    found = ir.Module.create(module.operation.location)
    for attribute in module.operation.attributes:
        found.operation.attributes[attribute] = module.operation.attributes[attribute]
    with ir.InsertionPoint(found.body):
        for op in module.body.operations:
            op.operation.clone()
    return found


def verify(module: ir.Module) -> None:
    """Check every op of `module`; raises `VerificationError` with the located diagnostics::

    qdialect.verify(module)
    """
    try:
        module.operation.verify()
    except ir.MLIRError as error:
        diagnostics = tuple(map(converted, error.error_diagnostics))
        message = diagnostics[0].message if diagnostics else error.message
        raise VerificationError(message, diagnostics) from error


def converted(info: ir.Diagnostic | ir.DiagnosticInfo, text_name: str = "-") -> Diagnostic:
    """A diagnostic of the bindings as our own; `text_name` stands for the ``-`` of a module parsed from text."""
    file, line, column = location_of(info.location)
    notes = tuple(converted(note, text_name) for note in info.notes)
    message = with_nearest_op(info.message)
    return Diagnostic(_SEVERITIES[info.severity], message, text_name if file == "-" else file, line, column, notes)


def file_location(name: str, line: int = 0, column: int = 0, context: ir.Context | None = None) -> ir.Location:
    """A place in a file, whose name may have bytes that are no UTF-8: they stand there as escapes."""
    return ir.Location.file(name.encode(errors="backslashreplace").decode(), line, column, context)


def location_of(location: ir.Location) -> tuple[str, int, int]:
    """File, line and column that a location starts with; empty and zeros where it names none."""
    # Those of diagnostics come without their class.
    own = ir.Location.from_attr(location.attr, location.context)
    if isinstance(own, ir.FileLineColLoc):
        return own.filename, own.start_line, own.start_col
    return next((found for found in map(location_of, parts_of(own)) if found != _NOWHERE), _NOWHERE)


@contextmanager
def captured_diagnostics(context: ir.Context) -> Generator[list[Diagnostic]]:
    """Collect what is emitted in `context` besides exceptions: warnings, remarks and errors of passes that go on."""
    collected: list[Diagnostic] = []

    def collect(diagnostic: ir.Diagnostic) -> bool:
        collected.append(converted(diagnostic))
        return True

    handler = context.attach_diagnostic_handler(collect)
    try:
        yield collected
    finally:
        handler.detach()


def _path_of(source: str | bytes | Path) -> Path | None:
    if isinstance(source, bytes):
        return None
    names_file = isinstance(source, Path) or ("\n" not in source and source.endswith(_SUFFIXES))
    return Path(source) if names_file else None


def _check_text(text: str, name: str) -> None:
    """Raise `ParseError` for a text that MLIR must not see."""
    violation = untrusted_input.first_violation(text)
    if violation is not None:
        raise _refused(text, violation.position, name, violation.message)
    surrogate = _SURROGATE.search(text)
    if surrogate:
        raise _refused(text, surrogate.start(), name, "text must be Unicode without lone surrogates")


def _parsed(text: str, context: ir.Context, name: str, file: Path | None) -> ir.Module:
    """The module that `text` is; it is read again from `file`, where there is one."""
    with context:
        try:
            return ir.Module.parseFile(str(file)) if file else ir.Module.parse(text)
        except ir.MLIRError as error:
            diagnostics = tuple(converted(info, name) for info in error.error_diagnostics) or (_silent(text, name),)
            raise ParseError(diagnostics[0].message, diagnostics) from error


def _refused(text: str, at: int, name: str, message: str) -> ParseError:
    line, column = _line_and_column(text, at)
    return ParseError(message, (Diagnostic(Severity.ERROR, message, name, line, column),))


def _bytecode_text(content: bytes, context: ir.Context, name: str) -> str:
    try:
        flags = [_ALLOW_UNREGISTERED] if context.allow_unregistered_dialects else []
        text = untrusted_input.text_of(content, f"{__name__}:{read_bytecode.__name__}", flags)
    except ChildError as error:
        raise ParseError(f"cannot read '{name}': MLIR bytecode is read in a process of its own, but {error}") from error
    if text is None:
        message = "MLIR bytecode is damaged, or has ops that break a constraint"
        raise ParseError(message, (Diagnostic(Severity.ERROR, message, name, 1, 1),))
    return text


def _silent(text: str, name: str) -> Diagnostic:
    # The only failure the bindings leave without a word: `qnn.op %x : ...`, an op written in a pretty form.
    message = 'cannot parse: an op of a Python-defined dialect has the generic form only, "qnn.op"(%x) {...} : ...'
    op = _PRETTY_OP.search(text)
    line, column = _line_and_column(text, op.start(1) if op else 0)
    return Diagnostic(Severity.ERROR, message, name, line, column)


def _line_and_column(text: str, at: int) -> tuple[int, int]:
    return text.count("\n", 0, at) + 1, at - text.rfind("\n", 0, at)


def names_of(location: ir.Location) -> tuple[str, ...]:
    """The names in a location, each once: one for an op as a front end built it, more for a fused one."""
    if isinstance(location, ir.NameLoc):
        return (location.name_str,)
    if isinstance(location, ir.FusedLoc):
        return tuple(dict.fromkeys(name for part in location.locations for name in names_of(part)))
    return ()


def parts_of(location: ir.Location) -> list[ir.Location]:
    """The locations that `location` is made of, in order."""
    if isinstance(location, ir.NameLoc):
        return [location.child_loc]
    if isinstance(location, ir.CallSiteLoc):
        return [location.callee, location.caller]
    return list(location.locations) if isinstance(location, ir.FusedLoc) else []


def key_of(location: ir.Location) -> Hashable:
    """A key that is equal for equal locations, also of different contexts."""
    if isinstance(location, ir.FileLineColLoc):
        return location.filename, location.start_line, location.start_col
    name = location.name_str if isinstance(location, ir.NameLoc) else ""
    return type(location), name, tuple(map(key_of, parts_of(location)))


def joined(locations: Sequence[ir.Location]) -> ir.Location:
    """All of `locations`, each once; MLIR flattens those that are fused already.

    The first stays first: it is the one that messages show.
    """
    return ir.Location.fused(list(locations), context=locations[0].context)


def functions(module: ir.Module) -> list[ir.Operation]:
    """The functions of `module`, declarations too."""
    return [op.operation for op in module.body.operations if op.operation.name == "func.func"]


def name_of(function: ir.Operation) -> str:
    """The symbol of a function."""
    return ir.StringAttr(function.attributes["sym_name"]).value


def note_at(op: ir.Operation, text: str) -> Diagnostic:
    """``'name' op text``, at `op`."""
    return Diagnostic(Severity.NOTE, f"'{op.name}' op {text}", *location_of(op.location))
