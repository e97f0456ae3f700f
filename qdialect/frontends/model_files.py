"""From a model, in whatever form a user has it, to a module: one entry for each format."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib import import_module
from io import BytesIO
from pathlib import Path, PosixPath
from shutil import rmtree
from tempfile import mkdtemp
from typing import TYPE_CHECKING, Any, cast
from weakref import finalize

from qdialect.arithmetic.profiles import ONNX_PROFILES, TFLITE_PROFILES
from qdialect.frontends import frameworks
from qdialect.frontends.frameworks import Framework
from qdialect.support.diagnostics import Diagnostic, ImportModelError, Severity, printable
from qdialect.support.files import is_regular, write_files
from qdialect.support.heap import return_free_memory
from qdialect.support.late_imports import LATE_IMPORTS
from qdialect.support.options import ImportOptions

if TYPE_CHECKING:
    from onnx import ModelProto
    from torch.export import ExportedProgram

    from qdialect.frontends.building.checks import GraphNode
    from qdialect.frontends.onnx.inlining import RunTimeCondition
    from qdialect.frontends.planning.partition import Division
    from qdialect.ir._mlir import ir

    Model = str | os.PathLike[str] | bytes | bytearray | memoryview | ModelProto | ExportedProgram | ir.Module
    """The forms of a model: the path of a file, its content, an object of its framework, or a module."""

OpenShapes = Mapping[str, Sequence[int | str]]
"""Extents of inputs that are known, and names of those that are not; a name may be empty."""

_ELEMENT = re.compile(r"[x<]([a-z]+[0-9]+)>$")
_QUANTIZED = {f"{sign}i{bits}" for sign in ("", "u") for bits in (2, 4, 8, 16)}


@dataclass(frozen=True)
class Format:
    """A kind of model file.

    `load` gives a verified module, `nodes` the nodes that the file has before anything is imported, `operators` the
    names of the operators that the front end takes, `profiles` those of the arithmetics it knows, its own first.
    `open_shapes` gives the shapes of inputs with names of the extents that a file leaves open; it is None where the
    extents of a format are known.  `divide` gives what of a file `framework` may run; both are None where a format has
    no framework.  `metadata` gives the texts that the author of a file noted in it, by names.  `condition` gives the
    first one that chooses between branches at run time.  The format's own package is loaded when one of them is called.
    """

    suffix: str
    load: Callable[[Path, ImportOptions], ir.Module]
    nodes: Callable[[Path, ImportOptions], Sequence[GraphNode]]
    operators: Callable[[], Sequence[str]]
    profiles: Callable[[], Sequence[str]]
    open_shapes: Callable[[Path, ImportOptions], OpenShapes] | None = None
    framework: Framework | None = None
    divide: Callable[[Path, ImportOptions], Division] | None = None
    metadata: Callable[[Path], Mapping[str, str]] = lambda _: {}
    condition: Callable[[Path, ImportOptions], RunTimeCondition | None] | None = None

    def read(self, path: Path, options: ImportOptions) -> ir.Module:
        """The module of a file.

        Raises `ImportModelError` also for a profile that the format lacks, `InputError` for options that it does not
        use.
        """
        options.check_used(self.suffix, has_extents=self.open_shapes is not None)
        known = self.profiles()
        profile = options.profile or known[0]
        if profile not in known:
            raise ImportModelError(f"profile of a {self.suffix} file must be {' or '.join(known)}, but got '{profile}'")
        module = self.load(path, replace(options, profile=profile))
        if is_regular(path):
            with LATE_IMPORTS:
                from qdialect.ir.module_text import set_metadata

            set_metadata(module, self.about(path))
        return_free_memory()
        return module

    def about(self, path: Path) -> Mapping[str, str]:
        """The texts that a regular file has about itself, by names."""
        return {printable(name): text for name, text in self.metadata(path).items() if name}


def _late(entry: str, *options: str, of_content: bool = False) -> Callable[..., Any]:
    """A function of a front end by its place (``onnx.reader.metadata``), which is loaded at its first call.

    It is given the path of a file, or `of_content` what that holds, and the import options of these names. Its errors
    about a file that a user has begin with the file's name.
    """
    module, _, name = entry.rpartition(".")

    def call(path: Path | None = None, how: ImportOptions | None = None) -> Any:
        with LATE_IMPORTS:
            found = getattr(import_module(f"{__package__}.{module}"), name)
        read = () if path is None else (path.read_bytes() if of_content else path,)
        try:
            return found(*read, **{option: getattr(how, option) for option in options})
        except ImportModelError as error:
            if path is None or isinstance(path, _OwnedFile) or not error.message.startswith("file "):
                raise
            raise type(error)(f"'{path.name}': {error.message}") from error

    return call


_EXTENTS = ("batch", "dims")
_OF_TFLITE, _OF_ONNX, _OF_TORCH = ("signature", *_EXTENTS), ("branches", *_EXTENTS), ("trust", *_EXTENTS)

FORMATS = {
    entry.suffix: entry
    for entry in (
        Format(
            ".mlir",
            _late("tosa.import_tosa"),
            _late("tosa.nodes_of"),
            _late("tosa.supported_operators"),
            lambda: ("tosa",),
        ),
        Format(
            ".tflite",
            _late("tflite.import_tflite", "profile", *_OF_TFLITE),
            _late("tflite.nodes_of", *_OF_TFLITE),
            _late("tflite.supported_operators"),
            lambda: TFLITE_PROFILES,
            _late("tflite.importer.open_shapes", "signature", of_content=True),
            frameworks.LITERT,
            _late("tflite.division.TfliteDivision", "profile", *_OF_TFLITE),
            _late("tflite.flatbuffer.reader.metadata", of_content=True),
        ),
        Format(
            ".onnx",
            _late("onnx.import_onnx", "profile", *_OF_ONNX),
            _late("onnx.nodes_of", *_OF_ONNX),
            _late("onnx.supported_operators"),
            lambda: tuple(ONNX_PROFILES),
            _late("onnx.reader.open_shapes", of_content=True),
            frameworks.ONNX_RUNTIME,
            _late("onnx.division.OnnxDivision", "profile", *_OF_ONNX),
            _late("onnx.reader.metadata", of_content=True),
            _late("onnx.importer.run_time_condition", *_OF_ONNX),
        ),
        Format(
            ".pt2",
            _late("torch.import_torch", *_OF_TORCH),
            _late("torch.nodes_of", *_OF_TORCH),
            _late("torch.supported_operators"),
            lambda: ("pytorch",),
            _late("torch.archive.open_shapes", of_content=True),
            frameworks.PYTORCH,
            _late("torch.division.TorchDivision", *_OF_TORCH),
        ),
    )
}


_IS_TEXT = re.compile(r"\n|\bmodule\b.*\{|func\.func")
# Bytecode of MLIR under the suffix that its own tools give it.
_OTHER_SUFFIXES = {".mlirbc": ".mlir"}


def format_of(path: Path) -> Format:
    """The format of a model file, by its suffix in any case; raises `ImportModelError` for another suffix."""
    suffix = path.suffix.lower()
    suffix = _OTHER_SUFFIXES.get(suffix, suffix)
    if suffix not in FORMATS and _IS_TEXT.search(str(path)):
        way_out = "`qdialect.parse(text)` makes a module of MLIR's text, and `bytes` are the content of a file"
        raise ImportModelError(f"model must be a path, but got a text of {len(str(path))} characters; {way_out}")
    if suffix not in FORMATS:
        *others, last = FORMATS
        kinds = f"{', '.join(others)} or {last}"
        found = f"got '{suffix}'" if suffix else "its name has no suffix"
        raise ImportModelError(f"'{path}' must be a model of kind {kinds}, but {found}")
    return FORMATS[suffix]


def read_model(model: object, options: ImportOptions | None = None) -> ir.Module:
    """The module of a model in any form that `path_or_module` takes; a module is itself.

    Raises `ParseError` and `ImportModelError` for a file that cannot be read, is damaged or has unsupported operations,
    and for a model of another kind.
    """
    found = path_or_module(model)
    return format_of(found).read(found, options or ImportOptions()) if isinstance(found, Path) else found


def open_shapes(path: Path, options: ImportOptions) -> OpenShapes:
    """The shapes of the inputs of a model file that was read before; nothing where they leave no extent open.

    What is no regular file cannot be read again, and so leaves nothing open.
    """
    kind = format_of(path)
    shapes: OpenShapes = kind.open_shapes(path, options) if kind.open_shapes and is_regular(path) else {}
    is_open = any(isinstance(extent, str) for shape in shapes.values() for extent in shape)
    return shapes if is_open else {}


def condition_of(path: Path, options: ImportOptions) -> RunTimeCondition | None:
    """The first condition that a model file leaves to run time; None where it has none, or is no regular file."""
    kind = format_of(path)
    if kind.condition is None or not is_regular(path):
        return None
    options.check_used(kind.suffix, has_extents=kind.open_shapes is not None)
    return kind.condition(path, options)


def is_float32(module: ir.Module) -> bool:
    """Whether a graph computes in float32 and nothing of it is quantized: no op gives integers of 16 bits or less."""
    elements: set[str] = set()
    for function in module.body.operations:
        for op in (op for block in function.operation.regions[0] for op in block):
            found = (_ELEMENT.search(str(result.type)) for result in op.operation.results)
            elements.update(match[1] for match in found if match)
            if not elements.isdisjoint(_QUANTIZED):
                return False
    return "f32" in elements


# A model in the form that a user has it: a path, the content of a file, an object of its framework, or a module.

_EXPORT = (
    "prepared = prepare_pt2e(torch.export.export(model, args).module(), quantizer)  # both of torchao; then call it",
    "program = torch.export.export(convert_pt2e(prepared), args)",
    "executable = qdialect.compile(program)",
)
_ZIP, _BYTECODE, _TFLITE, _ONNX_VERSION = b"PK\3\4", b"ML\xefR", b"TFL3", b"\x08"
"""The first bytes of files; of a .tflite file those from the fifth on."""


class _OwnedFile(PosixPath):
    """The file of a model that was given in memory, which is removed with this object."""


def path_or_module(model: Any) -> Path | ir.Module:
    """The path of a model, which is written to a file if it has none, or the module that it is.

    Keep the path itself for as long as the file is read. Raises `ImportModelError` for anything else.
    """
    if isinstance(model, Path):
        return model
    if isinstance(model, str | os.PathLike):
        return Path(os.fspath(cast("str | os.PathLike[str]", model)))
    if isinstance(model, bytes | bytearray | memoryview):
        content = bytes(cast("bytes", model))
        if not content:
            raise ImportModelError("model must be the content of a file, but got 0 bytes")
        return _owned(content, _suffix_of(content))
    onnx: Any = sys.modules.get("onnx")
    torch: Any = sys.modules.get("torch")
    if onnx is not None and isinstance(model, onnx.ModelProto):
        return _owned(_serialized(model), ".onnx")
    if torch is not None and isinstance(model, torch.export.ExportedProgram):
        content = BytesIO()
        torch.export.save(model, content)
        return _owned(content.getvalue(), ".pt2")
    if torch is not None and isinstance(model, torch.nn.Module | torch.jit.ScriptFunction):
        raise _not_exported(model)
    with LATE_IMPORTS:
        from qdialect.ir._mlir import ir

    if isinstance(model, ir.Module):
        return model
    wanted = "a path, the content of a file, an onnx.ModelProto, a torch.export.ExportedProgram or a module of MLIR"
    raise ImportModelError(f"model must be {wanted}, but got an object of {type(model).__name__}")


def _owned(content: bytes, suffix: str) -> Path:
    folder = mkdtemp(prefix="qdialect-")
    path = _OwnedFile(folder, f"model{suffix}")
    finalize(path, _remove, folder, os.getpid())
    write_files({path: content})
    return path


def _remove(folder: str, process: int) -> None:
    # A forked process has the object too.
    if os.getpid() == process:
        rmtree(folder, ignore_errors=True)


def _suffix_of(content: bytes) -> str:
    if content[4:8] == _TFLITE:
        return ".tflite"
    starts = {_ZIP: ".pt2", _BYTECODE: ".mlirbc", _ONNX_VERSION: ".onnx"}
    suffix = next((suffix for start, suffix in starts.items() if content.startswith(start)), None)
    if suffix is not None:
        return suffix
    try:
        content.decode()
    except UnicodeDecodeError as error:
        kinds = ", ".join((*FORMATS, *_OTHER_SUFFIXES))
        raise ImportModelError(f"bytes must be the content of a file of kind {kinds}, but are of another") from error
    return ".mlir"


def _serialized(model: Any) -> bytes:
    try:
        return model.SerializeToString()
    except Exception as error:
        wanted = "smaller than 2 GiB to be given in memory, larger ones as the path of a file with external data"
        raise ImportModelError(f"onnx.ModelProto must be {wanted}, but got {type(error).__name__}: {error}") from error


def _not_exported(model: object) -> ImportModelError:
    kinds = {"ScriptModule": "TorchScript", "ScriptFunction": "TorchScript", "GraphModule": "a GraphModule"}
    names = (one.__name__ for one in type(model).__mro__)
    found = next((kinds[name] for name in names if name in kinds), "an nn.Module")
    message = f"model of PyTorch must be exported, but got {found} of class {type(model).__name__}"
    what = "the module that it was made of" if found == "TorchScript" else "it"
    lines = (f"with `args`, a tuple of its inputs, this quantizes and exports {what}:", *_EXPORT)
    notes = tuple(Diagnostic(Severity.NOTE, line) for line in lines)
    return ImportModelError(message, (Diagnostic(Severity.ERROR, message, notes=notes),))
