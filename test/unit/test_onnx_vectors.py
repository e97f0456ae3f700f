"""Public vectors of quantized operators: ONNX's backend node cases and ONNX Runtime's own operator tests.

They are no part of the project: `vectors` is looked for beside the folder of the models.
"""

import json
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from absence import absent
from numpy.typing import NDArray
from onnx import helper, numpy_helper

from qdialect.diagnostics import ImportModelError
from qdialect.frontends.onnx import import_onnx
from qdialect.reference import interpreter
from qdialect.runtime import compile_module

Array = NDArray[Any]
VECTORS = Path(__file__).resolve().parents[3] / "shared" / "vectors"
NODES, OPTESTER = VECTORS / "onnx_node_1.23.2", VECTORS / "ort_optester_vectors.json"

EXACT = [
    "convinteger_with_padding",
    "convinteger_without_padding",
    "dequantizelinear",
    "dequantizelinear_axis",
    "dequantizelinear_int16",
    "dynamicquantizelinear",
    "dynamicquantizelinear_max_adjusted",
    "dynamicquantizelinear_min_adjusted",
    "matmulinteger",
    "qlinearconv",
    "qlinearmatmul_2D_int8_float32",
    "qlinearmatmul_2D_uint8_float32",
    "qlinearmatmul_3D_int8_float32",
    "qlinearmatmul_3D_uint8_float32",
    "quantizelinear",
    "quantizelinear_axis",
    "quantizelinear_int16",
]
# Exact and refused cases of the other list, by operator: counts of cases.
OPTESTER_CASES = {
    "ConvInteger": (8, 0),
    "DequantizeLinear": (19, 0),
    "DynamicQuantizeLinear": (3, 0),
    "MatMulInteger": (20, 0),
    "QLinearLeakyRelu": (2, 0),
    "QLinearMatMul": (7, 0),
    "QLinearSigmoid": (2, 0),
    "QuantizeLinear": (18, 0),
}


def require(path: Path) -> Path:
    if not path.exists():
        absent(f"{path.name} is not here")
    return path


def node_case(name: str) -> tuple[bytes, list[Array], list[Array]]:
    """A model whose inputs but the first are constants, and the arrays of its data set."""
    folder = require(NODES / f"test_{name}")
    model = onnx.ModelProto()
    model.ParseFromString((folder / "model.onnx").read_bytes())
    inputs, outputs = (_arrays(folder / "test_data_set_0", kind) for kind in ("input", "output"))
    pairs = list(zip(model.graph.input, inputs, strict=True))
    model.graph.initializer.extend(numpy_helper.from_array(array, value.name) for value, array in pairs[1:])
    return model.SerializeToString(), inputs[:1], outputs


def _arrays(folder: Path, kind: str) -> list[Array]:
    tensors = [onnx.TensorProto() for _ in folder.glob(f"{kind}_*.pb")]
    for index, tensor in enumerate(tensors):
        tensor.ParseFromString((folder / f"{kind}_{index}.pb").read_bytes())
    return [numpy_helper.to_array(tensor) for tensor in tensors]


@pytest.mark.parametrize("name", EXACT)
def test_node_case(name: str) -> None:
    content, inputs, outputs = node_case(name)
    results = interpreter.run(import_onnx(content), inputs)
    for found, wanted in zip(results, outputs, strict=True):
        assert found.dtype == wanted.dtype
        assert np.array_equal(found, wanted)


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("dequantizelinear_blocked", "blocks are not supported"),
        ("quantizelinear_blocked_symmetric", "blocks are not supported"),
        ("quantizelinear_int4", "constant must be of a type of the dialect, but got int4"),
        ("quantizelinear_e4m3fn", "constant must be of a type of the dialect, but got float8_e4m3fn"),
        ("qlinearmatmul_2D_int8_float16", "scale must be f32, but got float16"),
    ],
)
def test_node_case_that_is_refused(name: str, reason: str) -> None:
    with pytest.raises(ImportModelError) as caught:
        import_onnx(node_case(name)[0])
    assert caught.value.diagnostics[0].notes[-1].message.endswith(f": {reason}")


def _array(tensor: dict[str, Any]) -> Array:
    return np.array(tensor["data"]).astype(tensor["dtype"]).reshape(tensor["dims"])


def optester_model(case: dict[str, Any]) -> tuple[bytes, Array, list[Array]]:
    arrays = [None if tensor is None else _array(tensor) for tensor in case["inputs"]]
    names = ["" if array is None else f"i{index}" for index, array in enumerate(arrays)]
    outputs = [_array(tensor) for tensor in case["outputs"]]
    data = arrays[0]
    assert data is not None
    node = helper.make_node(
        case["op"], names, [f"o{k}" for k in range(len(outputs))], domain=case["domain"], **case["attrs"]
    )
    info = helper.make_tensor_value_info(names[0], helper.np_dtype_to_tensor_dtype(data.dtype), data.shape)
    results = [
        helper.make_tensor_value_info(f"o{k}", helper.np_dtype_to_tensor_dtype(array.dtype), None)
        for k, array in enumerate(outputs)
    ]
    known = zip(names[1:], arrays[1:], strict=True)
    constants = [numpy_helper.from_array(array, name) for name, array in known if array is not None]
    model = helper.make_model(helper.make_graph([node], "graph", [info], results, constants))
    return model.SerializeToString(), data, outputs


@pytest.mark.parametrize("operator", OPTESTER_CASES)
def test_cases_of_onnx_runtime(operator: str) -> None:
    cases = [case for case in json.loads(require(OPTESTER).read_text())["cases"] if case["op"] == operator]
    refused = 0
    for case in cases:
        content, data, outputs = optester_model(case)
        try:
            module = import_onnx(content)
        except ImportModelError:
            refused += 1
            continue
        for found, wanted in zip(interpreter.run(module, [data]), outputs, strict=True):
            assert found.dtype == wanted.dtype, case["test"]
            assert np.allclose(found, wanted, rtol=1e-6, atol=0), case["test"]
    assert (len(cases) - refused, refused) == OPTESTER_CASES[operator]


@pytest.mark.parametrize("operator", ["ConvInteger", "MatMulInteger", "QLinearMatMul"])
def test_compiled_cases_of_onnx_runtime(operator: str) -> None:
    cases = [case for case in json.loads(require(OPTESTER).read_text())["cases"] if case["op"] == operator]
    for case in cases:
        content, data, (wanted,) = optester_model(case)
        assert np.array_equal(compile_module(import_onnx(content))(data), wanted), case["test"]
