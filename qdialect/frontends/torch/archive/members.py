"""Reads the members of a `.pt2` archive, a zip file: checked values of those that are JSON, and tensors."""

from __future__ import annotations

import io
import json
import math
import re
import stat
import zipfile
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import PurePosixPath
from typing import Any, NoReturn, cast

import numpy as np

from qdialect.dialect.type_constraints import MAX_ELEMENTS
from qdialect.frontends.building.checks import Array
from qdialect.frontends.torch.program.model import held_dtype
from qdialect.frontends.torch.program.pytorch_operators import array_of, torch_package
from qdialect.frontends.torch.program.reader import is_wrapper
from qdialect.support.diagnostics import ImportModelError

# Values of a JSON file with where they stand in it, so that each is checked before it is used.

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
            try:
                return float(self.value)
            except OverflowError:
                return self._expected("a number")
        return self.value if isinstance(self.value, float) else self._expected("a number")

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
        # The text after the first sentence repeats it for the nesting.
        raise ImportModelError(f"member '{member}' must be JSON: {shown(str(error))}") from error


# The members of a `.pt2` archive: a zip file whose members are stored as they are.
#
# PyTorch writes members without compression.  So a member is never larger than the file, and all of them together are
# neither, which is checked: no allocation follows a size that the file merely declares.

UNLESS_TRUSTED = "unless it is trusted (--trust-pt2, trust=True)"
"""How messages call the way to load what cannot be read safely."""
# The program in the format before this one.
_BEFORE = "serialized_exported_program.json"
_ENCRYPTED = 1


class Members:
    """The members by their names below the archive's one folder; each is read when it is asked for."""

    def __init__(self, content: bytes) -> None:
        """Raises `ImportModelError` for a file that is no zip file, or one that PyTorch does not write."""
        try:
            self._archive = zipfile.ZipFile(io.BytesIO(content))
        except Exception as error:
            # The package raises whatever reading damaged fields raises.
            raise ImportModelError(f"file must be a zip archive: {shown(str(error))}") from error
        _check_format(self._archive.namelist())
        entries = [entry for entry in self._archive.infolist() if not entry.is_dir()]
        _check(entries, len(content))
        self._entries = {entry.filename.partition("/")[2]: entry for entry in entries}
        roots = {entry.filename.partition("/")[0] for entry in entries}
        if len(roots) > 1:
            raise ImportModelError(f"archive must have one folder, but got {len(roots)}")

    def __contains__(self, name: str) -> bool:
        return name in self._entries

    def read(self, name: str) -> bytes:
        """The content of a member; raises `ImportModelError` where it is missing, compressed or damaged."""
        entry = self._entries.get(name)
        if entry is None:
            raise ImportModelError(f"member '{shown(name)}' is missing")
        if entry.flag_bits & _ENCRYPTED:
            raise ImportModelError(f"member '{shown(name)}' must not be encrypted")
        if entry.compress_type != zipfile.ZIP_STORED or entry.file_size != entry.compress_size:
            raise ImportModelError(f"member '{shown(name)}' must be stored without compression")
        try:
            return self._archive.read(entry)
        except Exception as error:
            # The package raises whatever reading damaged fields raises.
            raise ImportModelError(f"member '{shown(name)}' is damaged: {shown(str(error))}") from error

    def json(self, name: str) -> Field:
        """A member that is JSON."""
        return parse_json(self.read(name), name)


def _check(entries: Iterable[zipfile.ZipInfo], size: int) -> None:
    """Every name is a path below the archive's folder, once, and what is stored lies in the file."""
    names: set[str] = set()
    total = 0
    for entry in entries:
        name = shown(entry.filename)
        parts = PurePosixPath(entry.filename).parts
        if ".." in parts or entry.filename.startswith("/") or "\\" in entry.orig_filename or len(parts) < 2:
            raise ImportModelError(f"member '{name}' must have a path below the archive's folder")
        if stat.S_ISLNK(entry.external_attr >> 16):
            raise ImportModelError(f"member '{name}' must be a file, but is a link")
        if entry.filename in names:
            raise ImportModelError(f"member '{name}' must be there once")
        names.add(entry.filename)
        total += entry.compress_size
    if total > size:
        raise ImportModelError(f"members must lie apart in a file of {size} bytes, but have {total} bytes together")


def _check_format(names: Iterable[str]) -> None:
    if _BEFORE in names:
        raise ImportModelError(f"archive must be of PyTorch 2.8 or later, {UNLESS_TRUSTED}: those before hold pickles")


DTYPES = {
    1: "uint8",
    2: "int8",
    3: "int16",
    4: "int32",
    5: "int64",
    6: "float16",
    7: "float32",
    8: "float64",
    9: "complex32",
    10: "complex64",
    11: "complex128",
    12: "bool",
    13: "bfloat16",
    28: "uint16",
    29: "float8_e4m3fn",
    30: "float8_e5m2",
    31: "float8_e4m3fnuz",
    32: "float8_e5m2fnuz",
    33: "float8_e8m0fnu",
    34: "uint32",
    35: "uint64",
}
"""PyTorch's names of element types by their numbers in archives."""
_RAW = frozenset(DTYPES.values()) - {"complex32"}
_STRIDED = 7
# As NumPy's.
_MAX_DIMENSIONS = 32
_FOLDERS = ("data/weights", "data/constants")


