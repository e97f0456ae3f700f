"""Sums, extremes, softmax and what else reads a whole dimension, and cells over the steps of a sequence."""

from __future__ import annotations

from typing import NoReturn

from qdialect.batching.site import RULES, Site

_OVER_AXES = (
    *("mean", "sum", "reduce_max", "reduce_min"),
    *(f"{kind}_{name}" for kind in ("f32", "int") for name in ("sum", "max", "min", "prod")),
)


@RULES.register(*(f"qnn.{name}" for name in _OVER_AXES))
def over_axes(site: Site) -> int:
    """Reduced dimensions stay as extents of 1, or go."""
    axis, view = site.first(), site.view
    for reduced in view.axes:
        site.refuse_axis(axis, reduced, "it reduces")
    return axis if view.keep_dims else axis - sum(reduced < axis for reduced in view.axes)


@RULES.register("qnn.arg_max", "qnn.arg_min")
def index_along(site: Site) -> int:
    """The reduced dimension stays as an extent of 1, or goes."""
    axis, view = site.first(), site.view
    site.refuse_axis(axis, view.axis, "it reduces")
    return axis if view.keep_dims or axis < view.axis else axis - 1


@RULES.register("qnn.softmax", "qnn.cumsum", "qnn.top_k")
def along(site: Site) -> int:
    """Each element depends on all along a dimension."""
    axis = site.first()
    site.refuse_axis(axis, site.view.axis, "its elements depend on each other along")
    return axis


@RULES.register("qnn.l2_normalize", "qnn.i16_layer_norm")
def along_the_last(site: Site) -> int:
    """Each element depends on all along the last dimension."""
    axis = site.first()
    site.refuse_axis(axis, len(site.result) - 1, "its elements depend on each other along")
    return axis


@RULES.register("qnn.f32_lstm", "qnn.f32_gru", "qnn.f32_rnn")
def over_steps(site: Site) -> int:
    """Gates [T, B, G * H] and the initial state [B, S * H] give states [T + 1, B, S * H]."""
    gates, recurrence, initial, *others = site.axes
    if recurrence is not None or any(other is not None for other in others):
        site.refuse("its weights have the batch")
    if gates not in (None, 1) or initial not in (None, 0):
        site.refuse("its time steps or its states have the batch")
    if gates is None:
        site.grown[0] = 1
    if initial is None:
        site.grown[2] = 0
    return 1


@RULES.register("qnn.dynamic_lstm")
def over_steps_of_all(site: Site) -> NoReturn:
    """The states of all entries are quantized by one range."""
    site.refuse("its states are quantized by the range of all entries")
