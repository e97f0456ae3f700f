"""Small PyTorch programs of all types drawn at random, not quantized, beside eager PyTorch.

They are what drawn networks are not: values of several types, special numbers, operators that index, sort and compare,
open extents, and buffers that a program writes.  What compares or rounds reads only values whose bits are PyTorch's.
"""

from __future__ import annotations

import logging
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as nnf

from tools.evidence.case import Case, InvalidCaseError
from tools.evidence.torch_cases import case_of_module

_MAX_ELEMENTS = 20_000
_FLOATS = (torch.float32, torch.float32, torch.float16, torch.bfloat16)
_INTEGERS = (torch.int64, torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8)
_SPECIALS = (float("inf"), -float("inf"), float("nan"), -0.0, 0.0, 1e-40, -3e-39, 0.5, 2.5, -1.0, 65504.0, 3e9)
_SPECIAL_INTEGERS = (0, -1, 1, 127, -128, 255, 2**31 - 1, -(2**31), 2**40 + 1)

Call = Callable[..., Tensor]
Unary = Callable[[Tensor], Tensor]
Binary = Callable[[Tensor, Tensor], Tensor]
Order = Literal["smooth", "moving", "discrete"]


class _Draw:
    """Choices from a seed."""

    def __init__(self, rng: np.random.Generator) -> None:
        self.rng = rng

    def choice(self, *options: Any) -> Any:
        return options[int(self.rng.integers(len(options)))]

    def unary(self, *options: Unary) -> Unary:
        return self.choice(*options)

    def binary(self, *options: Binary) -> Binary:
        return self.choice(*options)

    def whole(self, low: int, high: int) -> int:
        return int(self.rng.integers(low, high))

    def axis(self, x: Tensor) -> int:
        return self.whole(-x.dim(), x.dim())

    def tensor(self, letter: str, shape: Sequence[int], like: torch.dtype | None = None) -> Tensor:
        """Numbers of few bits, in part of the tensors some special ones."""
        if letter == "b":
            return torch.tensor(self.rng.integers(0, 2, shape).astype(np.bool_))
        dtype: torch.dtype = like or (self.choice(*_FLOATS) if letter == "f" else self.choice(*_INTEGERS))
        is_float = dtype.is_floating_point
        values = np.round(self.rng.normal(size=shape) * (64 if is_float else 5)) / (64 if is_float else 1)
        found = torch.tensor(values).to(dtype)
        if self.rng.random() < 0.5:
            places = torch.tensor(self.rng.random(shape) < 0.15)
            specials = torch.tensor(_SPECIALS if is_float else _SPECIAL_INTEGERS).to(dtype)
            drawn = specials[torch.tensor(self.rng.integers(len(specials), size=shape))]
            found = torch.where(places, drawn, found)
        return found


@dataclass(frozen=True)
class _Kind:
    """A step: the types that it reads, how it is drawn for its first operand, and what it does to the last bits.

    Types are letters: ``f`` floats, ``i`` integers, ``b`` booleans, ``n`` numbers, ``t`` any, and behind the first one
    ``s`` the type of the first.  All operands have one shape.
    """

    reads: str
    draw: Callable[[_Draw, Tensor], Call]
    order: Order = "moving"
    ranks: Sequence[int] = (1, 2, 3, 4)


class _Step(nn.Module):
    """A function of values, by their numbers, and of constants, which stand behind them."""

    def __init__(self, function: Call, reads: Sequence[int], constants: Sequence[Tensor]) -> None:
        super().__init__()
        # A module is kept as one: its parameters belong to the program.
        self.function, self.reads = function, tuple(reads)
        for number, one in enumerate(constants):
            self.register_buffer(f"constant{number}", one)
        self.count = len(constants)

    def forward(self, values: Sequence[Tensor]) -> Tensor:
        constants = [getattr(self, f"constant{number}") for number in range(self.count)]
        return self.function(*(values[one] for one in self.reads), *constants)


class _Program(nn.Module):
    """Steps in order; the results are what no step reads."""

    def __init__(self, steps: Sequence[_Step], ends: Sequence[int]) -> None:
        super().__init__()
        self.steps, self.ends = nn.ModuleList(steps), ends

    def forward(self, *inputs: Tensor) -> tuple[Tensor, ...]:
        values = list(inputs)
        for step in self.steps:
            values.append(step(values))
        return tuple(values[one] for one in self.ends)


