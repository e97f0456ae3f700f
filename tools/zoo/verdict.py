"""Whether our results are as near to the truth as the framework's, and what it is where they are not."""

from __future__ import annotations

from dataclasses import replace

from tools.zoo.agreement import Distance, Ties
from tools.zoo.results import Result

# An output in f32 is a rounding away from the truth, whoever computes it.
_ROUNDING = 2.0**-23
# A float32 number of up to 256 steps is known to 2^-16 of a step, and there are some operations in a unit.
TIE = 2.0**-14
"""In steps of a quantization: how near to a tie a position is that a rounding of float32 can move over it."""


def verdict(result: Result) -> str:
    """What the report says; empty where one of the distances is unknown."""
    ours, framework = result.ours, result.framework
    if ours is None or framework is None:
        return ""
    further = _further(ours, framework)
    if not further:
        return "as near to the truth"
    if result.plain is not None and not _further(ours, _furthest(framework, result.plain)):
        return "within the framework's spread"
    return _amplified(result.flipped) or f"further from the truth ({' and '.join(further)})"


def is_further(result: Result) -> bool:
    """Whether the distance is to be explained."""
    return verdict(replace(result, flipped=None)).startswith("further")


def kind(text: str) -> str:
    """The verdict without its numbers."""
    return text.partition(":")[0]


def _amplified(flipped: Ties | None) -> str:
    if flipped is None or flipped.different == 0 or flipped.distance > TIE:
        return ""
    elements = f"{flipped.different} element{'s' if flipped.different > 1 else ''}"
    units = f"{flipped.units} unit{'s' if flipped.units > 1 else ''}"
    return f"amplified ties: {elements} in {units}, at most {flipped.distance:.1g} of a step from a tie"


def _further(ours: Distance, other: Distance) -> list[str]:
    pairs = (("mean", ours.mean, other.mean), ("maximum", ours.maximum, other.maximum))
    return [name for name, found, limit in pairs if found > limit + _ROUNDING]


def _furthest(one: Distance, other: Distance) -> Distance:
    return Distance(max(one.mean, other.mean), max(one.maximum, other.maximum))
