"""What a module from an ONNX model looks like, what the importer refuses and how it says so."""

import re
import sys
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from drawn_graphs import op_names
from onnx import external_data_helper
from onnx_graphs import CONTRIB, Array, ModelBuilder, f32_values, quantized_of

from qdialect import read_model
from qdialect.cli import import_model
from qdialect.frontends.onnx import import_onnx, importer
from qdialect.frontends.onnx.operators.registry import Call, Planner
from qdialect.frontends.planning.tensors import Constant, Tensor
from qdialect.passes.pipeline import PassManager
from qdialect.reference import interpreter
from qdialect.support.diagnostics import ImportModelError

X, Y = (0.04, 117), (0.3, 5)
SQUARE = {"kernel_shape": [2, 2]}
WEIGHT = np.arange(-18, 18, dtype=np.int8).reshape(4, 1, 3, 3)


def notes_of(content: bytes, **options: Any) -> list[str]:
    with pytest.raises(ImportModelError) as caught:
        import_onnx(content, **options)
    return [note.message for note in caught.value.diagnostics[0].notes]


def message_of(content: bytes) -> str:
    with pytest.raises(ImportModelError) as caught:
        import_onnx(content)
    return str(caught.value)


def residual_block() -> bytes:
    """Two depthwise convolutions and a sum with what they read, which comes from a DequantizeLinear of many users."""
    b = ModelBuilder()
    data = b.dequantize(b.quantize(b.input("image", ("batch", 4, 8, 8)), X), X)
    window = {"group": 4, "pads": [1, 1, 1, 1]}
    first = b.node("Conv", data, b.weight(WEIGHT, 0.02), **window)
    second = b.node("Conv", b.dequantize(b.quantize(b.node("Relu", first), Y), Y), b.weight(WEIGHT, 0.01), **window)
    total = b.node("Add", b.dequantize(b.quantize(second, X), X), data)
    pooled = b.node("GlobalAveragePool", b.dequantize(b.quantize(total, Y), Y))
    b.node("DequantizeLinear", b.quantize(pooled, Y), *b.parameters(Y, np.uint8), output="score")
    return b.finish("score", dtype=np.float32)


def test_fused_graph_has_transposes_at_its_edges_alone() -> None:
    module, image = import_onnx(residual_block()), np.random.default_rng(0).normal(size=(1, 4, 8, 8))
    inputs = [image.astype(np.float32)]
    (wanted,) = interpreter.run(module, inputs)
    PassManager("fuse-qnn").run(module)
    # Reshapes around the mean are of no concern here.
    found = [name for name in op_names(module) if name != "qnn.reshape"]
    assert found == ["qnn.quantize", "qnn.transpose", *["qnn.fused_conv2d"] * 2, "qnn.mean", "qnn.dequantize"]
    assert np.array_equal(interpreter.run(module, inputs)[0], wanted)


def test_shape_arithmetic_is_done_at_import() -> None:
    """Flatten as exporters write it: [Shape(x)[0], -1], through casts, slices and constants."""
    b = ModelBuilder()
    data = b.dequantize(b.input("x", ("n", 3, 2, 2), np.uint8), X)
    zero, one = b.constant(np.array(0)), b.constant(np.array(1))
    shape = b.node("Shape", data)
    first = b.node("Unsqueeze", b.node("Gather", shape, zero), b.constant(np.array([0])))
    rest = b.node("Slice", shape, b.constant(np.array([1])), b.constant(np.array([4])))
    product = b.node("Mul", b.node("ReduceProd", rest, keepdims=1), one)
    target = b.node("Concat", b.node("Cast", first, to=7), b.node("Div", product, one), axis=0)
    content = b.finish(b.quantize(b.node("Reshape", data, target), X))
    x = np.arange(24, dtype=np.uint8).reshape(2, 3, 2, 2)
    module = import_onnx(content, batch=2)
    assert op_names(module) == ["qnn.reshape"]
    assert np.array_equal(interpreter.run(module, [x])[0], x.reshape(2, 12))