def _letters(dtype: torch.dtype) -> str:
    return "tb" if dtype == torch.bool else "tnf" if dtype.is_floating_point else "tni"


def _grown(n: _Draw, inputs: Sequence[Tensor], count: int) -> _Program:
    values, exact = list(inputs), [True] * len(inputs)
    steps: list[_Step] = []
    for _ in range(10 * count):
        first: int = n.choice(len(values) - 1, len(values) - 1, n.whole(0, len(values)))
        first = first if values[first].shape else 0
        kind: _Kind = n.choice(*(one for one in _KINDS if _fits(one, values[first], is_exact=exact[first])))
        step = _step(n, kind, first, values, exact)
        try:
            with torch.no_grad():
                result: Tensor = step.eval()([one.clone() for one in values])
        except (RuntimeError, IndexError, NotImplementedError):
            continue
        is_told = not result.dtype.is_floating_point or bool(result.isfinite().float().mean() > 0.4)
        if 0 < result.numel() <= _MAX_ELEMENTS and is_told:
            steps.append(step)
            values.append(result)
            exact.append(kind.order != "smooth" and all(exact[one] for one in step.reads))
        if len(steps) == count:
            break
    used = {one for step in steps for one in step.reads}
    return _Program(steps, [one for one in range(len(inputs), len(values)) if one not in used][-4:])


def _fits(kind: _Kind, x: Tensor, *, is_exact: bool) -> bool:
    return kind.reads[0] in _letters(x.dtype) and x.dim() in kind.ranks and (is_exact or kind.order != "discrete")


def _step(n: _Draw, kind: _Kind, first: int, values: Sequence[Tensor], exact: Sequence[bool]) -> _Step:
    """The step with a value for each operand that it reads, and constants from where there is none."""
    x, reads, constants = values[first], [first], list[Tensor]()
    for letter in kind.reads[1:]:
        fitting = [
            number
            for number, one in enumerate(values)
            if one.shape == x.shape
            and (one.dtype == x.dtype if letter == "s" else letter in _letters(one.dtype))
            and (exact[number] or kind.order != "discrete")
        ]
        if fitting and not constants and n.rng.random() < 0.8:
            reads.append(n.choice(*fitting))
        else:
            own = _letters(x.dtype)[-1] if letter in "stn" else letter
            constants.append(n.tensor(own, x.shape, x.dtype if letter in "stn" and own != "b" else None))
    return _Step(kind.draw(n, x), reads, constants)


def _of(*functions: Call) -> Callable[[_Draw, Tensor], Call]:
    return lambda n, _: n.choice(*functions)


def _bounded(index: Tensor, extent: int) -> Tensor:
    """Indices of an axis, some of them from its end."""
    return index.long().remainder(2 * extent) - extent


def _along(call: Callable[[_Draw, Tensor, int], Call]) -> Callable[[_Draw, Tensor], Call]:
    return lambda n, x: call(n, x, n.axis(x))


def _gathered(_: _Draw, __: Tensor, axis: int) -> Binary:
    return lambda x, i: x.gather(axis, i.long().remainder(x.shape[axis]))


def _scattered(n: _Draw, x: Tensor, axis: int) -> Binary:
    # Of one index many numbers fall to a place: which one stays is left open, so places are those of a permutation.
    order = torch.tensor(n.rng.permutation(x.shape[axis]))
    shape = [1] * x.dim()
    shape[axis] = -1

    def places(x: Tensor) -> Tensor:
        return order.view(shape).expand(x.shape)

    reduce, has_self = n.choice("sum", "amax", "amin", "prod", "mean"), n.choice(True, False)
    return n.binary(
        lambda x, y: x.scatter(axis, places(x), y),
        lambda x, y: x.scatter_add(axis, places(x), y),
        lambda x, y: x.scatter_reduce(axis, places(x), y, reduce, include_self=has_self),
        lambda x, y: x.index_copy(axis, order, y),
        lambda x, y: x.index_add(axis, order, y),
    )


def _selected(n: _Draw, x: Tensor, axis: int) -> Unary:
    index = torch.tensor(n.rng.integers(0, x.shape[axis], n.whole(1, 7)))
    place = int(index[0])
    return n.unary(
        lambda x: x.index_select(axis, index),
        lambda x: x.index_fill(axis, index, 1),
        lambda x: x.select(axis, place),
        lambda x: x.narrow(axis, place, x.shape[axis] - place),
    )


