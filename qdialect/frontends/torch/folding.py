"""Runs PyTorch's own operators on arrays: to fold constants, and to fill in tables.

Only operators of a fixed list are run: those that compute their result from their operands and from nothing else, in
memory of their own, in time that grows with the elements they read and write.  They are called by their names in
PyTorch's registry; nothing that a program carries is called.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, cast

import numpy as np

from qdialect.frontends.budget import Budget
from qdialect.frontends.common import Array, UnsupportedError, require
from qdialect.frontends.torch.model import ELEMENTS, Element, Node, Ref
from qdialect.frontends.torch.package import torch_package
from qdialect.frontends.torch.schemas import default_of, schema_of

_ELEMENTWISE = """
    abs.default acos.default add.Scalar add.Tensor asin.default atan.default bitwise_and.Tensor
    bitwise_not.default bitwise_or.Tensor bitwise_xor.Tensor ceil.default clamp.Tensor clamp.default
    clamp_max.default clamp_min.default cos.default cosh.default div.Scalar div.Scalar_mode div.Tensor
    div.Tensor_mode elu.default eq.Scalar eq.Tensor erf.default exp.default exp2.default expm1.default
    floor.default floor_divide.default fmod.Scalar fmod.Tensor ge.Scalar ge.Tensor gelu.default gt.Scalar
    gt.Tensor hardsigmoid.default hardswish.default hardtanh.default le.Scalar le.Tensor leaky_relu.default
    log.default log10.default log1p.default log2.default logical_and.default logical_not.default
    logical_or.default lt.Scalar lt.Tensor masked_fill.Scalar maximum.default minimum.default mish.default
    mul.Scalar mul.Tensor ne.Scalar ne.Tensor neg.default pow.Scalar pow.Tensor_Scalar pow.Tensor_Tensor
    reciprocal.default relu.default relu6.default remainder.Scalar remainder.Tensor round.default rsqrt.default
    rsub.Scalar rsub.Tensor sigmoid.default sign.default silu.default sin.default sinh.default softplus.default
    sqrt.default square.default sub.Scalar sub.Tensor tan.default tanh.default trunc.default where.self
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
    _log_softmax.default _softmax.default amax.default amin.default cumsum.default log_softmax.int mean.default
    mean.dim prod.default prod.dim_int softmax.int sum.default sum.dim_IntList
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

_TORCH_NAMES = {ours: torch for torch, ours in ELEMENTS.items()}
# What an argument may be that is an attribute of the package, by the type that the schema gives it.
_ATTRIBUTES = {
    "ScalarType": frozenset(
        ["bool", "uint8", "int8", "int16", "int32", "int64", "float16", "float32", "float64"],
    ),
    "Layout": frozenset(["strided"]),
    "MemoryFormat": frozenset(["contiguous_format", "preserve_format", "channels_last"]),
}
_TYPES: dict[str, tuple[type, ...]] = {
    "Tensor": (Ref, bool, int, float),
    "bool": (bool,),
    "float": (int, float),
    "int": (int,),
    "number": (bool, int, float),
    "str": (str,),
}


def fold(node: Node, arrays: Mapping[str, Array], budget: Budget) -> Array:
    """The result of a node of known operands.

    Its shape is found first, by the operator itself on tensors without memory, and taken from the `budget`.  Raises
    `UnsupportedError` for an operator that is not `FOLDABLE`, one that fails, and where the budget is exceeded.
    """
    result = _call(node, arrays, "meta")
    # A tensor without elements can have extents beyond any memory all the same.
    elements = math.prod(max(extent, 1) for extent in result.shape)
    if node.kind in _MULTIPLYING:
        elements *= _last_extent(node, arrays)
    read = sum(array.nbytes for array in arrays.values())
    budget.spend(elements * result.element_size() + read, "a constant that a node computes")
    return evaluate(node, arrays)


def evaluate(node: Node, arrays: Mapping[str, Array]) -> Array:
    """The result of a node, with `arrays` in place of the tensors that it reads.

    Raises `UnsupportedError` for an operator that is not `FOLDABLE`, and one that fails.
    """
    result = _call(node, arrays, "cpu")
    try:
        return result.numpy()
    except (TypeError, ValueError) as error:
        raise UnsupportedError(f"result must be an array: {_first_line(error)}") from error


def _last_extent(node: Node, arrays: Mapping[str, Array]) -> int:
    operand = node.arguments[_MULTIPLYING[node.kind]]
    return arrays[operand.name].shape[-1] if isinstance(operand, Ref) else 1


