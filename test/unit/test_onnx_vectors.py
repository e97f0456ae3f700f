"""Public vectors of quantized operators: ONNX's backend node cases and ONNX Runtime's own operator tests.

They are no part of the project: `vectors` is looked for beside the folder of the models.
"""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from absence import absent
from numpy.typing import NDArray
from onnx import helper, numpy_helper
from tolerances import assert_floats_within

import qdialect
from qdialect.frontends.onnx import import_onnx
from qdialect.reference import interpreter
from qdialect.runtime import compile_module
from qdialect.support.diagnostics import ImportModelError

Array = NDArray[Any]
VECTORS = Path(__file__).resolve().parents[3] / "shared" / "vectors"
NODES, OPTESTER = VECTORS / "onnx_node_1.23.2", VECTORS / "ort_optester_vectors.json"

EXACT = [
    "clip",
    "clip_default_inbounds",
    "clip_default_inbounds_expanded",
    "clip_default_int8_inbounds",
    "clip_default_int8_inbounds_expanded",
    "clip_default_int8_max",
    "clip_default_int8_max_expanded",
    "clip_default_int8_min",
    "clip_default_int8_min_expanded",
    "clip_default_max",
    "clip_default_max_expanded",
    "clip_default_min",
    "clip_default_min_expanded",
    "clip_example",
    "clip_example_expanded",
    "clip_expanded",
    "clip_inbounds",
    "clip_inbounds_expanded",
    "clip_min_greater_than_max",
    "clip_min_greater_than_max_expanded",
    "clip_outbounds",
    "clip_outbounds_expanded",
    "clip_splitbounds",
    "clip_splitbounds_expanded",
    "convinteger_with_padding",
    "convinteger_without_padding",
    "dequantizelinear",
    "dequantizelinear_axis",
    "dequantizelinear_int16",
    "dequantizelinear_uint16",
    "dynamicquantizelinear",
    "dynamicquantizelinear_expanded",
    "dynamicquantizelinear_max_adjusted",
    "dynamicquantizelinear_max_adjusted_expanded",
    "dynamicquantizelinear_min_adjusted",
    "dynamicquantizelinear_min_adjusted_expanded",
    "gelu_tanh_1",
    "hardsigmoid",
    "hardsigmoid_default",
    "hardsigmoid_default_expanded_ver18",
    "hardsigmoid_example",
    "hardsigmoid_example_expanded_ver18",
    "hardsigmoid_expanded_ver18",
    "hardswish",
    "hardswish_expanded",
    "leakyrelu",
    "leakyrelu_default",
    "leakyrelu_default_expanded",
    "leakyrelu_example",
    "leakyrelu_example_expanded",
    "leakyrelu_expanded",
    "matmulinteger",
    "prelu_broadcast",
    "prelu_broadcast_expanded",
    "prelu_example",
    "prelu_example_expanded",
    "qlinearconv",
    "qlinearmatmul_2D_int8_float32",
    "qlinearmatmul_2D_uint8_float32",
    "qlinearmatmul_3D_int8_float32",
    "qlinearmatmul_3D_uint8_float32",
    "quantizelinear",
    "quantizelinear_axis",
    "quantizelinear_int16",
    "quantizelinear_uint16",
    "relu",
    "relu_expanded_ver18",
    "swish",
    "swish_expanded",
    "tanh_example",
]
# Transcendental functions of floats, which the standard's own evaluator rounds differently in the last place.
CLOSE = [
    "gelu_default_1",
    "gelu_default_1_expanded",
    "gelu_default_2",
    "gelu_default_2_expanded",
    "gelu_tanh_1_expanded",
    "gelu_tanh_2",
    "gelu_tanh_2_expanded",
    "mish",
    "mish_expanded",
    "sigmoid",
    "sigmoid_example",
    "tanh",
]
REFUSED = {
    "input 0 must be constant where it is quantized in blocks": ["dequantizelinear_blocked"],
    "blocks are not supported": [
        "quantizelinear_blocked_asymmetric",
        "quantizelinear_blocked_symmetric",
    ],
    "scale must be f32, but got float16": [
        "qlinearmatmul_2D_int8_float16",
        "qlinearmatmul_2D_uint8_float16",
        "qlinearmatmul_3D_int8_float16",
        "qlinearmatmul_3D_uint8_float16",
    ],
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


def outputs_of(name: str) -> tuple[Sequence[Array], Sequence[Array], Sequence[Array]]:
    """What the interpreter gives for a case, what compiled code gives, and what the case wants."""
    content, inputs, wanted = node_case(name)
    module = import_onnx(content)
    found, compiled = interpreter.run(module, inputs), qdialect.compile(module)(*inputs)
    results = compiled if isinstance(compiled, tuple) else (compiled,)
    for arrays in (found, results):
        assert [(array.dtype, array.shape) for array in arrays] == [(array.dtype, array.shape) for array in wanted]
    return found, results, wanted


def test_every_case_is_in_one_list() -> None:
    names = sorted(folder.name.removeprefix("test_") for folder in require(NODES).iterdir())
    assert sorted([*EXACT, *CLOSE, *(name for names in REFUSED.values() for name in names)]) == names


@pytest.mark.parametrize("name", EXACT)
def test_node_case(name: str) -> None:
    for found, compiled, wanted in zip(*outputs_of(name), strict=True):
        assert np.array_equal(found, wanted)
        assert np.array_equal(compiled, wanted)


@pytest.mark.parametrize("name", CLOSE)
def test_node_case_of_a_transcendental_function(name: str) -> None:
    for found, compiled, wanted in zip(*outputs_of(name), strict=True):
        assert_floats_within(found, wanted, "function")
        assert np.array_equal(compiled, found)


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