def _indexed(_: _Draw, __: Tensor) -> Binary:
    return lambda x, i: x[_bounded(i.flatten()[:5], x.shape[0])]


def _put(n: _Draw, x: Tensor) -> Binary:
    order, is_sum = torch.tensor(n.rng.permutation(x.shape[0])[: n.whole(1, 4)]), n.choice(True, False)
    return lambda x, y: x.index_put((order,), y[order], accumulate=is_sum)


def _sorted(n: _Draw, x: Tensor, axis: int) -> Unary:
    count, is_down = n.whole(1, x.shape[axis] + 1), n.choice(True, False)
    return n.unary(
        lambda x: x.sort(dim=axis, descending=is_down, stable=True)[0],
        lambda x: x.sort(dim=axis, descending=is_down, stable=True)[1],
        lambda x: x.argsort(dim=axis, descending=is_down, stable=True),
        lambda x: x.topk(count, axis, is_down)[0],
        lambda x: x.topk(count, axis, is_down)[1],
        lambda x: x.argmax(axis),
        lambda x: x.argmin(axis, keepdim=True),
        lambda x: x.max(axis)[1],
        lambda x: x.min(axis)[0],
        lambda x: x.median(axis)[0],
        lambda x: x.cummax(axis)[0],
        lambda x: x.cummin(axis)[1],
    )


def _found(n: _Draw, _: Tensor) -> Unary:
    right, narrow = n.choice(True, False), n.choice(True, False)
    edges = torch.tensor(sorted(n.rng.normal(size=5).round(1).tolist()))
    return n.unary(
        lambda x: torch.bucketize(x, edges, right=right, out_int32=narrow),
        lambda x: torch.searchsorted(x.sort(dim=-1, stable=True)[0], x, right=right, out_int32=narrow),
    )


def _cumulated(_: _Draw, __: Tensor, axis: int) -> Unary:
    return lambda x: x.cumsum(axis)


def _reduced(n: _Draw, _: Tensor, axis: int) -> Unary:
    is_kept = n.choice(True, False)
    return n.unary(
        lambda x: x.sum(axis, is_kept),
        lambda x: x.prod(axis, is_kept),
        lambda x: x.any(axis, is_kept),
        lambda x: x.all(axis, is_kept),
    )


def _averaged(n: _Draw, _: Tensor, axis: int) -> Unary:
    return n.unary(
        lambda x: x.mean(axis),
        lambda x: x.logsumexp(axis),
        lambda x: x.softmax(axis),
        lambda x: x.var(axis),
        lambda x: x.log_softmax(axis),
        lambda x: nnf.normalize(x, dim=axis),
        lambda x: x.sum(axis),
        lambda x: x.cumsum(axis),
        lambda x: x.prod(axis),
        lambda x: x.nansum(axis),
    )


def _bounds(n: _Draw, _: Tensor, axis: int) -> Unary:
    return n.unary(*(partial(one, dim=axis, keepdim=n.choice(True, False)) for one in (torch.amax, torch.amin)))


def _moved(n: _Draw, x: Tensor, axis: int) -> Unary:
    order, start, step = n.rng.permutation(x.dim()).tolist(), n.whole(0, 3), n.whole(1, 4)
    other = n.axis(x)
    return n.unary(
        lambda x: x.permute(order),
        lambda x: x[..., start::step],
        lambda x: x.flip(axis),
        lambda x: x.flatten(),
        lambda x: x.roll(start, axis),
        lambda x: x.unsqueeze(axis),
        lambda x: x.transpose(axis, other),
        lambda x: nnf.pad(x, (start, 1), value=1),
        lambda x: x.repeat_interleave(step, axis),
        lambda x: torch.cat([x, x.flip(axis)], axis),
        lambda x: torch.stack([x, x], axis),
        lambda x: x.diff(1, axis),
        lambda x: x.tril(start - 1),
        lambda x: x.triu(1),
        lambda x: x.diagonal(),
        lambda x: x.chunk(2, axis)[-1],
    )


def _cast(n: _Draw, x: Tensor) -> Unary:
    # From floats, numbers out of range are left open by the language that the kernels are written in.
    targets = _FLOATS if x.dtype.is_floating_point else (*_FLOATS, *_INTEGERS, torch.bool)
    dtype = n.choice(*targets)
    return lambda x: x.to(dtype)


