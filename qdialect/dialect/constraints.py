"""Checks that several ops share; each raises `ConstraintError` under the caller's label."""

from __future__ import annotations

from collections.abc import Sequence

from qdialect._mlir import ir
from qdialect.dialect.op_base import Shape, require
from qdialect.dialect.type_constraints import range_of


def check_axis(label: str, axis: int, shape: Shape) -> None:
    """`axis` names a dimension of `shape`; a scalar has none."""
    rank = len(shape)
    require(0 <= axis < rank, label, f"axis must be in [0, {rank}), but got {axis}")


def channel_count(label: str, axis: int, shape: Shape) -> int:
    """Extent of `shape` along `axis`; a scalar counts as one channel, whose axis is 0."""
    extents = shape or (1,)
    check_axis(label, axis, extents)
    return extents[axis]


def check_channel_parameters(label: str, channels: int, **parameters: Sequence[float]) -> None:
    """Each parameter list has one entry for the tensor or one for each channel."""
    for name, values in parameters.items():
        wanted = "1 entry" if channels == 1 else f"1 or {channels} entries"
        require(len(values) in (1, channels), label, f"{name} must have {wanted}, but got {len(values)}")


def check_zero_points(label: str, name: str, zero_points: Sequence[int], type_: ir.Type) -> None:
    """Every zero point lies in the range of the tensor it belongs to."""
    low, high = range_of(type_)
    for value in zero_points:
        require(low <= value <= high, label, f"{name} must be in [{low}, {high}], but got {value}")


def check_bounds(label: str, names: tuple[str, str], low: int, high: int, type_: ir.Type) -> None:
    """A clamp is not empty and lies in the range of the tensor it clamps."""
    minimum, maximum = range_of(type_)
    holds = minimum <= low <= high <= maximum
    wanted = f"{names[0]} and {names[1]} must be ordered and in [{minimum}, {maximum}]"
    require(holds, label, f"{wanted}, but got {low} and {high}")


def check_positive(label: str, name: str, values: Sequence[int], count: int, minimum: int = 1) -> None:
    """A list of `count` integers, each at least `minimum`."""
    holds = len(values) == count and all(value >= minimum for value in values)
    plural = "" if count == 1 else "s"
    require(holds, label, f"{name} must be {count} integer{plural} of at least {minimum}, but got {list(values)}")


def window_extent(label: str, what: str, size: int, padding: int, window: int, stride: int) -> int:
    """Number of windows along one dimension of `size` elements with `padding` elements added."""
    require(size + padding >= window, label, f"{what} must be at least {window} with padding, but got {size + padding}")
    return (size + padding - window) // stride + 1


def broadcast_shape(label: str, what: str, lhs: Shape, rhs: Shape) -> Shape:
    """The shape that two shapes broadcast to by NumPy's rules."""
    rank = max(len(lhs), len(rhs))
    left = (1,) * (rank - len(lhs)) + lhs
    right = (1,) * (rank - len(rhs)) + rhs
    fits = all(a == b or 1 in (a, b) for a, b in zip(left, right, strict=True))
    require(fits, label, f"{what} must broadcast, but got {list(lhs)} and {list(rhs)}")
    return tuple(max(a, b) for a, b in zip(left, right, strict=True))


def shape_over_axes(label: str, shape: Shape, axes: Sequence[int], keep_dims: bool) -> Shape:
    """`shape` reduced over `axes`, which are distinct, ascending and name dimensions of it; at least one."""
    rank = len(shape)
    holds = len(axes) > 0 and list(axes) == sorted(set(axes)) and axes[0] >= 0 and axes[-1] < rank
    require(holds, label, f"axes must be distinct, ascending and in [0, {rank}), but got {list(axes)}")
    return tuple(1 if i in axes else extent for i, extent in enumerate(shape) if keep_dims or i not in axes)
