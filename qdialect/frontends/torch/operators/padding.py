"""Plans constant_pad_nd and cat: a number around a tensor, and tensors side by side."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from qdialect.frontends.building.checks import require
from qdialect.frontends.building.slices import Slice
from qdialect.frontends.planning.elementwise import cast_array, element_type, tensor_of, value_of_tensor
from qdialect.frontends.planning.movement import Padding, Slicing, concatenation, joined, joined_shape, move
from qdialect.frontends.planning.planner import Result
from qdialect.frontends.planning.tensors import Tensor
from qdialect.frontends.torch.operators.indexing import axis_of
from qdialect.frontends.torch.operators.movement import moved
from qdialect.frontends.torch.operators.plain import as_element, element_of_result
from qdialect.frontends.torch.operators.registry import Call, as_f32, imports, imports_plain

# constant_pad_nd: a number around a tensor; where the tensor is quantized afterwards, its quantized value.


@imports("constant_pad_nd.default")
def _pad(call: Call) -> Result:
    """Pairs of counts from the last dimension on."""
    source = call.tensor("self")
    pads, rank = call.dimensions("pad"), len(source.shape)
    require(len(pads) % 2 == 0 and len(pads) <= 2 * rank, f"pad must have pairs for {rank} dimensions at most")
    pairs = [(0, 0)] * (rank - len(pads) // 2) + list(zip(pads[::2], pads[1::2], strict=True))[::-1]
    slices = [
        Slice(max(-low, 0), 1, extent + min(low, 0) + min(high, 0))
        for extent, (low, high) in zip(source.shape, pairs, strict=True)
    ]
    require(all(one.count >= 1 for one in slices), f"pad must leave an element of each dimension, but got {list(pads)}")
    number, element = call.argument("value") or 0, element_type(source)
    fill = float(number) if element == "f32" else int(cast_array(np.array(number), element))
    kept = moved(call, as_f32("self", source) if element == "f32" else source, Slicing.of(slices))
    low, high = (tuple(max(pair[end], 0) for pair in pairs) for end in range(2))
    if not any((*low, *high)):
        return kept
    shape = tuple(map(sum, zip(kept.shape, low, high, strict=True)))
    return move(call.plan, call.name, kept, Padding(shape, low, high, fill))


# cat: f32 values side by side, and integers.


def _parts(call: Call) -> Sequence[Tensor]:
    """PyTorch leaves out parts of shape [0], which are caches of no token, whatever rank the others have."""
    given = call.tensors("tensors")
    return [tensor for tensor in given if tuple(tensor.shape) != (0,)] or given


@imports("cat.default", "concat.default")
def _cat(call: Call) -> Result:
    parts = [as_f32("tensors", tensor) for tensor in _parts(call)]
    axis = axis_of(call, len(parts[0].shape))
    return concatenation(call.plan, call.name, joined(parts, axis, call.name))


@imports_plain("cat.default", "concat.default")
def _cat_of_integers(call: Call) -> Result:
    """Each part in the type of the result."""
    element = element_of_result(call)
    values = [value_of_tensor(call, as_element(call, tensor, element)) for tensor in _parts(call)]
    axis = axis_of(call, len(values[0].shape))
    shape = joined_shape([value.shape for value in values], axis)
    return tensor_of(
        call.plan.ordered(call.name, shape, element, values, lambda emitter, held: emitter.concatenate(held, axis))
    )