def _truncated(n: _Draw, _: Tensor) -> Unary:
    dtype = n.choice(torch.int64, torch.int32, torch.int16, torch.int8)
    return lambda x: x.nan_to_num(0).clamp(-100, 100).to(dtype)


def _clamped(n: _Draw, _: Tensor) -> Unary:
    low = n.whole(-2, 2)
    return n.unary(lambda x: x.clamp(low, low + 3), lambda x: x.clamp(min=low), lambda x: x.clamp(max=low))


def _linear(n: _Draw, x: Tensor) -> Call:
    return nn.Linear(x.shape[-1], n.whole(1, 20), dtype=x.dtype)


def _convolution(n: _Draw, x: Tensor) -> Call:
    return nn.Conv1d(x.shape[1], n.whole(1, 9), min(3, x.shape[2]), padding=n.whole(0, 2), dtype=x.dtype)


def _stored(n: _Draw, x: Tensor) -> Call:
    return _State(n.tensor(_letters(x.dtype)[-1], x.shape, x.dtype), n.whole(0, 4), n.whole(0, x.shape[0]))


class _State(nn.Module):
    """A buffer to which each call writes."""

    def __init__(self, start: Tensor, way: int, place: int) -> None:
        super().__init__()
        self.register_buffer("state", start)
        self.way, self.place = way, place

    def forward(self, x: Tensor) -> Tensor:
        state: Tensor = self.get_buffer("state")
        before = state.clone()
        if self.way == 0:
            state.copy_(torch.maximum(x, state))
        elif self.way == 1:
            state[self.place] = x[0]
        elif self.way == 2:
            state.index_copy_(0, torch.tensor([self.place]), x[:1])
        else:
            state.copy_(torch.cat([state[1:], x[:1]]))
        return torch.stack([before, state])