def test_constants_of_every_kind_are_folded() -> None:
    b = ModelBuilder()
    three = b.node("Constant", value_float=3.0)
    ramp = b.node("Range", b.constant(0.0), three, b.node("Constant", value_float=1.0))
    filler = onnx.numpy_helper.from_array(np.ones(1, np.float32))
    ones = b.node("ConstantOfShape", b.constant(np.array([3])), value=filler)
    chosen = b.node("Where", b.node("Equal", ramp, ones), three, b.node("Floor", b.constant(1.5)))
    total = b.node(
        "Sub", b.node("Add", chosen, ramp), b.node("Squeeze", b.constant(np.array([[0.5]], dtype=np.float32)))
    )
    data = b.dequantize(b.input("x", (1, 3), np.uint8), X)
    content = b.finish(b.node("Mul", data, total), dtype=np.float32)
    x = np.array([[1, 100, 200]], dtype=np.uint8)
    factors = np.array([0.5, 3.5, 2.5], dtype=np.float32)
    assert np.array_equal(interpreter.run(import_onnx(content), [x])[0], f32_values(x, X) * factors)


def test_casts_and_identities_that_change_nothing_go() -> None:
    b = ModelBuilder()
    scale, point = b.parameters(X, np.uint8)
    values = b.node("QuantizeLinear", b.input("x", (1, 3)), b.node("Identity", scale), b.node("Identity", point))
    same = b.node("Cast", b.node("Identity", values), to=onnx.TensorProto.UINT8)
    content = b.finish(b.quantize(b.node("Dropout", b.dequantize(same, X)), X))
    module, x = import_onnx(content), np.array([[-1, 0.5, 9]], dtype=np.float32)
    assert op_names(module) == ["qnn.quantize"]
    assert np.array_equal(interpreter.run(module, [x])[0], quantized_of(x, X))


def test_every_unsupported_node_is_named_at_once() -> None:
    b = ModelBuilder()
    data = b.dequantize(b.input("x", (1, 4, 8, 8), np.uint8), X)
    b.node("StringNormalizer", data, output="a", name="soft")
    # It depends on an unsupported op, and is one.
    b.node("Unique", "a", output="b")
    b.node("Relu", "b", output="c")
    b.node("Conv", data, b.weight(WEIGHT, 0.02), group=3, output="d")
    b.node(f"{CONTRIB}.Inverse", data, output="e")
    b.node("AveragePool", data, kernel_shape=[9, 9], output="f")
    b.node("Gemm", data, data, output="g", alpha=-0.5)
    assert notes_of(b.finish("c")) == [
        "node 1 StringNormalizer ('soft'): operator is not supported",
        "node 2 Unique ('b'): operator is not supported",
        "node 5 Conv ('d'): input must have 3 * 1 channels, but got 4",
        "node 6 com.microsoft.Inverse ('e'): operator is not supported",
        "node 7 AveragePool ('f'): kernel must fit into the padded input [8, 8], but is [9, 9]",
        "node 8 Gemm ('g'): alpha must be positive, but got -0.5",
    ]


def unsupported(kind: str, *operands: Array, **attributes: Any) -> str:
    """Why one node whose first input is dequantized data, as what is i8, is refused."""
    b = ModelBuilder()
    data = b.dequantize(b.input("x", (1, 4, 8, 8), np.uint8), X)
    given = [b.weight(operand, 0.1) if operand.dtype == np.int8 else b.constant(operand) for operand in operands]
    # What reads the integers of a Cast is refused too.
    note, *_ = notes_of(b.finish(b.quantize(b.node(kind, data, *given, **attributes), Y)))
    return note.partition(": ")[2]