def dtype_name(code: Field) -> str:
    """PyTorch's name of an element type."""
    number = code.integer()
    return DTYPES[number] if number in DTYPES else code.refuse(f"must be an element type, but got {number}")


def declared_extent(size: Field) -> int | str:
    """A size, or the expression of one that is open."""
    kind, value = size.union()
    return value["expr_str"].text() if kind == "as_expr" else extent(size)


def extent(size: Field) -> int:
    """A size, stride or offset that is known."""
    kind, value = size.union()
    if kind != "as_int":
        found = value.get("expr_str") if kind == "as_expr" else None
        size.refuse(f"must be a known extent, but got {shown(found.text()) if found is not None else kind}")
    if value.integer() < 0:
        value.refuse(f"must not be negative, but got {value.integer()}")
    return value.integer()


@dataclass
class Weights:
    """Reads the tensors of an archive by their names in the program."""

    members: Members
    payloads: dict[str, bytes] = field(default_factory=dict[str, bytes])

    def __post_init__(self) -> None:
        self._entries = {name: entry for folder in reversed(_FOLDERS) for name, entry in self._config(folder)}

    def _config(self, folder: str) -> Iterator[tuple[str, tuple[str, Field]]]:
        kind = folder.rpartition("/")[2]
        config = self.members.json(f"{folder}/model_{kind}_config.json")
        for name, entry in config["config"].entries():
            yield name, (folder, entry)

    def place(self, name: str) -> str:
        """The member with the payload of a tensor; several may have the same."""
        folder, entry = self._entries[name]
        return f"{folder}/{entry['path_name'].text()}"

    def tensor(self, name: str, reader: Field) -> Any:
        """The array of a tensor, read-only; `reader` is the part of the program that asks for it.

        Tensors of one payload share its memory.  One that is made of others, such as torchao's weights, is given as it
        is; it is pickled, and read by PyTorch's loader of weights, which makes nothing but tensors.  Raises
        `ImportModelError` for one that needs more, lies outside of its payload, or has more elements than that.
        """
        if name not in self._entries:
            reader.refuse(f"must name a tensor of the archive, but got '{shown(name)}'")
        member, (_, entry) = self.place(name), self._entries[name]
        if member not in self.payloads:
            self.payloads[member] = self.members.read(member)
        payload = self.payloads[member]
        return _pickled(payload, entry) if entry["use_pickle"].boolean() else _strided(payload, entry["tensor_meta"])


def _pickled(payload: bytes, entry: Field) -> Any:
    torch: Any = torch_package()
    with suppress(ImportError):
        # It tells PyTorch which of its classes are no more than tensors.
        import_module("torchao.quantization")
    try:
        found = torch.load(io.BytesIO(payload), map_location="cpu", weights_only=True)
    except Exception:
        # The loader raises whatever reading damaged fields raises.
        found = None
    if not isinstance(found, torch.Tensor):
        entry["use_pickle"].refuse(f"must be false, {UNLESS_TRUSTED}: loading a pickle can run any code")
    return found if is_wrapper(found) else array_of(found)


def part_of(tensor: Any, attribute: str) -> Any:
    """A tensor of which another is made, as an array where it is plain; None where there is none of this name."""
    if tensor is None or attribute not in tensor.__tensor_flatten__()[0]:
        return None
    found = getattr(tensor, attribute)
    return found if is_wrapper(found) else array_of(found)


def _strided(payload: bytes, meta: Field) -> Array:
    name = dtype_name(meta["dtype"])
    if name not in _RAW:
        meta["dtype"].refuse(f"must not be {name}")
    if meta["layout"].integer() != _STRIDED:
        meta["layout"].refuse(f"must be {_STRIDED}, but got {meta['layout'].integer()}")
    dtype = held_dtype(name)
    if len(payload) % dtype.itemsize:
        meta.refuse(f"must have whole elements of {name}, but its member has {len(payload)} bytes")
    flat = np.frombuffer(payload, dtype)
    shape, strides = (tuple(extent(size) for size in meta[part].items()) for part in ("sizes", "strides"))
    _check_layout(meta, shape, strides, flat.size)
    if 0 in shape:
        return np.zeros(shape, dtype)
    steps = tuple(stride * dtype.itemsize for stride in strides)
    begin = flat[extent(meta["storage_offset"]) :]
    return np.lib.stride_tricks.as_strided(begin, shape, steps, writeable=False)


def _check_layout(meta: Field, shape: tuple[int, ...], strides: tuple[int, ...], held: int) -> None:
    """The elements are among the `held` ones of the payload, and none is repeated so that there are more."""
    if len(strides) != len(shape):
        meta.refuse(f"must have a stride for each of {len(shape)} sizes, but got {len(strides)}")
    if len(shape) > _MAX_DIMENSIONS:
        meta.refuse(f"must have at most {_MAX_DIMENSIONS} dimensions, but got {len(shape)}")
    known = math.prod(size for size in shape if size)
    if known > MAX_ELEMENTS:
        meta.refuse(f"must have at most {MAX_ELEMENTS} elements, but got {known}")
    if 0 in shape:
        return
    count, last = 1, extent(meta["storage_offset"])
    for size, stride in zip(shape, strides, strict=True):
        count *= size
        last += (size - 1) * stride
    if count > held or last >= held:
        meta.refuse(f"must lie among the {held} elements of its member, but has {count}, the last at {last}")