_UNARY: Sequence[Unary] = (
    *(torch.abs, torch.neg, torch.square, torch.sign, torch.relu, nnf.relu6, nnf.leaky_relu, nnf.hardtanh),
    *(torch.nan_to_num, torch.positive, torch.hardshrink, nnf.softshrink),
)
# Without `gelu`, of which docs/formats.md states what infinity gives.
_SMOOTH: Sequence[Unary] = (
    *(torch.exp, torch.expm1, torch.tanh, torch.sigmoid, torch.erf, torch.sin, torch.cos, torch.atan, torch.asinh),
    *(nnf.silu, nnf.elu, nnf.mish, nnf.softplus, nnf.hardswish, nnf.hardsigmoid, nnf.logsigmoid, nnf.selu),
    *(torch.sinh, torch.exp2, torch.sinc, nnf.softsign, nnf.celu),
)
_DISCRETE: Sequence[Unary] = (
    *(torch.floor, torch.ceil, torch.round, torch.trunc, torch.frac, torch.isnan, torch.isinf, torch.isfinite),
    *(torch.signbit, torch.logical_not, torch.reciprocal, torch.sqrt, lambda x: x > 0.5, lambda x: x == 0),
    *(lambda x: x.round(decimals=1), torch.isposinf, torch.isneginf, torch.sgn),
)
_LOGS: Sequence[Unary] = (torch.log, torch.log2, torch.log1p, torch.log10, torch.rsqrt, torch.acos, torch.atanh)
_PAIRS: Sequence[Binary] = (
    *(torch.add, torch.sub, torch.mul, torch.maximum, torch.minimum, torch.fmax, torch.fmin),
    *(torch.add, torch.mul, lambda x, y: torch.sub(x, y, alpha=2), lambda x, y: torch.lerp(x, y, 0.5)),
)
_EXACT_PAIRS: Sequence[Binary] = (
    *(torch.div, torch.eq, torch.lt, torch.ge, torch.ne, torch.le, torch.gt, torch.copysign, torch.heaviside),
    *(torch.fmod, torch.remainder, torch.floor_divide, lambda x, y: torch.div(x, y, rounding_mode="trunc")),
    *(torch.logical_and, torch.logical_xor, torch.true_divide, lambda x, y: torch.isclose(x, y, equal_nan=True)),
)
_WHOLE: Sequence[Unary] = (
    *(torch.bitwise_not, torch.abs, torch.neg, lambda x: x << 2, lambda x: x >> 1, lambda x: x * 3, lambda x: x + 0.5),
    *(lambda x: x / 3, lambda x: x // 3, lambda x: x % 4, lambda x: x**2, lambda x: x > 1, torch.sign),
)
_WHOLE_PAIRS: Sequence[Binary] = (
    *(torch.bitwise_and, torch.bitwise_or, torch.bitwise_xor, torch.add, torch.sub, torch.mul, torch.maximum),
    *(lambda x, y: torch.floor_divide(x, y | 1), lambda x, y: torch.remainder(x, y | 1), torch.lt, torch.eq),
    *(lambda x, y: torch.fmod(x, y | 1), lambda x, y: x << (y & 3), lambda x, y: x >> (y & 7), torch.div),
)
_MASKS: Sequence[Binary] = (torch.logical_and, torch.logical_or, torch.bitwise_xor, torch.eq, torch.mul, torch.add)
_MASKED: Sequence[Binary] = (
    lambda x, m: x.masked_fill(m, 2),
    lambda x, m: torch.where(m, x, 0),
    lambda x, m: x * m,
    lambda x, m: x + m,
)
_CHOSEN: Sequence[Callable[[Tensor, Tensor, Tensor], Tensor]] = (
    lambda x, m, y: torch.where(m, x, y),
    lambda x, m, y: torch.where(~m, x, y),
)
_KINDS = (
    *(_Kind("f", _of(*_UNARY)), _Kind("f", _of(*_SMOOTH), "smooth")),
    *(_Kind("f", _of(*_DISCRETE), "discrete"), _Kind("fs", _of(*_PAIRS)), _Kind("fs", _of(*_PAIRS))),
    *(_Kind("fs", _of(*_EXACT_PAIRS), "discrete"), _Kind("f", _clamped), _Kind("f", _cast, "discrete")),
    *(_Kind("f", _truncated, "discrete"), _Kind("i", _of(*_WHOLE)), _Kind("is", _of(*_WHOLE_PAIRS))),
    *(_Kind("i", _cast), _Kind("b", _cast), _Kind("bb", _of(*_MASKS)), _Kind("tb", _of(*_MASKED))),
    *(_Kind("tbs", _of(*_CHOSEN)), _Kind("tbs", _of(*_CHOSEN)), _Kind("ti", _along(_gathered))),
    *(_Kind("ts", _along(_scattered)), _Kind("t", _along(_selected)), _Kind("ti", _indexed), _Kind("ts", _put)),
    *(_Kind("n", _along(_sorted), "discrete"), _Kind("n", _along(_sorted), "discrete")),
    *(_Kind("f", _found, "discrete"), _Kind("i", _along(_cumulated)), _Kind("i", _along(_reduced))),
    *(_Kind("b", _along(_reduced)), _Kind("f", _along(_averaged), "smooth"), _Kind("n", _along(_bounds))),
    *(_Kind("t", _along(_moved)), _Kind("t", _along(_moved)), _Kind("f", _linear, "smooth", (2, 3, 4))),
    *(_Kind("f", _convolution, "smooth", (3,)), _Kind("n", _stored), _Kind("fi", _of(torch.add, torch.mul))),
    _Kind("f", _of(*_LOGS), "discrete"),
)


def case(seed: int) -> Case:
    """The program of a seed, and what it gives in eager mode."""
    logging.disable(logging.WARNING)
    n = _Draw(np.random.default_rng(seed))
    torch.default_generator.manual_seed(seed)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return _case(n)
    except Exception as error:
        raise InvalidCaseError(f"{type(error).__name__}: {error}") from error


def _case(n: _Draw) -> Case:
    shape = [n.choice(1, 2, 3, 5, 8, 16, 17, 33) for _ in range(n.choice(1, 2, 2, 3, 3, 4))]
    letters = n.choice("f", "ff", "ff", "ffi", "ffb", "fib", "fi", "ib", "i", "bb")
    inputs = tuple(n.tensor(letter, shape) for letter in letters)
    program = _grown(n, inputs, n.whole(2, 10)).eval()
    has_state = any(isinstance(one, _State) for one in program.modules())
    is_open = bool(n.rng.random() < 0.3) and not has_state
    other = [extent + n.whole(0, 3) for extent in shape] if is_open else shape
    called = tuple(n.tensor(letter, other, one.dtype) for letter, one in zip(letters, inputs, strict=True))
    later = (called, inputs) if has_state else ()
    return case_of_module(program, called if is_open else inputs, examples=inputs if is_open else None, later=later)
