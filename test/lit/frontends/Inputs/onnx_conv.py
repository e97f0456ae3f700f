"""Write a quantized convolution, its activation and a sum with its input to the path given."""

import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[3]))

from onnx_graphs import ModelBuilder

b = ModelBuilder()
data = b.dequantize(b.quantize(b.input("image", ("batch", 2, 4, 4)), (0.5, 128)), (0.5, 128))
weight = b.weight(np.ones((2, 2, 1, 1), dtype=np.int8), [0.25, 0.125])
relu = b.node("Relu", b.node("Conv", data, weight))
total = b.node("Add", b.dequantize(b.quantize(relu, (1.0, 3)), (1.0, 3)), data)
b.node("DequantizeLinear", b.quantize(total, (2.0, 5)), *b.parameters((2.0, 5), np.uint8), output="sum")
unsupported: list[str] = []
if "--unsupported" in sys.argv:
    unsupported = [b.node("Unique", relu, name="soft"), b.node("StringNormalizer", "image", name="text")]
Path(sys.argv[1]).write_bytes(b.finish("sum", *unsupported, dtype=np.float32))