@pytest.mark.parametrize(
    ("reason", "kind", "operands", "attributes"),
    [
        ("input must have 1 * 1 channels, but got 4", "Conv", [np.float32(WEIGHT)], {}),
        ("input 1 must come from a DequantizeLinear", "Conv", [np.float32(WEIGHT), np.ones((1, 1), np.float32)], {}),
        ("must have 2 to 3 inputs, but got 1", "Conv", [], {}),
        ("input must have 2 dimensions, but got 4", "Gemm", [WEIGHT], {}),
        ("attribute 'alpha' must be of type FLOAT, but got INT", "LeakyRelu", [], {"alpha": 1}),
        ("attribute 'kernel_shape' must be of type INTS, but got FLOATS", "MaxPool", [], {"kernel_shape": [2.5, 2.0]}),
        ("strides must be 2 integers of at least 1, but got [0, 1]", "MaxPool", [], {**SQUARE, "strides": [0, 1]}),
        ("pads must be less than the kernel's 2, but got 2", "AveragePool", [], {**SQUARE, "pads": [0, 0, 2, 0]}),
        (
            "windows must reach the end of [8, 8] where auto_pad is SAME",
            "MaxPool",
            [],
            {**SQUARE, "strides": [5, 1], "auto_pad": "SAME_UPPER"},
        ),
        (
            "dilations must be 1 where auto_pad is SAME, but got [2, 1]",
            "MaxPool",
            [],
            {**SQUARE, "dilations": [2, 1], "auto_pad": "SAME_LOWER"},
        ),
        ("kernel_shape must be 2 integers of at least 1, but got [2]", "MaxPool", [], {"kernel_shape": [2]}),
        ("perm must order 4 dimensions, but got [0, 1]", "Transpose", [], {"perm": [0, 1]}),
        ("shape must have 256 elements, but got [3, 3]", "Reshape", [np.array([3, 3])], {}),
        ("axes must name extents of 1 in [1, 4, 8, 8], but got [1]", "Squeeze", [np.array([1])], {}),
        ("pads must be 8 integers, but got (-1,)", "Pad", [np.array([-1])], {}),
        ("operand shapes must broadcast, but got [1, 4, 8, 8] and [3]", "Add", [np.ones(3, np.float32)], {}),
        ("input 1 must be f32, but got int64", "Add", [np.ones(1, np.int64)], {}),
        (
            "must cast to one of i1, i8, ui8, i16, ui16, i32, i64, f32, f16, bf16, but casts to double",
            "Cast",
            [],
            {"to": 11},
        ),
        ("attribute 'axis' is missing", "Concat", [], {}),
    ],
)
def test_an_error_says_what_was_expected_and_found(
    reason: str, kind: str, operands: list[Array], attributes: dict[str, Any]
) -> None:
    assert unsupported(kind, *operands, **attributes) == reason


# What a schema says of an operator that takes as many operands as there are.
MANY = 2**31 - 1


def test_an_operand_too_many_is_refused() -> None:
    """Of every operator of ONNX that is imported and has a number of them, but for those that want constants first."""
    accepted: list[tuple[str, str]] = []
    for schema in onnx.defs.get_all_schemas():
        if schema.domain or schema.max_input == MANY:
            continue
        b = ModelBuilder()
        data = b.dequantize(b.input("x", (1, 4, 8, 8), np.uint8), X)
        content = b.finish(b.quantize(b.node(schema.name, *[data] * (schema.max_input + 1)), Y))
        told = " ".join(notes_of(content))
        if not re.search("inputs, but got|is not supported|must be constant|constant must be", told):
            accepted.append((schema.name, told))
    assert accepted == []


def test_parameters_must_be_sound() -> None:
    b = ModelBuilder()
    data, scale = b.input("x", (1, 4), np.uint8), b.input("s", (1,))
    b.node("DequantizeLinear", data, data, output="a")
    b.node("DequantizeLinear", data, b.constant(0.0), output="b")
    b.node("DequantizeLinear", data, b.constant(1.0), b.constant(np.array(1, np.int8)), output="c")
    b.node("DequantizeLinear", data, b.constant(np.ones(3, np.float32)), output="d", axis=1)
    b.node("QuantizeLinear", scale, b.constant(1.0), b.constant(np.array(1, np.int64)), output="e")
    assert notes_of(b.finish("a", "b", "c", "d", "e")) == [
        "node 0 DequantizeLinear ('a'): scale must be f32, but got ui8",
        "node 1 DequantizeLinear ('b'): scale must be in [2^-60, 2^30], but got 0.0",
        "node 2 DequantizeLinear ('c'): zero point must be ui8, but got i8",
        "node 3 DequantizeLinear ('d'): scale must have 1 or 4 entries, but got 3",
        "node 4 QuantizeLinear ('e'): zero point must be i8 or ui8 or i16 or ui16 or i32, but got i64",
    ]


def test_inputs_of_other_types() -> None:
    b = ModelBuilder()
    b.input("x", (1, 4), np.float64)
    assert notes_of(b.finish("x"))[0].startswith(
        "input 'x': type must be i1, i8, ui8, i16, ui16, i32, i64, f32, f16 or bf16, but got"
    )


