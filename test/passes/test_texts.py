"""Covers R1, R2, R3, R4, R5, R8, R11, R12, R14, R16: each function in the lit tests of passes keeps its bits.

The reference runs it before and after its passes: as it is, with other weights, and with each choice of arithmetic.
"""

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from drawn_graphs import copied, graph, run_both, same_bits
from op_texts import all_ops, functions, with_choices
from quantized_layers import WEIGHT_SCALES, conv

from qdialect.arithmetic import Activation, Multiplier, Scaling
from qdialect.arithmetic.activations import STAGE_ACTIVATIONS
from qdialect.dialect import ConstantOp, DequantizeOp, FusedConv2DOp, QuantizeOp, build
from qdialect.dialect.constants import constant, constant_value
from qdialect.dialect.stages.builtin_stages import ActivationStage, DequantizeStage, QuantizeStage
from qdialect.ir._mlir import ir
from qdialect.ir.context import verify
from qdialect.passes.float_chains import build_activation
from qdialect.passes.fuse_float_epilogue import FuseFloatEpiloguePass
from qdialect.passes.pipeline import PassManager

LIT = Path(__file__).parents[1] / "lit" / "passes"
# What these make is no longer of ops that the reference runs, or was not before; or they change nothing.
OTHERS = re.compile(r"(to|from|import)-|outline|inline|-no-match")
OPTION = re.compile(r"--(?:qnn-[\w-]+|fuse-qnn)(?:=\S+)?")
FILES = {path.stem: path for path in sorted(LIT.glob("*.mlir")) if not OTHERS.search(path.stem)}


def pipelines(text: str) -> set[str]:
    """The passes of each RUN line."""
    lines = (OPTION.findall(line) for line in text.splitlines() if line.startswith("// RUN: %qopt %s --"))
    texts = {",".join(re.sub("=(.*)", r"{\1}", one[2:]) for one in names) for names in lines}
    return texts - {""}


def with_drawn_weights(module: ir.Module) -> ir.Module:
    """The module with other numbers in constants of integers that are all the same."""
    drawn, rng = copied(module), np.random.default_rng(0)
    for op in all_ops(drawn):
        array = constant_value(op.results[0]) if isinstance(op, ConstantOp) else None
        if array is None or array.dtype.kind not in "iu" or array.size == 1 or (array != array.flat[0]).any():
            continue
        ends, all_bits = np.iinfo(np.int16 if array.itemsize > 2 else array.dtype), np.iinfo(array.dtype)
        values = rng.integers(ends.min, ends.max, array.shape).astype(array.dtype)
        # Some sums wrap around.
        values.flat[::5] = rng.choice([all_bits.min, all_bits.max], values.flat[::5].shape)
        with ir.InsertionPoint(op), op.location:
            op.operation.results[0].replace_all_uses_with(constant(values))
    return drawn


def after_passes(module: ir.Module, pipeline: str, name: str) -> ir.Module:
    """The module after the passes, which keep its bits."""
    after = copied(module)
    PassManager.parse(pipeline).run(after)
    verify(after)
    same_bits(module, after, name)
    return after


@pytest.mark.parametrize("name", FILES)
def test_bits_stay(name: str) -> None:
    text = FILES[name].read_text()
    first, *others = sorted(pipelines(text))
    for function, module in functions(text):
        drawn = with_drawn_weights(module)
        for pipeline in others:
            after_passes(drawn, pipeline, function)
        changed = [one for one in (module, drawn) if str(after_passes(one, first, function)) != str(one)]
        if len(changed) == 2 and not name.startswith("pipeline"):
            for variant in with_choices(drawn):
                after_passes(variant, first, function)


@pytest.mark.parametrize("name", ["fuse-float-epilogue", "fuse-requantize"])
def test_ops_that_are_fused_and_decomposed_fuse_again(name: str) -> None:
    text = FILES[name].read_text()
    (pipeline,) = pipelines(text)
    for function, module in functions(text):
        fused = after_passes(module, pipeline, function)
        apart = after_passes(fused, "qnn-decompose-fused", function)
        assert "qnn.fused" not in str(apart)
        assert str(after_passes(apart, f"{pipeline},qnn-fuse-clamp", function)) == str(fused), function


def test_weight_scales_are_derived_where_those_of_the_contraction_do_not_give_the_multipliers() -> None:
    text = FILES["raise-requantize"].read_text()
    _, module = next(functions(text.replace("[0.25, 0.125]", "[0.25, 0.2]")))
    found = re.findall(r"weight_scales = (array<.*?>)", str(after_passes(module, "qnn-raise-requantize", "")))
    assert found[0] == found[1] != "array<f64: 5.000000e-01, 2.500000e-01>"


@pytest.mark.parametrize("activation", STAGE_ACTIVATIONS)
@pytest.mark.parametrize("scaling", Scaling)
def test_every_activation_fuses(activation: Activation, scaling: Scaling) -> None:
    alpha = 0.1 if activation.has_alpha else 0.0
    # One scale has no axis.
    by_channel, axis = (WEIGHT_SCALES, 3) if scaling is Scaling.DIVIDE else (WEIGHT_SCALES[:1], 0)
    scales = tuple(float(np.float32(0.02) * np.float32(scale)) for scale in by_channel)
    how: dict[str, Any] = {"scales": (0.05,), "zero_points": (7,), "scaling": scaling}

    def body(x: ir.Value) -> ir.Value:
        sums = conv(x, weight_scales=by_channel)
        values = build(DequantizeOp, sums, element="f32", scales=scales, zero_points=(0,), axis=axis).output
        return build(QuantizeOp, build_activation(activation, values, alpha), element="ui8", **how).output

    after = run_both(graph(["tensor<1x6x7x4xui8>"], body), FuseFloatEpiloguePass())
    (op,) = all_ops(after)[2:-1]
    assert isinstance(op, FusedConv2DOp)
    activated = ActivationStage(function=activation, alpha=float(np.float32(alpha)))
    assert op.epilogue == (DequantizeStage(multiplier=Multiplier.F32), activated, QuantizeStage(scaling=scaling))
