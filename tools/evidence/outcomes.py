"""What a case ends in, from the best to the worst, and how results are compared with the framework's."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import IntEnum

import numpy as np

from qdialect.support.interface import Array

# The largest distance of f32 results, as a part of the largest number of the result, that counts as near.
FLOAT_LIMIT = 2e-5
# Of narrower floats, in units of their last place.
_NARROW_UNITS = 4


class Rank(IntEnum):
    """How good an outcome is; a row may only move to a smaller one."""

    EQUAL = 0
    """Every element is equal; a NaN is as good as another."""
    NEAR = 1
    """Floats within the limits above, or quantized values within a step."""
    FRAMEWORK = 2
    """The model's framework computes all or a part of it; the results are as they should be."""
    REFUSED = 3
    """An error with a reason, though the framework takes the model."""
    SLOW = 4
    """No answer in time."""
    WRONG = 5
    CRASH = 6
    """A signal, or an exception that is not the project's."""
    INVALID = 7
    """The framework refuses the model, or gives other numbers in each run: there is nothing to compare with."""


@dataclass(frozen=True, order=True)
class Outcome:
    """A rank and what there is to say of it: a bound, a reason, a difference."""

    rank: Rank
    detail: str = ""

    def __str__(self) -> str:
        name = self.rank.name.lower()
        return f"{name}: {self.detail}" if self.detail else name

    @classmethod
    def parse(cls, text: str) -> Outcome:
        """The outcome that `str` wrote; raises `KeyError` for another text."""
        name, _, detail = text.partition(": ")
        return cls(Rank[name.upper()], detail)

    @property
    def is_fault(self) -> bool:
        return self.rank in (Rank.SLOW, Rank.WRONG, Rank.CRASH)


EQUAL = Outcome(Rank.EQUAL)


def worst(outcomes: Iterable[Outcome]) -> Outcome:
    """Of the outcomes of a case in several forms, or of several outputs."""
    return max(outcomes, default=EQUAL)


def is_worse(found: Outcome, known: Outcome) -> bool:
    """Whether `found` is a step back from the row `known`.

    What the framework began to refuse, or stopped to, is neither: another release of it may have come.
    """
    if Rank.INVALID in (found.rank, known.rank):
        return found.is_fault
    return found.rank > known.rank


def compare_all(found: Sequence[Array], wanted: Sequence[Array], steps: int, limit: float = FLOAT_LIMIT) -> Outcome:
    """The outputs of a network beside those of its framework."""
    if len(found) != len(wanted):
        return Outcome(Rank.WRONG, f"{len(found)} outputs, but expected {len(wanted)}")
    return worst(compare(one, other, steps, limit) for one, other in zip(found, wanted, strict=True))


def compare(found: Array, wanted: Array, steps: int, limit: float = FLOAT_LIMIT) -> Outcome:
    """One output; quantized values may be `steps` away, other integers not at all, and f32 numbers `limit`."""
    if (found.dtype, found.shape) != (wanted.dtype, wanted.shape):
        return Outcome(
            Rank.WRONG, f"{found.dtype} of {list(found.shape)}, but expected {wanted.dtype} of {list(wanted.shape)}"
        )
    if wanted.dtype.kind in "fcV" or wanted.dtype.name == "bfloat16":
        return _compare_floats(found, wanted, limit)
    is_quantized = wanted.dtype.itemsize <= 2
    return EQUAL if np.array_equal(found, wanted) else _compare_integers(found, wanted, steps if is_quantized else 0)


def _compare_integers(found: Array, wanted: Array, steps: int) -> Outcome:
    if wanted.dtype.kind not in "iu":
        return Outcome(Rank.WRONG, f"{np.count_nonzero(found != wanted)} of {wanted.size} elements differ")
    away = np.abs(found.astype(object) - wanted.astype(object))
    largest, count = int(away.max()), np.count_nonzero(away)
    if largest <= steps:
        return Outcome(Rank.NEAR, "a step")
    return Outcome(Rank.WRONG, f"{count} of {wanted.size} elements differ by at most {largest}")


def _compare_floats(found: Array, wanted: Array, limit: float) -> Outcome:
    if wanted.dtype.kind == "c":
        parts = [(np.real(found), np.real(wanted)), (np.imag(found), np.imag(wanted))]
        return worst(_compare_floats(np.asarray(one), np.asarray(other), limit) for one, other in parts)
    if wanted.dtype.itemsize < 4:
        limit = _NARROW_UNITS * 2.0 ** (-10 if wanted.dtype == np.float16 else -7)
    one, other = found.astype(np.float64), wanted.astype(np.float64)
    finite = np.isfinite(other)
    if not np.array_equal(one[~finite], other[~finite], equal_nan=True) or not np.isfinite(one[finite]).all():
        return Outcome(Rank.WRONG, "other infinities or NaNs")
    one, other = one[finite], other[finite]
    if np.array_equal(one, other):
        return EQUAL if np.array_equal(np.signbit(one), np.signbit(other)) else Outcome(Rank.NEAR, "signs of zeros")
    distance = float(np.abs(one - other).max() / np.abs(other).max(initial=float(np.finfo(np.float32).tiny)))
    if distance > limit:
        return Outcome(Rank.WRONG, f"{distance:.2g} of the range away")
    # The next power of ten: the last bits depend on the CPU that the framework ran on.
    return Outcome(Rank.NEAR, f"1e{int(np.ceil(np.log10(max(distance, 1e-8))))}")
