"""The `qnn` dialect: the definitions of its ops. Their semantics are in `qdialect.reference`."""

import sys
from typing import cast

from qdialect.dialect.block_ops import BlockDenseOp, BlockDynamicDenseOp, BlockGatherOp, BlockWeightOp
from qdialect.dialect.contraction_ops import Conv2DOp, ConvTranspose2DOp, DenseOp, MatMulOp
from qdialect.dialect.dynamic_ops import AnyDynamic, DynamicConv2DOp, DynamicDenseOp
from qdialect.dialect.elementwise_ops import (
    AddOp,
    ClipOp,
    ConcatOp,
    DivOp,
    MaximumOp,
    MinimumOp,
    MulOp,
    PreluOp,
    SquaredDifferenceOp,
    SubOp,
)
from qdialect.dialect.f32_ops import (
    F32Conv2DOp,
    F32ExtremeOp,
    F32MatmulOp,
    F32MaxOp,
    F32MinOp,
    F32ProdOp,
    F32ReduceOp,
    F32SumOp,
)
from qdialect.dialect.fused_ops import (
    CONTRACTION_CLASSES,
    FUSED_CLASSES,
    AnyContraction,
    AnyFused,
    FusedConv2DOp,
    FusedConvTranspose2DOp,
    FusedDenseOp,
    FusedMatMulOp,
    FusedOp,
)
from qdialect.dialect.i16_ops import (
    AnyI16Contraction,
    I16Conv2DOp,
    I16DenseOp,
    I16MatmulOp,
    I16RequantizeOp,
    InterpolatedLutOp,
)
from qdialect.dialect.movement_ops import (
    BroadcastOp,
    ConstantOp,
    DynamicGatherOp,
    DynamicScatterOp,
    GatherOp,
    PadOp,
    ReshapeOp,
    SliceOp,
    TransposeOp,
)
from qdialect.dialect.op_base import ConstraintError, Qnn, QnnOp, build
from qdialect.dialect.pool_ops import AvgPool2DOp, MaxPool2DOp, MeanOp, SoftmaxOp
from qdialect.dialect.quantize_ops import DequantizeOp, QuantizeOp, RangeScaleOp, RangeZeroPointOp, RequantizeOp
from qdialect.dialect.recurrent_ops import DynamicLstmOp, F32GruOp, F32LstmOp, F32RecurrentOp, F32RnnOp
from qdialect.dialect.reduction_ops import (
    ArgMaxOp,
    ArgMinOp,
    CumSumOp,
    IntegerReduceOp,
    IntMaxOp,
    IntMinOp,
    IntProdOp,
    IntSumOp,
    L2NormalizeOp,
    ReduceMaxOp,
    ReduceMinOp,
    SumOp,
    TopKOp,
)
from qdialect.dialect.resize_ops import ResizeBilinearOp, ResizeNearestOp
from qdialect.dialect.unary_ops import (
    AbsOp,
    EluOp,
    ErfOp,
    ExpOp,
    GeluOp,
    HardswishOp,
    LeakyReluOp,
    LogOp,
    LutOp,
    Relu6Op,
    ReluOp,
    RsqrtOp,
    SigmoidOp,
    SiluOp,
    SqrtOp,
    TanhOp,
    UnaryOp,
)
from qdialect.ir._mlir import announce_dialect, ir
from qdialect.support.registry import import_modules

# A family of ops that nothing above names is found by the name of its file.
import_modules(__name__, __path__, "_ops")

OPS: tuple[type[QnnOp], ...] = tuple(cast("list[type[QnnOp]]", Qnn.operations))
"""Every op of the dialect, in the order of definition."""

UNARY_OPS: tuple[type[UnaryOp], ...] = tuple(op_class for op_class in OPS if issubclass(op_class, UnaryOp))
"""Every `UnaryOp` of the dialect; `qnn.lut`, which carries its table itself, is not among them."""


def load(context: ir.Context) -> None:
    """Load the dialect into `context`; a second call does nothing. Several threads may load it at once."""
    if context.is_dialect_loaded(Qnn.DIALECT_NAMESPACE):
        return
    with context:
        Qnn.load()


announce_dialect(Qnn.DIALECT_NAMESPACE, sys.modules[__name__])

__all__ = [
    "CONTRACTION_CLASSES",
    "FUSED_CLASSES",
    "OPS",
    "AbsOp",
    "AddOp",
    "ArgMaxOp",
    "ArgMinOp",
    "AvgPool2DOp",
    "BlockDenseOp",
    "BlockDynamicDenseOp",
    "BlockGatherOp",
    "BlockWeightOp",
    "BroadcastOp",
    "ClipOp",
    "ConcatOp",
    "ConstantOp",
    "ConstraintError",
    "AnyContraction",
    "Conv2DOp",
    "ConvTranspose2DOp",
    "CumSumOp",
    "DenseOp",
    "DequantizeOp",
    "DivOp",
    "AnyDynamic",
    "DynamicConv2DOp",
    "DynamicDenseOp",
    "DynamicLstmOp",
    "DynamicGatherOp",
    "DynamicScatterOp",
    "EluOp",
    "ErfOp",
    "ExpOp",
    "AnyFused",
    "FusedConv2DOp",
    "FusedConvTranspose2DOp",
    "FusedDenseOp",
    "FusedMatMulOp",
    "FusedOp",
    "GatherOp",
    "GeluOp",
    "HardswishOp",
    "AnyI16Contraction",
    "I16Conv2DOp",
    "I16DenseOp",
    "I16MatmulOp",
    "I16RequantizeOp",
    "IntMaxOp",
    "IntMinOp",
    "IntProdOp",
    "IntSumOp",
    "IntegerReduceOp",
    "InterpolatedLutOp",
    "L2NormalizeOp",
    "LeakyReluOp",
    "LogOp",
    "LutOp",
    "MatMulOp",
    "MaxPool2DOp",
    "MaximumOp",
    "MeanOp",
    "MinimumOp",
    "MulOp",
    "PadOp",
    "PreluOp",
    "Qnn",
    "QnnOp",
    "QuantizeOp",
    "F32Conv2DOp",
    "F32ExtremeOp",
    "F32GruOp",
    "F32LstmOp",
    "F32MatmulOp",
    "F32MaxOp",
    "F32MinOp",
    "F32ProdOp",
    "F32RecurrentOp",
    "F32ReduceOp",
    "F32RnnOp",
    "F32SumOp",
    "RangeScaleOp",
    "RangeZeroPointOp",
    "Relu6Op",
    "ReduceMaxOp",
    "ReduceMinOp",
    "ReluOp",
    "RequantizeOp",
    "ReshapeOp",
    "ResizeBilinearOp",
    "ResizeNearestOp",
    "RsqrtOp",
    "SigmoidOp",
    "SiluOp",
    "SliceOp",
    "SoftmaxOp",
    "SqrtOp",
    "SubOp",
    "SumOp",
    "SquaredDifferenceOp",
    "TanhOp",
    "TopKOp",
    "TransposeOp",
    "UNARY_OPS",
    "UnaryOp",
    "build",
    "load",
]