@dataclass(frozen=True)
class Parameter:
    """An argument of an operator: its type, and whether PyTorch takes it by its name alone."""

    name: str
    kind: str
    is_named: bool
    has_default: bool
    default: Any

    def is_default(self, value: Any) -> bool:
        """Whether an argument is the one that is taken where none is given."""
        return self.has_default and value == self.default

    def check(self, value: Any) -> None:
        """Raise `UnsupportedError` for another type: PyTorch's own kernels trust some, and crash for others."""
        # A device is chosen here, not by the program.
        if self.name != "device" and not self.is_default(value):
            fits = _fits(self.kind, value)
            require(fits, f"argument '{self.name}' must be of type {self.kind}, but got {value}")


@cache
def parameters_of(kind: str) -> tuple[Parameter, ...]:
    """The arguments of an operator that PyTorch's registry has."""
    return tuple(
        Parameter(
            argument.name,
            str(argument.real_type),
            argument.kwarg_only,
            argument.has_default_value(),
            default_of(argument.default_value),
        )
        for argument in schema_of(kind).arguments
    )


def _call(node: Node, arrays: Mapping[str, Array], device: str) -> Any:
    """The tensor that the operator gives on a device; on ``meta`` it has a shape and no memory."""
    require(node.kind in FOLDABLE, "operator is not supported on constants")
    torch, parameters = torch_package(), parameters_of(node.kind)
    unknown = node.arguments.keys() - {parameter.name for parameter in parameters}
    require(not unknown, f"operator must not have arguments {sorted(unknown)}")
    for parameter in parameters:
        parameter.check(node.arguments.get(parameter.name))
    try:
        positional, named = _arguments(torch, node, arrays, device)
        with torch.no_grad():
            result = operator_of(torch, node.kind)(*positional, **named)
    except UnsupportedError:
        raise
    except Exception as error:
        # Operators raise whatever their kernels do, AssertionError among it.
        raise UnsupportedError(f"operator is not supported on constants: {_first_line(error)}") from error
    require(isinstance(result, torch.Tensor), "operator must give one tensor")
    # PyTorch's `expand` lets negative extents pass.
    require(min(result.shape, default=0) >= 0, f"result must not have shape {list(result.shape)}")
    return result


def _fits(kind: str, value: Any) -> bool:
    """Whether an argument has a type of PyTorch's schemas."""
    outer, _, inner = kind.removesuffix("]").partition("[")
    if outer == "Optional":
        return value is None or _fits(kind.removeprefix("Optional[").removesuffix("]"), value)
    if outer == "List":
        return _all_fit(inner, value)
    if outer in _ATTRIBUTES:
        return isinstance(value, Element) and torch_name(value) in _ATTRIBUTES[outer]
    return isinstance(value, _TYPES.get(kind, ()))


def _all_fit(kind: str, value: Any) -> bool:
    """Whether an argument is a list of a type; one integer stands for a list of it."""
    if not isinstance(value, tuple):
        return kind == "int" and isinstance(value, int)
    return all(_fits(kind, part) for part in cast("tuple[Any, ...]", value))


def _arguments(torch: Any, node: Node, arrays: Mapping[str, Array], device: str) -> tuple[list[Any], dict[str, Any]]:
    """The arguments by position and by name, as PyTorch takes them."""
    positional: list[Any] = []
    named: dict[str, Any] = {}
    for parameter in parameters_of(node.kind):
        value = node.arguments[parameter.name]
        held = torch.device(device) if parameter.name == "device" else _held(torch, value, arrays, device)
        if not parameter.is_named:
            positional.append(held)
        elif parameter.name == "device" or not parameter.is_default(value):
            named[parameter.name] = held
    return positional, named


def operator_of(torch: Any, kind: str) -> Any:
    """The operator of PyTorch's registry."""
    package, name, overload = kind.split(".")
    return getattr(getattr(getattr(torch.ops, package), name), overload)


def _held(torch: Any, argument: Any, arrays: Mapping[str, Array], device: str) -> Any:
    """An argument as PyTorch takes it."""
    if isinstance(argument, Ref):
        array = arrays[argument.name]
        # PyTorch wants memory that it could write to.
        whole = torch.from_numpy(array if array.flags.writeable else np.array(array)) if device != "meta" else None
        return _shape_of(torch, array) if whole is None else whole
    if isinstance(argument, tuple):
        return [_held(torch, part, arrays, device) for part in cast("tuple[Any, ...]", argument)]
    return getattr(torch, torch_name(argument)) if isinstance(argument, Element) else argument


def torch_name(element: Element) -> str:
    """What PyTorch calls a dtype, a layout or a memory format."""
    return _TORCH_NAMES.get(element.name, element.name)


def _shape_of(torch: Any, array: Array) -> Any:
    dtype = getattr(torch, array.dtype.name)
    return torch.empty(array.shape, dtype=dtype, device="meta")


def _first_line(error: Exception) -> str:
    return next(iter(str(error).splitlines()), type(error).__name__)
