"""Calls of the core operators of PyTorch, each on small tensors of floats and of integers."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any, cast

import torch
from torch import Tensor
from torch_models import drawn

F = drawn(1, 2, 3, 4)
G = drawn(2, 2, 3, 4)
POSITIVE = G.abs() + 0.5
SMALL = torch.tanh(F) * 0.9
I = torch.arange(24).reshape(2, 3, 4) * 7 % 11 - 4  # noqa: E741
J = torch.arange(24).reshape(2, 3, 4) * 5 % 7 - 3
NONZERO = torch.where(J == 0, 5, J)
B, C = F > 0, G > 0
IMAGES = drawn(3, 1, 2, 6, 5)
VOLUMES = drawn(4, 1, 2, 4, 5, 4)
MATRIX, SQUARE = drawn(5, 3, 4), drawn(6, 4, 4)
POSITIONS = torch.tanh(drawn(5, 1, 3, 4, 2)) * 1.2
NARROW = I.to(torch.int32)
BYTES = (I + 4).to(torch.uint8)
CHANNELS = drawn(8, 2), drawn(9, 2)
ONES = torch.ones(2), torch.zeros(2)
INDICES = torch.tensor([[0, 2, 1, 2], [1, 1, 0, 2]]).reshape(2, 1, 4)
SELECTED = torch.tensor([2, 0])

Arguments = tuple[Any, ...]


@dataclass(frozen=True)
class Known:
    """A tensor that a program has as a constant."""

    tensor: Tensor


_NUMBERS: list[Arguments] = [(F,), (I,), (NARROW,)]
_ALL: list[Arguments] = [*_NUMBERS, (BYTES,), (B,)]
_TENSORS: list[Arguments] = [(F, G), (I, J), (NARROW, I), (F, I), (F, G[:, :1]), (I, drawn(1, 4)), (BYTES, NARROW)]
_SCALARS: list[Arguments] = [(F, 1.5), (I, 3), (I, 1.5), (F, 2), (NARROW, -3), (BYTES, 3)]
_DIVISORS: list[Arguments] = [(F, POSITIVE), (I, NONZERO), (F, NONZERO), (NARROW, NONZERO)]
_BITS: list[Arguments] = [(I, J), (B, C), (NARROW, NARROW), (BYTES, BYTES)]
_REDUCED: list[Arguments] = [(F, [1]), (I, [0, 2]), (F, [-1], True), (NARROW, [1])]
_ONE_AXIS: list[Arguments] = [(F, 1), (I, 0), (F, -1, True)]
_AXIS: list[Arguments] = [(F, 1), (I, 0), (B, -1)]

_UNARY: dict[str, Tensor] = {
    **dict.fromkeys(("acos", "asin", "atanh"), SMALL),
    "acosh": POSITIVE + 1,
    **dict.fromkeys(("log", "log10", "log1p", "log2", "rsqrt", "sqrt", "reciprocal"), POSITIVE),
    **dict.fromkeys(("asinh", "atan", "cos", "cosh", "erf", "exp", "expm1", "sigmoid", "sin", "sinh", "tan"), F),
    "tanh": F,
}
_COMPARISONS = ("eq", "ge", "gt", "le", "lt", "ne")
_NEGATIVE_BYTES = {"neg.default": [*_NUMBERS, (BYTES,)], "sign.default": _ALL, "abs.default": [*_NUMBERS, (BYTES,)]}

CALLS: dict[str, list[Arguments]] = {
    **{f"{name}.default": [(given,), (torch.arange(1, 5),)] for name, given in _UNARY.items()},
    **{f"{name}.default": [*_NUMBERS, (BYTES,)] for name in ("ceil", "floor", "round", "trunc", "relu")},
    **{f"{name}.{of}": calls for name in _COMPARISONS for of, calls in (("Tensor", _TENSORS), ("Scalar", _SCALARS))},
    **{
        f"{name}.{of}": calls
        for name in ("add", "sub", "mul")
        for of, calls in (("Tensor", _TENSORS), ("Scalar", _SCALARS))
    },
    **{f"{name}.Tensor": _DIVISORS for name in ("div", "fmod", "remainder")},
    **{f"{name}.Scalar": _SCALARS for name in ("div", "fmod", "remainder")},
    **{f"logical_{name}.default": [(F, G), (B, C), (I, B)] for name in ("and", "or", "xor")},
    **{f"bitwise_{name}.Tensor": _BITS for name in ("and", "or", "xor")},
    **{f"bitwise_{name}.Scalar": [(I, 5), (B, True), (NARROW, -2)] for name in ("and", "or", "xor")},
    **{f"{name}.default": [(F, G), (I, J), (NARROW, I), (F, I)] for name in ("maximum", "minimum")},
    **{f"{name}.default": [*_REDUCED, (B, [1])] for name in ("amax", "amin")},
    **{f"{name}.default": [(F,), *_ONE_AXIS] for name in ("argmax", "argmin")},
    **{f"{name}.dim": _ONE_AXIS for name in ("max", "min")},
    **_NEGATIVE_BYTES,
    "_adaptive_avg_pool2d.default": [(IMAGES, [3, 5]), (IMAGES, [4, 2]), (IMAGES, [1, 1])],
    "_adaptive_avg_pool3d.default": [(VOLUMES, [2, 5, 1]), (VOLUMES, [1, 1, 1])],
    "_embedding_bag.default": [(SQUARE, torch.tensor([0, 3, 1, 1]), Known(torch.tensor([0, 2])))],
    "_log_softmax.default": [(F, 1, False)],
    "_native_batch_norm_legit_no_training.default": [
        (IMAGES, *map(Known, (*CHANNELS, drawn(3, 2), ONES[0] * 2)), 0.1, 1e-5)
    ],
    "_softmax.default": [(F, 1, False), (F, -1, False)],
    "_to_copy.default": _ALL,
    "adaptive_avg_pool1d.default": [(F, [2]), (F, [3])],
    "addmm.default": [(drawn(1, 4), MATRIX, SQUARE), (MATRIX, MATRIX, SQUARE)],
    "alias.default": _ALL,
    "any.default": _ALL,
    "any.dim": [(F, 1), (I, 0, True), (B, -1)],
    "any.dims": [(F, [1, 2]), (B, [0], True), (I,)],
    "arange.start_step": [(0, 7, 2), (0.5, 4.0, 0.7)],
    "as_strided.default": [(F, [3, 2], [4, 1], 2), (I, [2, 2], [1, 2])],
    "avg_pool1d.default": [(F, [2]), (F, [3], [1], [1]), (F, [3], [2], [1], True, False)],
    "avg_pool2d.default": [
        (IMAGES, [2, 2]),
        (IMAGES, [3, 3], [2, 2], [1, 1], True, False),
        (IMAGES, [3, 2], [1, 2], [1, 0], False, True, 5),
    ],
    "avg_pool3d.default": [(VOLUMES, [2, 2, 2]), (VOLUMES, [3, 3, 3], [2, 2, 2], [1, 1, 1], True, False)],
    "bitwise_not.default": [(I,), (B,), (NARROW,), (BYTES,)],
    "bmm.default": [(F, drawn(4, 2, 4, 3))],
    "cat.default": [([F, G],), ([I, J], 1), ([F, G, F], -1), ([B, C], 2)],
    "clamp.Tensor": [(F, G, G + 1), (F, None, G), (I, J), (F, torch.tensor(0.0))],
    "clamp.default": [(F, -0.5, 0.5), (I, -2, 3), (F, None, 1.0), (I, 2), (F, 0), (NARROW, -1)],
    "clone.default": _ALL,
    "col2im.default": [(drawn(1, 1, 8, 6), [4, 3], [2, 2], [1, 1], [0, 0], [1, 1])],
    "constant_pad_nd.default": [
        (F, [1, 2]),
        (I, [0, 1, 2, 0], 3),
        (F, [-1, 1, 0, -1], 0.5),
        (B, [1, 0], True),
        (I, [-1, 0], 2**53 + 1),
        (I, [1, 0], 2**53 + 1),
        (I, [0, 1], 1.5),
        (BYTES, [0, 0]),
    ],
    "convolution.default": [
        (IMAGES, Known(drawn(1, 3, 2, 3, 3)), Known(drawn(2, 3)), [1, 1], [1, 1], [1, 1], False, [0, 0], 1)
    ],
    "copy.default": [(F, G), (I, J), (F, I), (F, G[:, :1])],
    "cumsum.default": [(F, 1), (I, 0), (B, 2), (NARROW, -1)],
    "diagonal.default": [(F, 0, 1, 2), (I, 1), (F, -1, -2, -1)],
    "div.Scalar_mode": [(F, 1.5), (I, 3), (I, 1.5)],
    "div.Tensor_mode": [(F, POSITIVE), (I, NONZERO), (F, NONZERO), (I, POSITIVE)],
    "elu.default": [(F,), (F, 1.3, 1.1, 0.9)],
    "embedding.default": [(SQUARE, INDICES)],
    "empty.memory_format": [([2, 3],)],
    "empty_strided.default": [([3, 2], [2, 1])],
    "expand.default": [(F[:, :1], [2, 5, 4]), (I[:1], [2, -1, 4]), (B[:, :, :1], [3, 2, 3, 4])],
    "fill.Scalar": [(F, 1.5), (I, 2), (B, True)],
    "flip.default": [(F, [1]), (I, [0, 2]), (B, [-1])],
    "full.default": [([2, 3], 1.5), ([2], 3), ([2], True)],
    "full_like.default": [(F, 1.5), (I, 3), (B, 1)],
    "gather.default": [(F, 1, INDICES), (I, 1, INDICES)],
    "gelu.default": [(F,)],
    "grid_sampler_2d.default": [
        (IMAGES, POSITIONS, 0, 0, False),
        (IMAGES, POSITIONS, 1, 1, True),
        (IMAGES, POSITIONS, 0, 2, True),
    ],
    "hardtanh.default": [(F,), (F, -0.5, 0.25), (I,)],
    "index.Tensor": [
        (F, [None, SELECTED]),
        (I, [INDICES.reshape(2, 4) % 2]),
        (F, [INDICES[0] % 2, None, INDICES[0]]),
        (B, [None, SELECTED]),
    ],
    "index_put.default": [
        (F, [None, SELECTED], G[:, :2]),
        (I, [torch.tensor([0, 1])], J, True),
        (F, [INDICES[0] % 2, INDICES[0]], G[0, :1], True),
    ],
    "index_select.default": [(F, 1, SELECTED), (I, 2, SELECTED), (B, 1, SELECTED)],
    "isinf.default": [(F,), (I,)],
    "isnan.default": [(F,), (I,)],
    "leaky_relu.default": [(F,), (F, 0.3)],
    "logical_not.default": _ALL,
    "max_pool2d_with_indices.default": [
        (IMAGES, [2, 2]),
        (IMAGES, [3, 3], [2, 2], [1, 1]),
        (IMAGES, [2, 2], [1, 1], [0, 0], [2, 1], True),
    ],
    "max_pool3d_with_indices.default": [(VOLUMES, [2, 2, 2]), (VOLUMES, [3, 3, 3], [2, 2, 2], [1, 1, 1])],
    "mean.default": [(F,)],
    "mean.dim": [(F, [1]), (F, [0, 2], True), (F, [-1])],
    "mm.default": [(MATRIX, SQUARE)],
    "native_dropout.default": [(F, 0.5, False)],
    "native_group_norm.default": [(IMAGES, *CHANNELS, 1, 2, 30, 1, 1e-5), (IMAGES, None, None, 1, 2, 30, 2, 1e-5)],
    "native_layer_norm.default": [(F, [4], drawn(1, 4), drawn(2, 4), 1e-5), (F, [3, 4], None, None, 1e-5)],
    "permute.default": [(F, [2, 0, 1]), (I, [1, 0, 2]), (B, [-1, 1, 0])],
    "pow.Scalar": [(2.0, F), (2, F)],
    "pow.Tensor_Scalar": [(F, 2), (POSITIVE, 1.7), (I, 2), (I, 3), (NARROW, 2), (F, -1), (I, 1.5)],
    "pow.Tensor_Tensor": [(POSITIVE, G), (POSITIVE, I)],
    "prod.default": [(F,), (J,), (B,)],
    "prod.dim_int": [(F, 1), (I, 0, True), (NARROW, -1)],
    "reflection_pad1d.default": [(F, [1, 2]), (F[0], [0, 3]), (I, [1, 1])],
    "reflection_pad2d.default": [(IMAGES, [1, 2, 3, 0])],
    "reflection_pad3d.default": [(VOLUMES, [1, 2, 0, 1, 3, 0])],
    "repeat.default": [(F, [2, 1, 3]), (I, [2, 1, 1, 2]), (B, [1, 1, 2])],
    "replication_pad2d.default": [(IMAGES, [1, 2, 3, 0])],
    "replication_pad3d.default": [(VOLUMES, [1, 2, 0, 1, 3, 0])],
    "scalar_tensor.default": [(1.5,), (3,)],
    "scatter.src": [(F, 1, INDICES, G), (I, 1, INDICES, J)],
    "scatter.value": [(F, 1, INDICES, 1.5), (I, 1, INDICES, 7)],
    "scatter_add.default": [(F, 1, INDICES, G), (I, 1, INDICES, J)],
    "scatter_reduce.two": [(F, 1, INDICES, G, mode) for mode in ("sum", "prod", "mean", "amax", "amin")],
    "select.int": [(F, 1, 2), (I, 0, -1), (B, -1, 0)],
    "select_scatter.default": [(F, G[:, 0], 1, 2), (I, J[0], 0, -1)],
    "slice.Tensor": [(F, 1, 0, 2), (I, 2, -3, 100, 2), (B, 0)],
    "slice_scatter.default": [(F, G[:, :2], 1, 1), (I, J[:, :, :2], 2, 0, 4, 2)],
    "sort.default": [(F,), (I, 1), (F, 0, True)],
    "split_with_sizes.default": [(F, [1, 2], 1), (I, [2, 2], 2), (B, [1, 1])],
    "squeeze.dim": [(F[:, :1], 1), (I, 0), (B[:1], 0)],
    "squeeze.dims": [(F[:1, :1], [0, 1]), (I[:1], [0, 2]), (B, [0])],
    "sum.dim_IntList": [(F, [1]), (I, [0, 2], True), (B, [1]), (NARROW, [-1]), (F, None)],
    "topk.default": [(F, 2), (F, 2, 1), (F, 2, 1, False)],
    "unsqueeze.default": _AXIS,
    "upsample_bilinear2d.vec": [
        (IMAGES, size, aligned, scales)
        for aligned in (True, False)
        for size, scales in (([9, 7], None), (None, [2.0, 1.5]), ([3, 2], None))
    ],
    "upsample_nearest2d.vec": [(IMAGES, [12, 10], None), (IMAGES, None, [2.0, 1.5]), (IMAGES, [3, 7], None)],
    "var.correction": [(F, [1]), (F, None), (F, [0, 2])],
    "var.dim": [(F, [1]), (F, [0, 2], False, True)],
    "view.default": [(F, [6, 4]), (I, [-1]), (B, [2, 12])],
    "where.self": [(B, F, G), (B, I, J), (B, F, I), (C, B, C), (B[:, :1], F, torch.tensor(1.0))],
}
"""Of every core operator that may be compiled, by its name, the arguments of its calls."""
_REFUSED: dict[str, list[Arguments]] = {
    "_adaptive_avg_pool3d.default": [(VOLUMES, [3, 2, 3])],
    "_cdist_forward.default": [(MATRIX, SQUARE, 2.0, None)],
    "_fft_r2c.default": [(F, [2], 0, True)],
    "_pdist_forward.default": [(MATRIX, 2.0)],
    "atan2.default": [(F, G)],
    "convolution.default": [(IMAGES, drawn(1, 3, 2, 3, 3), None, [1, 1], [1, 1], [1, 1], False, [0, 0], 1)],
    "masked_scatter.default": [(F, B, G), (I, C, J)],
    "pow.Scalar": [(3, I)],
    "pow.Tensor_Tensor": [(I, J.abs())],
    "rand.default": [([2],)],
    "randn.default": [([2],)],
    "randperm.default": [(3,)],
}
"""Calls that are not compiled; those of other operators have results that no network computes after training."""
NAMED: dict[str, dict[str, Any]] = {
    "_to_copy.default": {"dtype": torch.float32},
    "div.Scalar_mode": {"rounding_mode": "floor"},
    "div.Tensor_mode": {"rounding_mode": "trunc"},
    "var.correction": {"correction": 1},
}
_FIRST = (
    "_embedding_bag.default",
    "_native_batch_norm_legit_no_training.default",
    "max_pool2d_with_indices.default",
    "max_pool3d_with_indices.default",
)
"""Operators of whose results training alone reads the others."""
_UNDEFINED = ("empty.memory_format", "empty_strided.default")
"""Operators whose results have a shape but no defined elements."""


@dataclass(frozen=True)
class CoreCall:
    """A call of an operator; its tensors are the inputs of a program."""

    operator: str
    arguments: Arguments

    def __str__(self) -> str:
        return f"{self.operator} of {[_shown(one) for one in self.arguments]}"

    @property
    def tensors(self) -> tuple[Tensor, ...]:
        return tuple(one for one in _leaves(self.arguments) if isinstance(one, Tensor))

    def result(self, *tensors: Tensor) -> Any:
        """What the operator gives for other tensors."""
        left = iter(tensors)
        given = [_with(one, left) for one in self.arguments]
        name, _, overload = self.operator.partition(".")
        found = getattr(getattr(torch.ops.aten, name), overload)(*given, **NAMED.get(self.operator, {}))
        if self.operator in _UNDEFINED:
            return torch.zeros_like(found)
        return found[0] if self.operator in _FIRST else found


def core_calls() -> Iterator[CoreCall]:
    """All calls, in the order of operators."""
    for operator, calls in CALLS.items():
        yield from (CoreCall(operator, arguments) for arguments in calls)


def refused_calls() -> Iterator[CoreCall]:
    """Calls that PyTorch runs itself."""
    for operator, calls in _REFUSED.items():
        yield from (CoreCall(operator, arguments) for arguments in calls)


def core_operators() -> set[str]:
    """Names of the operators that PyTorch calls core; what takes apart symbolic numbers or has an `out` is no such."""
    found: set[str] = set()
    # What PyTorch knows of its own operators is not public.
    names: Any = import_module("torch._C")
    for given in names._dispatch_get_all_op_names():
        namespace, _, full = given.partition("::")
        name, _, overload = full.partition(".")
        packet = getattr(torch.ops.aten, name, None) if namespace == "aten" else None
        operator = getattr(packet, overload or "default", None)
        if torch.Tag.core in getattr(operator, "tags", ()) and overload != "out" and not name.startswith("sym_"):
            found.add(f"{name}.{overload or 'default'}")
    return found


def _leaves(arguments: Sequence[Any]) -> Iterator[Any]:
    for one in arguments:
        yield from _leaves(cast("Sequence[Any]", one)) if isinstance(one, list) else (one,)


def _with(argument: Any, tensors: Iterator[Tensor]) -> Any:
    if isinstance(argument, list):
        return [_with(one, tensors) for one in cast("list[Any]", argument)]
    if isinstance(argument, Known):
        return argument.tensor
    return next(tensors) if isinstance(argument, Tensor) else argument


def _shown(argument: Any) -> Any:
    if isinstance(argument, list):
        return [_shown(one) for one in cast("list[Any]", argument)]
    return f"{argument.dtype}{list(argument.shape)}" if isinstance(argument, Tensor) else argument
