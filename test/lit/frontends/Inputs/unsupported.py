"""Write a network with one operator that no front end will ever have to the path given."""

import sys
from pathlib import Path

import numpy as np
import tflite

from qdialect.frontends.tflite.flatbuffer.writer import ModelWriter, Quantization

writer, half = ModelWriter("blocked"), Quantization((0.5,), (3,))
x, y, z = (writer.tensor(name, (1, 4), np.int8, half) for name in "xyz")
for operator, source, result in ((tflite.BuiltinOperator.RELU, x, y), (tflite.BuiltinOperator.HASHTABLE_LOOKUP, y, z)):
    writer.operator(operator, [source], result)
Path(sys.argv[1]).write_bytes(writer.finish([x], [z]))
