"""Public vectors of quantized operators: ONNX Runtime's own operator tests, and ONNX's node cases that are refused.

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
from tolerances import assert_floats_within

from qdialect.frontends.onnx import import_onnx
from qdialect.reference import interpreter
from qdialect.runtime import compile_module
from qdialect.support.diagnostics import ImportModelError

Array = NDArray[Any]
VECTORS = Path(__file__).resolve().parents[3] / "shared" / "vectors"
NODES, OPTESTER = VECTORS / "onnx_node_1.23.2", VECTORS / "ort_optester_vectors.json"

REFUSED = {
    "input 0 must be constant where it is quantized in blocks": ["dequantizelinear_blocked"],
    "blocks are not supported": ["quantizelinear_blocked_asymmetric", "quantizelinear_blocked_symmetric"],
    "type": [
        "dequantizelinear_e4m3fn",
        "dequantizelinear_e4m3fn_float16",
        "dequantizelinear_e4m3fn_zero_point",
        "dequantizelinear_e5m2",
        "dequantizelinear_float4e2m1",
        "dequantizelinear_int2",
        "dequantizelinear_int4",
        "dequantizelinear_uint2",
        "dequantizelinear_uint4",
        "quantizelinear_e4m3fn",
        "quantizelinear_e5m2",
        "quantizelinear_float4e2m1",
        "quantizelinear_int2",
        "quantizelinear_int4",
        "quantizelinear_uint2",
        "quantizelinear_uint4",
    ],
}
"""Why a case is out of reach: a part of the message, and its cases."""
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


@pytest.mark.parametrize(("reason", "name"), [(reason, name) for reason, names in REFUSED.items() for name in names])
def test_node_case_that_is_refused(reason: str, name: str) -> None:
    with pytest.raises(ImportModelError) as caught:
        import_onnx(node_case(name)[0])
    assert reason in caught.value.diagnostics[0].notes[0].message


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
            assert_floats_within(found, wanted, "pair")
    assert (len(cases) - refused, refused) == OPTESTER_CASES[operator]


@pytest.mark.parametrize("operator", ["ConvInteger", "MatMulInteger", "QLinearMatMul"])
def test_compiled_cases_of_onnx_runtime(operator: str) -> None:
    cases = [case for case in json.loads(require(OPTESTER).read_text())["cases"] if case["op"] == operator]
    for case in cases:
        content, data, (wanted,) = optester_model(case)
        assert np.array_equal(compile_module(import_onnx(content))(data), wanted), case["test"]
