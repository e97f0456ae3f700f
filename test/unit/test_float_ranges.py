"""Float functions off the middle of their range, compiled, beside PyTorch, ONNX Runtime and LiteRT."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

from qdialect.arithmetic import transcendental
from tools.evidence import float_sweep
from tools.evidence.float_sweep import Function, Subject, compared, numbers, of_torch, pairs, rows, torch

_UNARY = (
    *("acos", "acosh", "asin", "asinh", "atan", "atanh", "cos", "cosh", "erfc", "exp", "expm1", "hardshrink", "log1p"),
    *("sign", "sin", "sinh", "softshrink", "tan", "0.3 pow", "1.0 pow", "fmod number", "remainder number"),
)
_BINARY = (
    *("addcmul", "div floor", "div trunc", "floor_divide", "fmod", "hypot", "lerp", "lerp high", "logaddexp"),
    *("logaddexp2", "pow", "remainder"),
)
_ROWS = ("std", "var biased", "logsumexp", "norm", "norm 1")
_FINITE = np.array([row for row in rows(1) if np.abs(row).max() < 1e37])
"""The sums of larger ones overflow."""
_NUMBERS = {"one": (numbers(1, 1)[::5],), "two": tuple(one[::5] for one in pairs(1)), "rows": (_FINITE,)}


@pytest.mark.parametrize(
    ("kind", "functions", "names"),
    [
        ("one", float_sweep.UNARY, _UNARY),
        ("two", float_sweep.BINARY, _BINARY),
        ("rows", float_sweep.ROWS, _ROWS),
    ],
)
def test_of_pytorch(kind: str, functions: Mapping[str, Function], names: tuple[str, ...]) -> None:
    """Within a few units of the last place of PyTorch or of the truth, with the same ends; all in one program."""
    inputs = _NUMBERS[kind]

    def joined(*given: Any) -> Any:
        return torch.stack([functions[name](*given) for name in names])

    found, theirs = of_torch(joined, inputs)
    truth: Any = joined(*(torch.from_numpy(one).double() for one in inputs))
    for index, name in enumerate(names):
        row = compared(name, "PyTorch", inputs, found[index], theirs[index], truth[index].numpy())
        assert row.is_right, str(row)


@pytest.mark.parametrize(
    ("name", "framework"),
    [
        *((name, "ONNX Runtime") for name in ("Acosh", "Atanh", "Elu", "LpNormalization", "Mod", "ThresholdedRelu")),
        *((name, "LiteRT") for name in ("FLOOR_DIV", "FLOOR_MOD", "SIN")),
    ],
)
def test_of_other_frameworks(name: str, framework: str) -> None:
    (subject,) = (one for one in float_sweep.subjects() if (one.name, one.framework) == (name, framework))
    inputs = _NUMBERS[subject.inputs] if subject.inputs != "rows" else (rows(1),)
    row = subject.row(_divided(subject, inputs))
    assert row.is_right, str(row)
    assert not row.reason


def _divided(subject: Subject, inputs: Any) -> Any:
    return [one[inputs[1] != 0] for one in inputs] if subject.name == "FLOOR_DIV" else inputs


def test_a_remainder_is_exact_for_every_quotient() -> None:
    """What kernels compute beside what the reference does, for operands of all sizes."""
    x, y = (one.astype(np.float64) for one in pairs(2))
    with np.errstate(all="ignore"):
        found = transcendental.remainder(transcendental.NUMPY, x, y)
        wanted = np.fmod(x, y)
    np.testing.assert_array_equal(found, wanted)
    ends = wanted == 0
    np.testing.assert_array_equal(np.signbit(found[ends]), np.signbit(wanted[ends]))


def test_a_wrong_result_is_seen() -> None:
    x = np.array([1.0, 2.0, 3.0], np.float32)
    truth = x.astype(np.float64)
    assert compared("abs", "PyTorch", (x,), x, x, truth).is_right
    off = x + np.float32(1e-5)
    assert not compared("abs", "PyTorch", (x,), off, x, truth).is_right
    for end in (np.inf, np.nan):
        row = compared("abs", "PyTorch", (x,), np.array([1, end, 3], np.float32), x, truth)
        assert (row.is_right, row.ends) == (False, 1)
    zero = np.zeros(1, np.float32)
    assert compared("abs", "PyTorch", (zero,), -zero, zero, np.zeros(1)).ends == 1
