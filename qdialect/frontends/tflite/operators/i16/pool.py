"""AVERAGE_POOL_2D and MAX_POOL_2D of 16-bit images."""

from __future__ import annotations

from typing import Any

from qdialect.dialect import AvgPool2DOp, MaxPool2DOp
from qdialect.dialect.pool_ops import PoolOp
from qdialect.frontends.tflite.model import Operator
from qdialect.frontends.tflite.operators.i16.checks import one_input, same_scale
from qdialect.frontends.tflite.operators.pool import pool
from qdialect.frontends.tflite.operators.registry import Emission, imports_i16
from qdialect.quant_math import Division


@imports_i16("AVERAGE_POOL_2D")
def _average_pool_2d(operator: Operator) -> Emission:
    return _pool(operator, AvgPool2DOp, {"zero_point": 0, "division": Division.HALF_AWAY})


@imports_i16("MAX_POOL_2D")
def _max_pool_2d(operator: Operator) -> Emission:
    return _pool(operator, MaxPool2DOp, {})


def _pool(operator: Operator, op_class: type[PoolOp], attributes: dict[str, Any]) -> Emission:
    same_scale(*one_input(operator))
    return pool(operator, op_class, attributes)
