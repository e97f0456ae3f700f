"""Networks of which much is worth several threads, and some is not."""

import numpy as np
from onnx_graphs import ModelBuilder

from qdialect.frontends.onnx import import_onnx
from qdialect.ir._mlir import ir

X, SUM = (0.04, 117), (0.05, 128)
DEPTH, LENGTH, HEADS = 64, 64, 4


def drawn(*shape: int) -> np.ndarray:
    return np.random.default_rng(len(shape)).integers(-127, 128, shape).astype(np.int8)


def convolutional(b: ModelBuilder) -> str:
    """Convolutions of all kinds with a residual sum, a mean over the image and a classifier."""

    def conv(x: str, out: int, inputs: int, kernel: int, group: int = 1, **attributes: object) -> str:
        weight = b.weight(drawn(out, inputs, kernel, kernel), 0.004)
        pads = [kernel // 2] * 4
        made = b.node("Conv", b.dequantize(x, X), weight, pads=pads, group=group, **attributes)
        return b.quantize(b.node("Relu", made), X)

    first = conv(b.quantize(b.input("image", (1, 3, 48, 48)), X), 32, 3, 3, strides=[2, 2])
    second = conv(conv(first, 32, 1, 3, group=32), 32, 32, 1)
    total = b.node("Add", b.dequantize(first, X), b.dequantize(second, X))
    grouped = conv(b.quantize(total, X), 64, 8, 3, group=4)
    mean = b.node("GlobalAveragePool", b.dequantize(grouped, X))
    flat = b.node("Flatten", b.dequantize(b.quantize(mean, X), X))
    return b.quantize(b.node("Gemm", flat, b.weight(drawn(10, 64), 0.004), transB=1), SUM)


def transformer(b: ModelBuilder) -> str:
    """A block of a transformer: attention and two dense layers, each with a sum and a normalization."""

    def product(x: str, width: int, depth: int = DEPTH) -> str:
        made = b.node("MatMul", b.dequantize(b.quantize(x, X), X), b.weight(drawn(depth, width), 0.004))
        return b.dequantize(b.quantize(made, SUM), SUM)

    def heads(x: str, order: list[int]) -> str:
        shape = b.constant(np.array([1, LENGTH, HEADS, DEPTH // HEADS]))
        return b.node("Transpose", b.node("Reshape", x, shape), perm=order)

    def normalized(x: str, y: str) -> str:
        ones, zeros = (b.constant(np.full(DEPTH, value, np.float32)) for value in (1, 0))
        return b.node("LayerNormalization", b.node("Add", x, y), ones, zeros)

    x = b.input("tokens", (1, LENGTH, DEPTH))
    query, value = (heads(product(x, DEPTH), [0, 2, 1, 3]) for _ in range(2))
    scores = b.node("MatMul", query, heads(product(x, DEPTH), [0, 2, 3, 1]))
    mixed = b.node("MatMul", b.node("Softmax", scores, axis=-1), value)
    joined = b.node("Transpose", mixed, perm=[0, 2, 1, 3])
    rows = b.node("Reshape", joined, b.constant(np.array([1, LENGTH, DEPTH])))
    attended = normalized(x, product(rows, DEPTH))
    wide = b.node("Relu", product(attended, 4 * DEPTH))
    return normalized(attended, product(wide, DEPTH, 4 * DEPTH))


def network(kind: str) -> ir.Module:
    b = ModelBuilder()
    output, dtype = (convolutional(b), np.uint8) if kind == "convolutional" else (transformer(b), np.float32)
    return import_onnx(b.finish(output, dtype=dtype))
