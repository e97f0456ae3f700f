"""Parameters, buffers and constants of an archive: raw bytes with a shape, strides and an offset."""

from __future__ import annotations

import io
import math
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

import numpy as np

from qdialect.dialect.type_constraints import MAX_ELEMENTS
from qdialect.frontends.building.checks import Array
from qdialect.frontends.torch.archive.members import UNLESS_TRUSTED, Field, Members, shown
from qdialect.frontends.torch.program.model import held_dtype
from qdialect.frontends.torch.program.pytorch_operators import array_of, torch_package
from qdialect.frontends.torch.program.reader import is_wrapper

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
