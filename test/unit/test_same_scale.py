"""Scales that are one float32 number are the same to every pass: f32 values are computed with no more of them.

`NEAR` is what a double of a file becomes when a text gives six digits of it.  Each test also runs the graph before and
after its pass; where an arithmetic reads doubles, a pass must keep those that were read.
"""

from typing import Any

import numpy as np
import pytest
from graphs import Body, failures, graph, op_names, run_both
from quantized_layers import WEIGHT_SCALES, add, clip, conv, fused, lut, random_table, requantize, unary

from qdialect.arithmetic import AddArithmetic, Multiplier, Rounding, identity_table, same_scale
from qdialect.dialect import MulOp, Relu6Op, ReluOp, build
from qdialect.passes.canonicalize import CanonicalizePass
from qdialect.passes.compose_luts import ComposeLutsPass
from qdialect.passes.fuse_clamp import FuseClampPass
from qdialect.passes.fuse_lut import FuseLutPass
from qdialect.passes.fuse_requantize import FuseRequantizePass
from qdialect.passes.fuse_residual import FuseResidualPass
from qdialect.passes.pass_base import Pass

EXACT, NEAR = 0.17717300355434418, 0.177173
IMAGE, OUT = "tensor<1x6x7x4xui8>", "tensor<1x6x7x5xui8>"
EVERY = "tensor<16x20xui8>"
TABLE = random_table()
FUSED: dict[str, Any] = {"output_scale": EXACT}


def test_the_two_scales_are_one_float32_number() -> None:
    assert EXACT != NEAR
    assert same_scale(EXACT, NEAR)


def mul(lhs: Any, rhs: Any, scale: float) -> Any:
    return build(
        MulOp,
        lhs,
        rhs,
        element="ui8",
        lhs_scale=scale,
        lhs_zero_point=7,
        rhs_scale=0.125,
        rhs_zero_point=11,
        output_scale=0.1,
        output_zero_point=5,
        output_min=0,
        output_max=255,
        rounding=Rounding.F32_RNE_ZP_LAST,
    )


def channels(first: float) -> tuple[float, ...]:
    return (first, *WEIGHT_SCALES[1:])


def of_itself(x: Any) -> Any:
    table = lut(x, TABLE, input_scale=EXACT)
    return mul(x, table, NEAR).output


FUSIONS: dict[str, tuple[Pass, list[str], Body, list[str]]] = {
    "lut": (
        FuseLutPass(),
        [IMAGE],
        lambda x: lut(fused(x, **FUSED), TABLE, input_scale=NEAR),
        ["qnn.fused_conv2d"],
    ),
    "clamp_after_fused": (
        FuseClampPass(),
        [IMAGE],
        lambda x: unary(Relu6Op, fused(x, **FUSED), input_scale=NEAR, output_scale=NEAR, output_zero_point=7),
        ["qnn.fused_conv2d"],
    ),
    "clamp_that_keeps_its_scale": (
        FuseClampPass(),
        [IMAGE],
        lambda x: unary(ReluOp, fused(x, **FUSED), input_scale=NEAR, output_scale=EXACT, output_zero_point=7),
        ["qnn.fused_conv2d"],
    ),
    "clamp_after_add": (
        FuseClampPass(),
        [EVERY, EVERY],
        lambda x, y: unary(
            ReluOp,
            add(x, y, output_scale=EXACT, output_zero_point=7),
            input_scale=NEAR,
            output_scale=NEAR,
            output_zero_point=7,
        ),
        ["qnn.add"],
    ),
    "residual_left": (
        FuseResidualPass(),
        [IMAGE, OUT],
        lambda x, y: add(fused(x, **FUSED), y, lhs_scale=NEAR, arithmetic=AddArithmetic.FLOAT_ONCE),
        ["qnn.fused_conv2d"],
    ),
    "residual_right": (
        FuseResidualPass(),
        [IMAGE, OUT],
        lambda x, y: add(y, fused(x, **FUSED), rhs_scale=NEAR, arithmetic=AddArithmetic.F32_RECIPROCAL),
        ["qnn.fused_conv2d"],
    ),
    "requantize": (
        FuseRequantizePass(),
        [IMAGE],
        lambda x: requantize(conv(x, input_scale=EXACT), input_scale=NEAR, multiplier=Multiplier.F64),
        ["qnn.fused_conv2d"],
    ),
    "requantize_channels": (
        FuseRequantizePass(),
        [IMAGE],
        lambda x: requantize(
            conv(x, weight_scales=(EXACT, *WEIGHT_SCALES[1:])), weight_scales=(NEAR, *WEIGHT_SCALES[1:])
        ),
        ["qnn.fused_conv2d"],
    ),
    "chain": (
        ComposeLutsPass(),
        [EVERY],
        lambda x: lut(lut(x, TABLE, output_scale=EXACT, output_zero_point=7), TABLE, input_scale=NEAR),
        ["qnn.lut"],
    ),
    "diamond": (ComposeLutsPass(), [EVERY], of_itself, ["qnn.lut"]),
    "lut_to_clip": (
        ComposeLutsPass(),
        [EVERY],
        lambda x: lut(
            x,
            np.maximum(identity_table(), 9),
            input_scale=EXACT,
            output_scale=NEAR,
            output_zero_point=7,
        ),
        ["qnn.clip"],
    ),
    "identity_table": (
        CanonicalizePass(),
        [EVERY],
        lambda x: clip(lut(x, identity_table(), input_scale=EXACT, output_scale=NEAR, output_zero_point=7), 3, 99),
        ["qnn.clip"],
    ),
    "identity_requantize": (
        CanonicalizePass(),
        [EVERY],
        lambda x: clip(
            requantize(x, input_scale=EXACT, weight_scales=(1.0,), input_zero_points=(7,), output_scale=NEAR),
            3,
            99,
        ),
        ["qnn.clip"],
    ),
}


@pytest.mark.parametrize("name", FUSIONS)
def test_scales_that_are_one_float32_number_fuse(name: str) -> None:
    one, inputs, body, wanted = FUSIONS[name]
    assert op_names(run_both(graph(inputs, body), one)) == wanted


@pytest.mark.parametrize("name", ["lut", "chain"])
def test_the_next_float32_number_is_another_scale(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(globals(), "NEAR", float(np.nextafter(np.float32(EXACT), np.float32(1))))
    one, inputs, body, _ = FUSIONS[name]
    assert "input_scale must be" in failures(graph(inputs, body), one)[0]


@pytest.mark.parametrize(
    "how",
    [
        {"arithmetic": AddArithmetic.SHIFTED_FIXED},
        {"arithmetic": AddArithmetic.REQUANTIZE_EACH, "rounding": Rounding.FIXED64_UP, "multiplier": Multiplier.F64},
    ],
)
def test_a_sum_that_reads_doubles_keeps_its_own(how: dict[str, Any]) -> None:
    module = graph([IMAGE, OUT], lambda x, y: add(fused(x, **FUSED), y, lhs_scale=NEAR, **how))
    assert "lhs_scale must be" in failures(module, FuseResidualPass())[0]
