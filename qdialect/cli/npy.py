"""Reading ``.npy`` files of strangers: nothing is allocated or evaluated before the file is seen to hold it."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from io import BytesIO
from pathlib import Path
from tokenize import TokenError
from typing import Any, BinaryIO

import numpy as np
from numpy.lib import format as npy

from qdialect.support.diagnostics import InputError
from qdialect.support.interface import Array

_ARCHIVE = b"PK"
_CHUNK = 1 << 20
_MAX_RANK = 32
_KINDS = "biuf"
_Header = tuple[tuple[int, ...], bool, np.dtype[Any]]
_READERS: Mapping[tuple[int, int], Callable[[BinaryIO], _Header]] = {
    (1, 0): npy.read_array_header_1_0,
    (2, 0): npy.read_array_header_2_0,
}


def read_npy(name: str) -> Array:
    """The array of a ``.npy`` file, with its shape, dtype and byte order.

    Raises `InputError` for a file that cannot be read or is damaged, and for elements that are not numbers.
    """
    try:
        with Path(name).open("rb") as file:
            return _read(file)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise InputError(f"cannot read '{name}' as a .npy file: {reason}") from error


def _read(file: BinaryIO) -> Array:
    start = file.read(npy.MAGIC_LEN)
    if start.startswith(_ARCHIVE):
        raise ValueError("it must be a .npy file, but got an archive of arrays")
    shape, is_fortran, dtype = _header(BytesIO(start), file)
    if dtype.kind not in _KINDS or dtype.subdtype:
        raise ValueError(f"its elements must be integers, floats or booleans, but got {dtype}")
    if len(shape) > _MAX_RANK or not all(type(extent) is int and extent >= 0 for extent in shape):
        raise ValueError(f"its shape must be a tuple of at most {_MAX_RANK} extents, but got {shape}")
    content, size = bytearray(), math.prod(shape) * dtype.itemsize
    # The size is read chunk by chunk: no more memory is used than the file has bytes.
    while len(content) <= size and (chunk := file.read(_CHUNK)):
        content += chunk
    if len(content) != size:
        more = " or more" if len(content) > size else ""
        raise ValueError(f"shape {shape} of {dtype} has {size} bytes, but {len(content)}{more} follow")
    return np.frombuffer(content, dtype).reshape(shape, order="F" if is_fortran else "C")


def _header(start: BinaryIO, file: BinaryIO) -> _Header:
    version = npy.read_magic(start)
    if version not in _READERS:
        raise ValueError(f"its version must be 1.0 or 2.0, but got {'.'.join(map(str, version))}")
    try:
        return _READERS[version](file)
    except (TypeError, SyntaxError, MemoryError, RecursionError, TokenError) as error:
        raise ValueError("its header must be a dictionary of constants") from error
