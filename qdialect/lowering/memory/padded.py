"""Tensors that are padded: each is written into the middle of the padded one, whose border is all that is left."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from qdialect._mlir import ir
from qdialect.dialect import PadOp
from qdialect.dialect.type_constraints import shape_of
from qdialect.lowering.memory.storage import Storage, image_shape


@dataclass(frozen=True)
class Middle:
    """Where the data of a padded tensor is: its layout, and the elements of the buffer before it."""

    storage: Storage
    offset: int


def padding_reader(value: ir.Value) -> PadOp | None:
    """The op that pads `value`, where nothing else reads it."""
    uses = list(value.uses)
    if len(uses) != 1:
        return None
    reader = uses[0].owner
    view = reader.opview if isinstance(reader, ir.Operation) else reader
    return view if isinstance(view, PadOp) and shape_of(value.type) else None


def middle_of(pad: PadOp, storage: Storage) -> Middle | None:
    """The data inside the result of `pad`, which is stored as `storage`; None where no layout describes it.

    Images have their border as a halo.  Of other tensors, the data is one stretch of rows where the first dimension of
    several entries alone is padded.
    """
    inner, outer = shape_of(pad.input.type), shape_of(pad.output.type)
    padded = [axis for axis in range(len(inner)) if pad.low[axis] or pad.high[axis]]
    image = image_shape(inner)
    if len(inner) == 4:
        if set(padded) - {1, 2} or any(storage.halo):
            return None
        halo = (pad.low[1], pad.low[2], pad.high[1], pad.high[2])
        return Middle(Storage(image, storage.element, storage.pitch, halo), 0)
    axis = padded[0] if len(padded) == 1 else -1
    if not 0 <= axis < len(inner) - 1 or prod(outer[:axis]) != 1:
        return None
    row = prod(outer[axis + 1 : -1]) * storage.pitch
    return Middle(Storage(image, storage.element, storage.pitch), pad.low[axis] * row)
