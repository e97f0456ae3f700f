"""Checks what an import reads: unsupported ops in one error, interfaces of a model, and a budget for what it makes."""

from __future__ import annotations

import math
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from numpy.typing import NDArray

from qdialect.dialect.constants import elements_attribute
from qdialect.dialect.fields import LARGEST_SCALE, SMALLEST_SCALE
from qdialect.dialect.op_base import BuildError, ConstraintError
from qdialect.dialect.type_constraints import MAX_ELEMENTS
from qdialect.ir._mlir import ir
from qdialect.support.diagnostics import Diagnostic, ImportModelError, QDialectError, Severity
from qdialect.support.files import read_bytes

T = TypeVar("T")
Array = NDArray[Any]
Shape = tuple[int, ...]


class UnsupportedError(Exception):
    """A node uses an operator, option or type that the front end lacks; the text tells which."""


class NoAlternativeError(UnsupportedError):
    """As `UnsupportedError`, where no other arithmetic stands for the framework's."""


@contextmanager
def converting() -> Generator[None]:
    """The last net around the conversion of a node: exceptions other than our own errors become `UnsupportedError`.

    A conversion checks what it reads; what is caught here is a check that it lacks.
    """
    try:
        yield
    except (UnsupportedError, QDialectError, ConstraintError, BuildError):
        raise
    except Exception as error:
        reason = str(error).partition("\n")[0]
        raise UnsupportedError(f"{CONVERSION_FAILED} {type(error).__name__}: {reason}") from error


CONVERSION_FAILED = "conversion failed with"
"""The prefix of the message of an unforeseen error."""


def require(condition: bool, reason: str) -> None:
    """Raise `UnsupportedError` with `reason` unless `condition` holds."""
    if not condition:
        raise UnsupportedError(reason)


def required(value: T | None, reason: str) -> T:
    """`value`; raises `UnsupportedError` with `reason` where there is none."""
    if value is None:
        raise UnsupportedError(reason)
    return value


def axis_in(axis: int, rank: int, what: str = "axis") -> int:
    """The dimension of `rank` that `axis` names, from the end where it is negative; raises `UnsupportedError`."""
    require(-rank <= axis < rank, f"{what} must be in [-{rank}, {rank}), but got {axis}")
    return axis % rank


def axes_in(axes: Sequence[int], rank: int, what: str = "axes") -> list[int]:
    """As `axis_in`, of several."""
    require(all(-rank <= axis < rank for axis in axes), f"{what} must be in [-{rank}, {rank}), but got {list(axes)}")
    return [axis % rank for axis in axes]


def check_scale(scale: float, what: str) -> None:
    """`scale` is one that the dialect can hold; NaN and infinity are not."""
    require(SMALLEST_SCALE <= scale <= LARGEST_SCALE, f"{what} must be in [2^-60, 2^30], but got {scale}")


def check_scales(scales: Sequence[float], what: str) -> None:
    """As `check_scale` for one scale; of several, by channel, those of dead channels may be as small as they like."""
    if len(scales) == 1:
        check_scale(scales[0], what)
    wrong = [scale for scale in scales if not 0 < scale <= LARGEST_SCALE] if len(scales) > 1 else []
    require(not wrong, f"{what} of each channel must be in (0, 2^30], but got {next(iter(wrong), None)}")


def check_profile(profile: str, known: Sequence[str]) -> None:
    """Raise `ImportModelError` unless `profile` is one of `known`."""
    if profile not in known:
        raise ImportModelError(f"profile must be {' or '.join(known)}, but got '{profile}'")


Source = str | Path | bytes
"""A model: the path of its file, or what that holds."""


def content_of(source: Source, name: str) -> tuple[bytes, str]:
    """The bytes of a file and its name; content that was given as bytes is called `name`.

    Raises `ImportModelError` where the file cannot be read.
    """
    if isinstance(source, bytes):
        return source, name
    return read_bytes(Path(source), ImportModelError), Path(source).name


def refuse(name: str, unsupported: Sequence[str | Diagnostic], hints: Sequence[str] = ()) -> None:
    """Raise one `ImportModelError` for the model `name` with a note for whatever is unsupported, then `hints`.

    An entry of `unsupported` is a text or, if it has a location, a note.
    """
    if not unsupported:
        return
    notes = tuple(Diagnostic(Severity.NOTE, one) if isinstance(one, str) else one for one in (*unsupported, *hints))
    texts = [one if isinstance(one, str) else one.message for one in unsupported]
    message = f"'{name}' has {len(unsupported)} unsupported {_nouns(texts)}"
    raise ImportModelError(message, (Diagnostic(Severity.ERROR, message, notes=notes),))


def _nouns(unsupported: Sequence[str]) -> str:
    """The nouns for the texts of `unsupported`, in the plural if they are several."""
    are_tensors = [text.startswith(("input '", "output '")) for text in unsupported]
    plural = "s" if len(unsupported) > 1 else ""
    kinds = (("operation", not all(are_tensors)), ("tensor", any(are_tensors)))
    return " and ".join(f"{noun}{plural}" for noun, is_found in kinds if is_found)


