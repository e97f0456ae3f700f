"""Runs PyTorch's own operators on arrays: to fold constants, and to fill in tables.

Only operators of a fixed list are run: those that compute their result from their operands and from nothing else, in
memory of their own, in time that grows with the elements they read and write.  They are called by their names in
PyTorch's registry; nothing that a program carries is called.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from qdialect.frontends.building.checks import Array, Budget, UnsupportedError, require
from qdialect.frontends.torch.program import pytorch_operators
from qdialect.frontends.torch.program.model import Node, Ref, held_element

_ELEMENTWISE = """
    __and__.Tensor __or__.Tensor abs.default acos.default acosh.default add.Scalar add.Tensor
    addcmul.default asin.default asinh.default atan.default atan2.default atanh.default bitwise_and.Scalar
    bitwise_and.Tensor bitwise_not.default bitwise_or.Scalar bitwise_or.Tensor bitwise_xor.Tensor
    ceil.default celu.default clamp.Tensor clamp.default clamp_max.Tensor clamp_max.default clamp_min.Tensor
    clamp_min.default cos.default cosh.default digamma.default div.Scalar div.Scalar_mode div.Tensor
    div.Tensor_mode elu.default eq.Scalar eq.Tensor erf.default erfc.default erfinv.default exp.default
    exp2.default expm1.default floor.default floor_divide.Scalar floor_divide.default fmod.Scalar
    fmod.Tensor frac.default ge.Scalar ge.Tensor gelu.default gt.Scalar gt.Tensor hardshrink.default
    hardsigmoid.default hardswish.default hardtanh.default i0.default isinf.default isnan.default le.Scalar
    le.Tensor leaky_relu.default lerp.Scalar lgamma.default log.default log10.default log1p.default
    log2.default log_sigmoid.default logical_and.default logical_not.default logical_or.default
    logical_xor.default logit.default lt.Scalar lt.Tensor masked_fill.Scalar maximum.default minimum.default
    mish.default mul.Scalar mul.Tensor ne.Scalar ne.Tensor neg.default pow.Scalar pow.Tensor_Scalar
    pow.Tensor_Tensor reciprocal.default relu.default relu6.default remainder.Scalar remainder.Tensor
    round.default rsqrt.default rsub.Scalar rsub.Tensor selu.default sigmoid.default sign.default
    silu.default sin.default sinc.default sinh.default softplus.default softshrink.default sqrt.default
    square.default sub.Scalar sub.Tensor tan.default tanh.default threshold.default trunc.default
    where.Scalar where.ScalarOther where.ScalarSelf where.self
"""
# `detach_` changes what autograd knows of a tensor, not its elements.
_MOVING = """
    _unsafe_view.default alias.default cat.default clone.default concat.default constant_pad_nd.default
    contiguous.default detach.default detach_.default embedding.default expand.default expand_as.default
    flatten.using_ints flip.default index_select.default lift_fresh.default lift_fresh_copy.default
    narrow.default numpy_T.default permute.default repeat.default reshape.default select.int slice.Tensor
    squeeze.default squeeze.dim squeeze.dims stack.default swapaxes.default t.default tile.default transpose.int
    tril.default triu.default unflatten.int unsqueeze.default view.default view_as.default
"""
_REDUCING = """
    _log_softmax.default _softmax.default amax.default amin.default cumprod.default cumsum.default log_softmax.int
    mean.default mean.dim prod.default prod.dim_int softmax.int sum.default sum.dim_IntList
"""
_CREATING = """
    arange.default arange.start arange.start_step eye.default eye.m full.default full_like.default
    linspace.default ones.default ones_like.default scalar_tensor.default zeros.default zeros_like.default
"""
_CONVERTING = "_to_copy.default to.dtype to.dtype_layout to.device to.other type_as.default"
# By the operand whose last dimension is summed over.
_MULTIPLYING = {
    "aten.addmm.default": "mat1",
    "aten.bmm.default": "self",
    "aten.linear.default": "input",
    "aten.matmul.default": "self",
    "aten.mm.default": "self",
}
_QUANTIZING = """
    quantize_per_tensor.default quantize_per_tensor.tensor quantize_per_tensor.tensor2 quantize_per_channel.default
"""
FOLDABLE = frozenset(
    [
        *(
            f"aten.{name}"
            for names in (_ELEMENTWISE, _MOVING, _REDUCING, _CREATING, _CONVERTING)
            for name in names.split()
        ),
        *_MULTIPLYING,
        *(f"quantized_decomposed.{name}" for name in _QUANTIZING.split()),
    ]
)
"""The operators that may be run, by their names with overload."""


def fold(node: Node, arrays: Mapping[str, Array], budget: Budget) -> Array:
    """The result of a node of known operands.

    Its shape is found first, by the operator itself on tensors without memory, and taken from the `budget`.  Raises
    `UnsupportedError` for an operator that is not `FOLDABLE`, one that fails, and where the budget is exceeded.
    """
    result = _call(node, arrays, "meta")
    # A tensor without elements can have extents beyond any memory all the same.
    elements = math.prod(max(extent, 1) for extent in result.shape)
    if node.kind in _MULTIPLYING:
        operand = node.arguments[_MULTIPLYING[node.kind]]
        elements *= arrays[operand.name].shape[-1] if isinstance(operand, Ref) else 1
    read = sum(array.nbytes for array in arrays.values())
    budget.spend(elements * result.element_size() + read, "a constant that a node computes")
    return evaluate(node, arrays)


def evaluate(node: Node, arrays: Mapping[str, Array]) -> Array:
    """The result of a node, with `arrays` in place of the tensors that it reads.

    Raises `UnsupportedError` for an operator that is not `FOLDABLE`, and one that fails.
    """
    result = _call(node, arrays, "cpu")
    try:
        return pytorch_operators.array_of(result)
    except (TypeError, ValueError) as error:
        raise UnsupportedError(f"result must be an array: {pytorch_operators.first_line(error)}") from error


def _call(node: Node, arrays: Mapping[str, Array], device: str) -> Any:
    """The tensor that the operator gives on a device; on ``meta`` it has a shape and no memory."""
    require(node.kind in FOLDABLE, "operator is not supported on constants")
    torch = pytorch_operators.torch_package()
    result = pytorch_operators.call_operator(node, lambda name: _tensor_of(torch, arrays[name], device), device)
    require(isinstance(result, torch.Tensor), "operator must give one tensor")
    # PyTorch's `expand` lets negative extents pass.
    require(min(result.shape, default=0) >= 0, f"result must not have shape {list(result.shape)}")
    return result


def _tensor_of(torch: Any, array: Array, device: str) -> Any:
    if device == "meta":
        return torch.empty(array.shape, dtype=pytorch_operators.dtype_of(held_element(array)), device=device)
    return pytorch_operators.tensor_of(array)
