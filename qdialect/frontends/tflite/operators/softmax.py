"""SOFTMAX over the last dimension."""

from __future__ import annotations

import tflite

from qdialect._mlir import ir
from qdialect.dialect import SoftmaxOp
from qdialect.frontends.common import check_scale, require
from qdialect.frontends.tflite.emitter import Emitter
from qdialect.frontends.tflite.model import Operator
from qdialect.frontends.tflite.operators.checks import bounded, eight_bit, operands, quantized_range, same_type
from qdialect.frontends.tflite.operators.registry import Emission, imports
from qdialect.frontends.tflite.reader import read_options
from qdialect.quant_math.choices import SoftmaxArithmetic

_OUTPUT_SCALE = 1 / 256
# In the kernel's Q5.26 the scaled distance of two quantized values must not vanish.
_SMALLEST_FACTOR = 2.0**-26


@imports("SOFTMAX")
def _softmax(operator: Operator) -> Emission:
    beta = read_options(operator, tflite.SoftmaxOptions, lambda options: options.Beta())
    # A larger scale has the same factor, the largest of the kernel's.
    data = bounded(operands(operator, 1)[0])
    output = eight_bit(operator.outputs[0], "output")
    same_type(operator, eight_bit(data, "input"))
    found, wanted = (output.scale, output.zero_point), (_OUTPUT_SCALE, quantized_range(output)[0])
    require(found == wanted, f"output scale and zero point must be {wanted}, but got {found}")
    check_scale(beta, "beta")
    factor = data.scale * beta
    require(factor > _SMALLEST_FACTOR, f"input scale times beta must exceed 2^-26, but got {factor}")
    require(len(data.shape) >= 1, "input must have at least 1 dimension")

    def emit(emitter: Emitter) -> ir.Value:
        return emitter.build(
            SoftmaxOp,
            emitter.value(data),
            element=output.element,
            axis=len(data.shape) - 1,
            input_scale=data.scale,
            beta=beta,
            output_scale=output.scale,
            output_zero_point=output.zero_point,
            arithmetic=SoftmaxArithmetic.TFLITE_FIXED,
        )

    return emit
