"""PyTorch's samples of its operators, exported as they are, then called with other numbers of the same shapes.

An exported program is right for its sample alone where PyTorch or the front end chose by the sample's numbers.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence

import numpy as np
import torch
from torch import Tensor

from tools.evidence.case import Case, InvalidCaseError, Key
from tools.evidence.torch_cases import TorchCases, call_of, case_of_module

_SPECIALS = (float("nan"), float("inf"), -float("inf"), -0.0, 0.0, 1e-40, -3e-39, 0.5, -2.5, 1.0, -1.0, 2049.0, -7e3)


def _some(rng: np.random.Generator, x: Tensor, *numbers: float) -> Tensor:
    """`x` with some of the numbers in about a quarter of its places."""
    places = torch.tensor(rng.random(x.shape) < 0.25)
    return torch.where(places, torch.tensor(rng.choice(numbers, x.shape)).to(x.dtype), x)


def _shuffled(rng: np.random.Generator, x: Tensor) -> Tensor:
    return x.flatten()[torch.tensor(rng.permutation(x.numel()))].reshape(x.shape)


Change = Callable[[np.random.Generator, Tensor], Tensor]
"""Other numbers in place of a tensor's."""
_FLOATS: dict[str, Change] = {
    "zeros": lambda _, x: torch.zeros_like(x),
    "zeros below": lambda _, x: -torch.zeros_like(x),
    "negative": lambda _, x: -x.abs(),
    "positive": lambda _, x: x.abs(),
    "all equal": lambda _, x: torch.full_like(x, 1.5),
    "duplicates": lambda _, x: torch.round(x / 3),
    "halves": lambda _, x: torch.round(x) + 0.5,
    "large": lambda _, x: x * 1e3,
    "small": lambda _, x: x * 1e-6,
    "NaN": lambda rng, x: _some(rng, x, float("nan")),
    "infinite": lambda rng, x: _some(rng, x, float("inf"), -float("inf")),
    "special": lambda rng, x: _some(rng, x, *_SPECIALS),
    "shuffled": _shuffled,
}
_WHOLE: dict[str, Change] = {
    "shuffled": _shuffled,
    "least": lambda _, x: x.min().expand(x.shape),
    "largest": lambda _, x: x.max().expand(x.shape),
    # Without -1: PyTorch's process ends where it divides the smallest number by that.
    "ends": lambda rng, x: _some(rng, x, torch.iinfo(x.dtype).min, torch.iinfo(x.dtype).max, 0),
    "negative": lambda _, x: -x,
    "zeros": lambda _, x: torch.zeros_like(x),
}
_CHOICES: dict[str, Change] = {
    "zeros": lambda _, x: torch.zeros_like(x),
    "ones": lambda _, x: torch.ones_like(x),
    "inverse": lambda _, x: ~x,
    "shuffled": _shuffled,
}


def case(seed: int) -> Case:
    """The sample of a seed, with its own numbers and with others."""
    keys = list(TorchCases().rows())
    return case_of_key(keys[int(np.random.default_rng(seed).integers(len(keys)))])


def case_of_key(key: Key) -> Case:
    """The sample of a row, its own numbers first, then those of each kind that eager PyTorch takes."""
    torch.default_generator.manual_seed(0)
    rng = np.random.default_rng(0)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            module, tensors = call_of(key)
            calls = [tuple(_other(rng, kind, one) for one in tensors) for kind in _FLOATS | _WHOLE | _CHOICES]
            return case_of_module(module, tensors, later=[call for call in calls if _is_taken(module, call)])
    except Exception as error:
        raise InvalidCaseError(f"{type(error).__name__}: {error}") from error


def _other(rng: np.random.Generator, kind: str, x: Tensor) -> Tensor:
    """Numbers of a kind, or shuffled ones where those of the type have no such kind."""
    if x.dtype.is_complex or not x.numel():
        return x
    table = _FLOATS if x.dtype.is_floating_point else _CHOICES if x.dtype == torch.bool else _WHOLE
    return x.clone().copy_(table.get(kind, _shuffled)(rng, x))


def _is_taken(module: torch.nn.Module, call: Sequence[Tensor]) -> bool:
    try:
        with torch.no_grad():
            module(*(one.clone() for one in call))
    except (RuntimeError, IndexError, ValueError):
        return False
    return True
