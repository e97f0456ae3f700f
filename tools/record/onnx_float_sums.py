"""Records `test/unit/vectors/onnx_float_sums.npz`: operators that ONNX Runtime computes in float32, then rounds.

Its sums of floats have an order of their own.  Here the output's scale makes many exact results lie halfway between two
quantized values, so that some of them come out one step away.  Run it where onnxruntime is installed:

    python tools/record/onnx_float_sums.py test/unit/vectors/onnx_float_sums.npz
"""

from __future__ import annotations

import sys
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
CASES = 4
_WEIGHT_SCALE = 0.0123
_SHAPE = (2, 8, 12, 12)


class _Network:
    """x -> DequantizeLinear -> one operator -> QuantizeLinear -> y, as text for the ONNX helpers."""

    def __init__(self, rng: np.random.Generator, dtype: type[np.generic]) -> None:
        self.rng, self.dtype = rng, dtype
        self.helper: Any = import_module("onnx.helper")
        self.nodes: list[Any] = []
        self.constants: list[Any] = []

    def constant(self, array: Array) -> str:
        name = f"c{len(self.constants)}"
        element = self.helper.np_dtype_to_tensor_dtype(array.dtype)
        self.constants.append(self.helper.make_tensor(name, element, array.shape, array.ravel().tolist()))
        return name

    def node(self, kind: str, *inputs: str, **attributes: Any) -> str:
        name = f"v{len(self.nodes)}"
        self.nodes.append(self.helper.make_node(kind, list(inputs), [name], **attributes))
        return name

    def parameters(self, scale: float, dtype: type[np.generic]) -> tuple[str, str]:
        info = np.iinfo(np.dtype(dtype).name)
        point = self.rng.integers(info.min // 2, info.max // 2) if dtype is self.dtype else 0
        return self.constant(np.array(scale, dtype=np.float32)), self.constant(np.array(point, dtype=dtype))

    def weight(self, *shape: int) -> str:
        codes = self.constant(self.rng.integers(-127, 128, shape).astype(np.int8))
        return self.node("DequantizeLinear", codes, *self.parameters(_WEIGHT_SCALE, np.int8))

    def finish(self, f32_values: list[str], scale: float) -> bytes:
        outputs = [
            self.node("QuantizeLinear", f32, *self.parameters(scale * (k + 1), self.dtype))
            for k, f32 in enumerate(f32_values)
        ]
        element = self.helper.np_dtype_to_tensor_dtype(np.dtype(self.dtype))
        ends = [self.helper.make_tensor_value_info(name, element, None) for name in outputs]
        x = self.helper.make_tensor_value_info("x", element, _SHAPE)
        graph = self.helper.make_graph(self.nodes, "sums", [x], ends, self.constants)
        model = self.helper.make_model(graph, opset_imports=[self.helper.make_opsetid("", 17)], ir_version=9)
        return model.SerializeToString()


def _average_pool(network: _Network, x: str) -> tuple[str, float]:
    return network.node("AveragePool", x, kernel_shape=[3, 2], strides=[1, 2]), 1


def _reduce_mean(network: _Network, x: str) -> tuple[str, float]:
    return network.node("ReduceMean", x, axes=[3], keepdims=1), 1


def _reduce_sum(network: _Network, x: str) -> tuple[str, float]:
    return network.node("ReduceSum", x, network.constant(np.array([2])), keepdims=0), 6


def _conv_transpose(network: _Network, x: str) -> tuple[str, float]:
    return network.node("ConvTranspose", x, network.weight(8, 5, 3, 3), strides=[2, 2]), 250 * _WEIGHT_SCALE


def _conv(network: _Network, x: str) -> tuple[str, float]:
    return network.node("Conv", x, network.weight(6, 8, 3, 3)), 500 * _WEIGHT_SCALE


def _matmul(network: _Network, x: str) -> tuple[str, float]:
    return network.node("MatMul", x, network.weight(12, 7)), 500 * _WEIGHT_SCALE


def _add(network: _Network, x: str) -> tuple[str, float]:
    return network.node("Add", x, network.weight(8, 12, 12)), 2


def _mul(network: _Network, x: str) -> tuple[str, float]:
    return network.node("Mul", x, network.weight(8, 12, 12)), 250 * _WEIGHT_SCALE


def _softmax(network: _Network, x: str) -> tuple[str, float]:
    return network.node("Softmax", x, axis=-1), 0.2


NETWORKS = {
    "AveragePool": _average_pool,
    "ReduceMean": _reduce_mean,
    "ReduceSum": _reduce_sum,
    "ConvTranspose": _conv_transpose,
    "Conv": _conv,
    "MatMul": _matmul,
    "Add": _add,
    "Mul": _mul,
    "Softmax": _softmax,
}
# With two readers these stay operators of floats, for int8 data or for any.
_READ_TWICE = ("Conv", "Add", "Mul", "Softmax")


def main() -> None:
    """Write the file that the command line names."""
    arrays: dict[str, Any] = {}
    runtime: Any = import_module("onnxruntime")
    for kind, build in NETWORKS.items():
        for index in range(CASES):
            rng = np.random.default_rng(index)
            network = _Network(rng, (np.uint8, np.int8)[index % 2])
            scale = rng.uniform(0.01, 0.05)
            f32 = network.node("DequantizeLinear", "x", *network.parameters(scale, network.dtype))
            found, ratio = build(network, f32)
            model = network.finish([found] * (2 if kind in _READ_TWICE else 1), scale * ratio)
            info = np.iinfo(np.dtype(network.dtype).name)
            codes = rng.integers(info.min, info.max + 1, _SHAPE).astype(network.dtype)
            session = runtime.InferenceSession(model, providers=["CPUExecutionProvider"])
            arrays[f"{kind}_{index}.model"] = np.frombuffer(model, dtype=np.uint8)
            arrays[f"{kind}_{index}.in0"] = codes
            arrays |= {f"{kind}_{index}.out{k}": array for k, array in enumerate(session.run(None, {"x": codes}))}
    np.savez_compressed(sys.argv[1], **arrays)


if __name__ == "__main__":
    main()
