"""The `qnn` dialect: the definitions of its ops. Their semantics are in `qdialect.reference`."""

import sys
from typing import cast

from qdialect.dialect.block_ops import BlockDenseOp as BlockDenseOp
from qdialect.dialect.block_ops import BlockDynamicDenseOp as BlockDynamicDenseOp
from qdialect.dialect.block_ops import BlockGatherOp as BlockGatherOp
from qdialect.dialect.block_ops import BlockWeightOp as BlockWeightOp
from qdialect.dialect.contraction_ops import CONTRACTION_CLASSES as CONTRACTION_CLASSES
from qdialect.dialect.contraction_ops import FUSED_CLASSES as FUSED_CLASSES
from qdialect.dialect.contraction_ops import AnyContraction as AnyContraction
from qdialect.dialect.contraction_ops import AnyFused as AnyFused
from qdialect.dialect.contraction_ops import Conv2DOp as Conv2DOp
from qdialect.dialect.contraction_ops import ConvTranspose2DOp as ConvTranspose2DOp
from qdialect.dialect.contraction_ops import DenseOp as DenseOp
from qdialect.dialect.contraction_ops import FusedConv2DOp as FusedConv2DOp
from qdialect.dialect.contraction_ops import FusedConvTranspose2DOp as FusedConvTranspose2DOp
from qdialect.dialect.contraction_ops import FusedDenseOp as FusedDenseOp
from qdialect.dialect.contraction_ops import FusedMatMulOp as FusedMatMulOp
from qdialect.dialect.contraction_ops import FusedOp as FusedOp
from qdialect.dialect.contraction_ops import MatMulOp as MatMulOp
from qdialect.dialect.dynamic_ops import AnyDynamic as AnyDynamic
from qdialect.dialect.dynamic_ops import DynamicConv2DOp as DynamicConv2DOp
from qdialect.dialect.dynamic_ops import DynamicDenseOp as DynamicDenseOp
from qdialect.dialect.elementwise_ops import AddOp as AddOp
from qdialect.dialect.elementwise_ops import ClipOp as ClipOp
from qdialect.dialect.elementwise_ops import ConcatOp as ConcatOp
from qdialect.dialect.elementwise_ops import DivOp as DivOp
from qdialect.dialect.elementwise_ops import MaximumOp as MaximumOp
from qdialect.dialect.elementwise_ops import MinimumOp as MinimumOp
from qdialect.dialect.elementwise_ops import MulOp as MulOp
from qdialect.dialect.elementwise_ops import PreluOp as PreluOp
from qdialect.dialect.elementwise_ops import SquaredDifferenceOp as SquaredDifferenceOp
from qdialect.dialect.elementwise_ops import SubOp as SubOp
from qdialect.dialect.f32_ops import F32Conv2DOp as F32Conv2DOp
from qdialect.dialect.f32_ops import F32ExtremeOp as F32ExtremeOp
from qdialect.dialect.f32_ops import F32MatmulOp as F32MatmulOp
from qdialect.dialect.f32_ops import F32MaxOp as F32MaxOp
from qdialect.dialect.f32_ops import F32MinOp as F32MinOp
from qdialect.dialect.f32_ops import F32ProdOp as F32ProdOp
from qdialect.dialect.f32_ops import F32ReduceOp as F32ReduceOp
from qdialect.dialect.f32_ops import F32SumOp as F32SumOp
from qdialect.dialect.i16_ops import AnyI16Contraction as AnyI16Contraction
from qdialect.dialect.i16_ops import I16Conv2DOp as I16Conv2DOp
from qdialect.dialect.i16_ops import I16DenseOp as I16DenseOp
from qdialect.dialect.i16_ops import I16MatmulOp as I16MatmulOp
from qdialect.dialect.i16_ops import I16RequantizeOp as I16RequantizeOp
from qdialect.dialect.i16_ops import InterpolatedLutOp as InterpolatedLutOp
from qdialect.dialect.movement_ops import BroadcastOp as BroadcastOp
from qdialect.dialect.movement_ops import ConstantOp as ConstantOp
from qdialect.dialect.movement_ops import DynamicGatherOp as DynamicGatherOp
from qdialect.dialect.movement_ops import DynamicScatterOp as DynamicScatterOp
from qdialect.dialect.movement_ops import GatherOp as GatherOp
from qdialect.dialect.movement_ops import PadOp as PadOp
from qdialect.dialect.movement_ops import ReshapeOp as ReshapeOp
from qdialect.dialect.movement_ops import SliceOp as SliceOp
from qdialect.dialect.movement_ops import TransposeOp as TransposeOp
from qdialect.dialect.op_base import ConstraintError as ConstraintError
from qdialect.dialect.op_base import Qnn as Qnn
from qdialect.dialect.op_base import QnnOp as QnnOp
from qdialect.dialect.op_base import build as build
from qdialect.dialect.pool_ops import AvgPool2DOp as AvgPool2DOp
from qdialect.dialect.pool_ops import MaxPool2DOp as MaxPool2DOp
from qdialect.dialect.pool_ops import MeanOp as MeanOp
from qdialect.dialect.pool_ops import ResizeBilinearOp as ResizeBilinearOp
from qdialect.dialect.pool_ops import SoftmaxOp as SoftmaxOp
from qdialect.dialect.quantize_ops import DequantizeOp as DequantizeOp
from qdialect.dialect.quantize_ops import QuantizeOp as QuantizeOp
from qdialect.dialect.quantize_ops import RangeScaleOp as RangeScaleOp
from qdialect.dialect.quantize_ops import RangeZeroPointOp as RangeZeroPointOp
from qdialect.dialect.quantize_ops import RequantizeOp as RequantizeOp
from qdialect.dialect.recurrent_ops import DynamicLstmOp as DynamicLstmOp
from qdialect.dialect.recurrent_ops import F32GruOp as F32GruOp
from qdialect.dialect.recurrent_ops import F32LstmOp as F32LstmOp
from qdialect.dialect.recurrent_ops import F32RecurrentOp as F32RecurrentOp
from qdialect.dialect.recurrent_ops import F32RnnOp as F32RnnOp
from qdialect.dialect.reduction_ops import ArgMaxOp as ArgMaxOp
from qdialect.dialect.reduction_ops import ArgMinOp as ArgMinOp
from qdialect.dialect.reduction_ops import CumSumOp as CumSumOp
from qdialect.dialect.reduction_ops import IntegerReduceOp as IntegerReduceOp
from qdialect.dialect.reduction_ops import IntMaxOp as IntMaxOp
from qdialect.dialect.reduction_ops import IntMinOp as IntMinOp
from qdialect.dialect.reduction_ops import IntProdOp as IntProdOp
from qdialect.dialect.reduction_ops import IntSumOp as IntSumOp
from qdialect.dialect.reduction_ops import L2NormalizeOp as L2NormalizeOp
from qdialect.dialect.reduction_ops import ReduceMaxOp as ReduceMaxOp
from qdialect.dialect.reduction_ops import ReduceMinOp as ReduceMinOp
from qdialect.dialect.reduction_ops import SumOp as SumOp
from qdialect.dialect.reduction_ops import TopKOp as TopKOp
from qdialect.dialect.unary_ops import AbsOp as AbsOp
from qdialect.dialect.unary_ops import EluOp as EluOp
from qdialect.dialect.unary_ops import ErfOp as ErfOp
from qdialect.dialect.unary_ops import ExpOp as ExpOp
from qdialect.dialect.unary_ops import GeluOp as GeluOp
from qdialect.dialect.unary_ops import HardswishOp as HardswishOp
from qdialect.dialect.unary_ops import LeakyReluOp as LeakyReluOp
from qdialect.dialect.unary_ops import LogOp as LogOp
from qdialect.dialect.unary_ops import LutOp as LutOp
from qdialect.dialect.unary_ops import Relu6Op as Relu6Op
from qdialect.dialect.unary_ops import ReluOp as ReluOp
from qdialect.dialect.unary_ops import RsqrtOp as RsqrtOp
from qdialect.dialect.unary_ops import SigmoidOp as SigmoidOp
from qdialect.dialect.unary_ops import SiluOp as SiluOp
from qdialect.dialect.unary_ops import SqrtOp as SqrtOp
from qdialect.dialect.unary_ops import TanhOp as TanhOp
from qdialect.dialect.unary_ops import UnaryOp as UnaryOp
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