@dataclass(frozen=True)
class GraphNode:
    """A node of a model, as its file has it.

    `title` is how messages call it; `inputs` and `outputs` are names of tensors, and the ops that compute an output are
    located at its name.
    """

    title: str
    kind: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]


@dataclass(frozen=True)
class State:
    """That an argument is a result of the call before, by its number, and what it is in the first call."""

    result: int
    start: Array


@dataclass(frozen=True)
class Interface:
    """An argument or a result of a model; `scale` and `zero_point` are None where it is not quantized per tensor."""

    name: str
    shape: Shape
    element: str
    scale: float | None = None
    zero_point: int | None = None
    state: State | None = None

    def type(self) -> ir.Type:
        """Its tensor type."""
        return ir.RankedTensorType.get(list(self.shape), ir.Type.parse(self.element))

    def attributes(self) -> ir.DictAttr:
        """`qnn.name` and, where they are known, `qnn.scale` and `qnn.zero_point`."""
        found: dict[str, ir.Attribute] = {"qnn.name": ir.StringAttr.get(self.name)}
        if self.scale is not None and self.zero_point is not None:
            found["qnn.scale"] = ir.FloatAttr.get(ir.F64Type.get(), self.scale)
            found["qnn.zero_point"] = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), self.zero_point)
        if self.state is not None:
            found["qnn.state"] = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), self.state.result)
            if self.state.start.tobytes().strip(b"\0"):
                found["qnn.start"] = elements_attribute(self.state.start)
        return ir.DictAttr.get(found)


def interface_attributes(tensors: Sequence[Interface]) -> ir.ArrayAttr:
    """The attributes of all arguments, or of all results, of a function."""
    return ir.ArrayAttr.get([tensor.attributes() for tensor in tensors])


def unsupported_interfaces(
    what: str, tensors: Sequence[Interface], elements: Sequence[str], *, may_be_empty: bool = False
) -> list[str]:
    """Why `tensors` cannot be arguments or results of a function: their types, or shapes of nothing or too much."""
    wanted = f"{', '.join(elements[:-1])} or {elements[-1]}"
    unsupported: list[str] = []
    for tensor in tensors:
        if tensor.element not in elements:
            unsupported.append(f"{what} '{tensor.name}': type must be {wanted}, but got {tensor.element}")
        if 0 in tensor.shape and not may_be_empty:
            unsupported.append(f"{what} '{tensor.name}': shape must not be empty, but got {list(tensor.shape)}")
        if math.prod(tensor.shape) > MAX_ELEMENTS:
            maximum = f"{what} '{tensor.name}': shape must have at most {MAX_ELEMENTS} elements"
            unsupported.append(f"{maximum}, but got {list(tensor.shape)}")
    return unsupported


# How much an import may compute in addition to the content of the file.

_MIN_BYTES = 2**28
_BYTES_FOR_EACH = 16
# A Python integer and its slot in a tuple.
_INDEX_BYTES = 64


@dataclass
class Budget:
    """The bytes of constants and lists of indices that are made while a model is read.

    A few bytes of a file can ask for any number of them (Expand, Tile, Range, a border of a tensor): a model may make
    256 MiB and 16 bytes for each of its own, all its nodes together.
    """

    maximum: int = _MIN_BYTES
    spent: int = 0

    @classmethod
    def of_file(cls, size: int) -> Budget:
        """The budget for a file of `size` bytes."""
        return cls(_MIN_BYTES + _BYTES_FOR_EACH * size)

    def spend_constant(self, shape: Sequence[int], item_size: int) -> None:
        """Account for a constant that is about to be made; raises `UnsupportedError` where it is too large."""
        check_shape(shape, "constant")
        self.spend(math.prod(shape) * item_size, f"a constant of shape {list(shape)}")

    def spend_indices(self, count: int) -> None:
        """Account for a list of `count` indices; raises `UnsupportedError` where that is too many."""
        self.spend(count * _INDEX_BYTES, f"{count} indices")

    def spend(self, count: int, what: str) -> None:
        """Account for `count` bytes; raises `UnsupportedError` where they are not left."""
        left = self.maximum - self.spent
        require(
            count <= left,
            f"constants that a model makes must have at most {self.maximum} bytes, but {left} are left for {what}",
        )
        self.spent += count


def check_shape(shape: Sequence[int], what: str) -> None:
    """Raise `UnsupportedError` where a tensor of `shape` has a negative extent or more than 2^31 - 1 elements."""
    require(all(extent >= 0 for extent in shape), f"{what} must have extents of at least 0, but got {list(shape)}")
    require(is_shape(shape), f"{what} must have at most {MAX_ELEMENTS} elements, but has the shape {list(shape)}")


def is_shape(shape: Sequence[int]) -> bool:
    """Whether a tensor can have the extents `shape`, some of them perhaps zero."""
    return min(shape, default=0) >= 0 and max(math.prod(shape), *shape, 0) <= MAX_ELEMENTS
