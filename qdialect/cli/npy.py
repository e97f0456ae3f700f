"""Reading ``.npy`` files of strangers: nothing is allocated or evaluated before the file is seen to hold it.

The format is NumPy's, ``numpy.lib.format``: a magic number, a version, the header's length, the header as a Python
dictionary, and the elements.
"""

from __future__ import annotations

import ast
import math
import re
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Literal, cast

import numpy as np

from qdialect.support.diagnostics import InputError
from qdialect.support.interface import Array

_MAGIC = b"\x93NUMPY"
_ARCHIVE = b"PK"
_LENGTHS = {1: "<H", 2: "<I", 3: "<I"}
"""How each version of the format writes the length of the header."""

_MAX_HEADER = 10_000
"""NumPy's own limit for what it evaluates."""

_MAX_START = _MAX_HEADER + 12
"""Bytes of the longest header, with what stands before it."""

_CHUNK = 1 << 20
_MAX_RANK = 32
_KINDS = "biuf"
_DTYPE = re.compile(r"[<>|=]?[biuf]\d{1,2}")
# Python 2 wrote so the integers of a shape.
_LONG = re.compile(r"(\d)L\b")


class _DamageError(Exception):
    """A file is not as it must be; the text tells what was expected and what was found."""


@dataclass(frozen=True)
class _Header:
    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    order: Literal["C", "F"]

    @property
    def size(self) -> int:
        return math.prod(self.shape) * self.dtype.itemsize


def read_npy(name: str) -> Array:
    """The array of a ``.npy`` file, with its shape, dtype and byte order.

    Raises `InputError` for a file that cannot be read or is damaged, and for elements that are not numbers.
    """
    try:
        with Path(name).open("rb") as file:
            return _read(file)
    except (OSError, ValueError, _DamageError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise InputError(f"cannot read '{name}' as a .npy file: {reason}") from error


def _read(file: BinaryIO) -> Array:
    content = bytearray(file.read(_MAX_START))
    header, start = _header(bytes(content))
    # The header's size is read chunk by chunk: no more memory is used than the file has bytes.
    while len(content) - start <= header.size and (chunk := file.read(_CHUNK)):
        content += chunk
    found = len(content) - start
    if header.size != found:
        more = " or more" if found > header.size else ""
        raise _DamageError(f"shape {header.shape} of {header.dtype} has {header.size} bytes, but {found}{more} follow")
    return np.frombuffer(content, header.dtype, offset=start).reshape(header.shape, order=header.order)


def _header(content: bytes) -> tuple[_Header, int]:
    """The header, and where the elements start."""
    if content.startswith(_ARCHIVE):
        raise _DamageError("it must be a .npy file, but got an archive of arrays")
    if not content.startswith(_MAGIC):
        raise _DamageError(f"it must begin with {_MAGIC!r}, but begins with {content[: len(_MAGIC)]!r}")
    version = tuple(content[len(_MAGIC) : len(_MAGIC) + 2])
    if len(version) != 2 or version[0] not in _LENGTHS:
        raise _DamageError(f"its version must be 1, 2 or 3, but got {'.'.join(map(str, version)) or 'nothing'}")
    form = _LENGTHS[version[0]]
    start = len(_MAGIC) + 2 + struct.calcsize(form)
    if len(content) < start:
        raise _DamageError("it ends before its header")
    (length,) = struct.unpack_from(form, content, len(_MAGIC) + 2)
    if length > _MAX_HEADER or start + length > len(content):
        allowed = min(_MAX_HEADER, len(content) - start)
        raise _DamageError(f"its header must have at most {allowed} bytes, but claims {length}")
    text = content[start : start + length].decode("utf-8" if version[0] == 3 else "latin-1", "replace")
    return _parsed(text), start + length


def _parsed(text: str) -> _Header:
    try:
        fields: object = ast.literal_eval(_LONG.sub(r"\1", text).strip())
    except (TypeError, ValueError, SyntaxError, MemoryError, RecursionError) as error:
        raise _DamageError("its header must be a dictionary of constants") from error
    if not isinstance(fields, dict) or set(cast("dict[object, object]", fields)) != {"descr", "fortran_order", "shape"}:
        raise _DamageError("its header must have the fields 'descr', 'fortran_order' and 'shape'")
    known = cast("dict[str, object]", fields)
    return _Header(_dtype(known["descr"]), _shape(known["shape"]), "F" if known["fortran_order"] is True else "C")


def _dtype(found: object) -> np.dtype[Any]:
    try:
        dtype = np.dtype(found) if isinstance(found, str) and _DTYPE.fullmatch(found) else None
    except TypeError:
        dtype = None
    if dtype is None or dtype.kind not in _KINDS:
        raise _DamageError(f"its elements must be integers, floats or booleans, but got {found!r}")
    return dtype


def _shape(found: object) -> tuple[int, ...]:
    extents = cast("tuple[object, ...]", found) if isinstance(found, tuple) else None
    if (
        extents is None
        or len(extents) > _MAX_RANK
        or not all(type(extent) is int and extent >= 0 for extent in extents)
    ):
        raise _DamageError(f"its shape must be a tuple of at most {_MAX_RANK} extents, but got {found!r}")
    return cast("tuple[int, ...]", extents)
