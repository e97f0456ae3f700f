"""`fuse-qnn`: the fusion passes in the order in which they feed each other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from qdialect.passes.canonicalize import CanonicalizePass
from qdialect.passes.compose_luts import ComposeLutsPass
from qdialect.passes.drop_unit_extents import DropUnitExtentsPass
from qdialect.passes.fold_padding import FoldPaddingPass
from qdialect.passes.fuse_bias import FuseBiasPass
from qdialect.passes.fuse_block_weights import FuseBlockWeightsPass
from qdialect.passes.fuse_clamp import FuseClampPass
from qdialect.passes.fuse_dequantize import FuseDequantizePass
from qdialect.passes.fuse_dynamic_epilogue import FuseDynamicEpiloguePass
from qdialect.passes.fuse_float_epilogue import FuseFloatEpiloguePass
from qdialect.passes.fuse_lut import FuseLutPass
from qdialect.passes.fuse_requantize import FuseRequantizePass
from qdialect.passes.fused_stages import StageFusionPass
from qdialect.passes.raise_qdq import RaiseQdqPass
from qdialect.passes.raise_requantize import RaiseRequantizePass
from qdialect.passes.registry import CompositePass, Pass, fusions, register
from qdialect.passes.sink_reshape import SinkReshapePass
from qdialect.passes.sink_transpose import SinkTransposePass
from qdialect.passes.split_extremes import SplitExtremesPass
from qdialect.passes.tabulate_elementwise import TabulateElementwisePass
from qdialect.passes.tabulate_unary import KEEP, TabulateUnaryPass, check_leaky_relu
from qdialect.passes.trim_taps import TrimTapsPass


@register
@dataclass(frozen=True)
class FuseQnnPass(CompositePass):
    """Turn a quantized graph into one fused op for each kernel.

    Runs canonicalize, raise-qdq, sink-transpose, sink-reshape, drop-unit-extents, fuse-dynamic-epilogue, fuse-bias,
    raise-requantize, tabulate-elementwise, fold-padding, trim-taps, tabulate-unary, compose-luts, fuse-requantize,
    fuse-float-epilogue, fuse-clamp, fuse-residual, fuse-clamp, fuse-lut, fuse-dequantize, fuse-block-weights,
    split-extremes, canonicalize.
    At the position of fuse-residual, every registered `StageFusionPass` runs.  `leaky-relu` is the option of
    qnn-tabulate-unary.
    """

    name: ClassVar[str] = "fuse-qnn"
    dependent_dialects = ()
    leaky_relu: str = KEEP

    def __post_init__(self) -> None:
        check_leaky_relu(self.name, self.leaky_relu)

    def passes(self) -> Sequence[Pass]:
        return (
            CanonicalizePass(),
            # Float regions first: the ops that they become take part in everything below.
            RaiseQdqPass(),
            # A transpose between a contraction and its epilogue would hide one from the other.
            SinkTransposePass(),
            SinkReshapePass(),
            # Dimensions are where they stay by now, and what a reshape kept apart meets below.
            DropUnitExtentsPass(),
            # Scales that are known at run time belong to no fused op, so nothing below takes these accumulators.
            FuseDynamicEpiloguePass(),
            FuseBiasPass(),
            # Zero points show at the accumulator 0, so what was added to accumulators must be their bias by now.
            RaiseRequantizePass(),
            # Ops after the raised value start from 8 bits by now.
            TabulateElementwisePass(),
            FoldPaddingPass(),
            # All padding is the convolution's own by now.
            TrimTapsPass(),
            # Everything unary is a table before tables are composed; those that clamp come out as clips.
            TabulateUnaryPass(self.leaky_relu),
            ComposeLutsPass(),
            FuseRequantizePass(),
            FuseFloatEpiloguePass(),
            # A clamp goes before the sum it belongs to and before the table that ends the op.
            FuseClampPass(),
            *(one() for one in fusions().values() if issubclass(one, StageFusionPass)),
            # The relu after a sum.
            FuseClampPass(),
            FuseLutPass(),
            # Accumulators that are quantized again belong to the ops above; the others leave as f32 values.
            FuseDequantizePass(),
            # Weights that integer products read have gone into them by now.
            FuseBlockWeightsPass(),
            # Element-wise ops that are left are kernels: those of rows also find the rows' extremes.
            SplitExtremesPass(),
            CanonicalizePass(),
        )