def test_damage_is_named() -> None:
    damaged = "'model.onnx': file is damaged: "
    assert message_of(b"\xff" * 40) == f"{damaged}it is no serialized ONNX model"
    assert message_of(b"") == f"{damaged}it must have a graph with at least 1 output, but got none"
    b = ModelBuilder()
    b.node("Relu", "nowhere", output="y")
    assert message_of(b.finish("y")) == f"{damaged}node 0 Relu ('y') reads 'nowhere', which nothing before it gives"
    b = ModelBuilder()
    b.node("Relu", b.input("x", (1,)), output="x")
    assert message_of(b.finish("x")) == f"{damaged}node 0 Relu ('x') gives 'x', which is given before it"
    b = ModelBuilder()
    b.input("x", (1,))
    assert message_of(b.finish("y")) == f"{damaged}nothing gives the output 'y'"
    model = onnx.ModelProto()
    model.ParseFromString(residual_block())
    model.graph.initializer[0].raw_data = b"\x00"
    assert message_of(model.SerializeToString()).startswith(f"{damaged}constant 'c0' cannot be read")


def test_no_cut_of_a_file_ends_in_a_traceback() -> None:
    content = residual_block()
    # Behind the graph there are but the versions of the operator sets.
    for length in range(0, len(content) - 40, 7):
        with pytest.raises(ImportModelError):
            import_onnx(content[:length])


def test_no_changed_byte_ends_in_a_traceback() -> None:
    content, random = residual_block(), np.random.default_rng(0)
    refused = 0
    for _ in range(300):
        changed = bytearray(content)
        changed[int(random.integers(len(content)))] = int(random.integers(256))
        try:
            import_onnx(bytes(changed))
        except ImportModelError:
            refused += 1
    assert refused > 100


def external(folder: Path) -> Path:
    """A model whose constants lie in another file."""
    model, path, data = onnx.ModelProto(), folder / "model.onnx", b""
    model.ParseFromString(residual_block())
    for tensor in model.graph.initializer:
        external_data_helper.set_external_data(tensor, "weights.bin", len(data), len(tensor.raw_data))
        data += tensor.raw_data
        tensor.ClearField("raw_data")
    (folder / "weights.bin").write_bytes(data)
    path.write_bytes(model.SerializeToString())
    return path


def test_external_data_lies_in_the_models_folder(tmp_path: Path) -> None:
    path = external(tmp_path)
    assert str(import_onnx(path)) == str(import_onnx(residual_block()))
    name = "data of constant"
    with pytest.raises(ImportModelError, match=f"{name} .* so the model must be given as a path"):
        import_onnx(path.read_bytes())
    (tmp_path / "weights.bin").unlink()
    with pytest.raises(ImportModelError, match=f"{name} .* must be in 'weights.bin' in the model's folder"):
        import_onnx(path)


def test_without_the_package_an_error_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "onnx", None)
    assert "pip install 'qdialect[onnx]'" in message_of(b"")


def test_files_are_known_by_their_suffix(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "model.onnx"
    path.write_bytes(residual_block())
    assert str(read_model(path)) == str(import_onnx(path))
    assert import_model.main([str(path), "--batch", "3"]) == 0
    assert "tensor<3x4x8x8xf32>" in capsys.readouterr().out
    assert import_model.main([str(path), "--dim", "batch=5"]) == 0
    assert "tensor<5x4x8x8xf32>" in capsys.readouterr().out
    with pytest.raises(SystemExit):
        import_model.main([str(path), "--dim", "batch"])
    assert "argument --dim: must be NAME=N, but got 'batch'" in capsys.readouterr().err
    with pytest.raises(ImportModelError, match=r"cannot read '.*absent\.onnx'"):
        import_onnx(tmp_path / "absent.onnx")


def twins(*outputs: str) -> bytes:
    b = ModelBuilder()
    b.node_of_many("Twins", [b.input("x", (4,), np.uint8)], outputs)
    return b.finish(*filter(None, outputs))


def test_every_output_of_a_node_gets_its_tensor(monkeypatch: pytest.MonkeyPatch) -> None:
    def plan(call: Call) -> tuple[Tensor, ...]:
        return call.tensor(0), Constant(np.array([7], np.uint8))

    def planner_of(_: str) -> Planner:
        return plan

    monkeypatch.setattr(importer, "planner_of", planner_of)
    values = np.arange(4, dtype=np.uint8)
    for outputs, wanted in ((("y", "z"), [values, [7]]), (("", "z"), [[7]]), (("y", ""), [values]), (("y",), [values])):
        results = interpreter.run(import_onnx(twins(*outputs)), [values])
        assert [result.tolist() for result in results] == [list(array) for array in wanted]
    assert notes_of(twins("a", "b", "c")) == ["node 0 Twins ('a'): must have 2 outputs, but got 3"]
    assert notes_of(twins("", "", "c")) == ["node 0 Twins: must have 2 outputs, but got 3"]
