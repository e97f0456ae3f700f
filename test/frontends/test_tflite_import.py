"""What an imported module looks like, what the importer refuses and how it says so."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tflite
from numpy.typing import NDArray
from seeded_mobilenet import write_mobilenet
from tflite_graphs import HALF, Given, Result, one_operator, options_of, refused

from qdialect.dialect import ClipOp
from qdialect.frontends.tflite import TENSOR_ATTRIBUTE, import_tflite, importer
from qdialect.frontends.tflite.flatbuffer.model import Operator
from qdialect.frontends.tflite.flatbuffer.reader import read_graph
from qdialect.frontends.tflite.flatbuffer.writer import ModelWriter, Quantization
from qdialect.frontends.tflite.operators import Emission
from qdialect.frontends.tflite.operators.registry import Emitter
from qdialect.ir._mlir import ir
from qdialect.reference import interpreter
from qdialect.support.diagnostics import ImportModelError

OPERATOR = tflite.BuiltinOperator
ROW = Given(np.zeros((1, 4), np.int8), False, HALF)


@pytest.fixture(scope="module")
def mobilenet(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("models") / "seeded.tflite"
    write_mobilenet(path, seed=0, size=64)
    return path


def fully_connected(dtype: type[np.generic], output_scale: float, bias: list[int]) -> bytes:
    """A layer whose weights are zero: its accumulators are its bias."""
    one, n = Quantization((1.0,), (0,)), len(bias)
    constants = [Given(np.zeros((n, 4), dtype), True, one), Given(np.array(bias, np.int32), True, one)]
    output = Result((1, n), dtype, Quantization((output_scale,), (3,)))
    inputs = [Given(np.zeros((1, 4), dtype), False, one), *constants]
    return one_operator(OPERATOR.FULLY_CONNECTED, inputs, [output], options_of("FullyConnected"))


def added(activation: int, quantization: Quantization = HALF, rhs: NDArray[np.int8] | None = None) -> bytes:
    writer = ModelWriter("sum")
    x = writer.tensor("x", (1, 4), np.int8, quantization)
    other = x if rhs is None else writer.constant("c", rhs, quantization)
    y = writer.tensor("y", (1, 4), np.int8, quantization)
    writer.operator(OPERATOR.ADD, [x, other], y, *options_of("Add", activation))
    return writer.finish([x], [y])


def text_of(module: ir.Module, debug: bool = False) -> str:
    return module.operation.get_asm(enable_debug_info=debug)


def operations(module: ir.Module) -> list[ir.Operation]:
    """The ops of @main; the bindings free them with `module`, which the caller holds."""
    return [op.operation for op in module.body.operations[0].regions[0].blocks[0].operations]


def notes_of(content: bytes) -> list[str]:
    with pytest.raises(ImportModelError) as caught:
        import_tflite(content)
    return [note.message for note in caught.value.diagnostics[0].notes]


def test_function_says_what_its_arguments_and_results_are(mobilenet: Path) -> None:
    text = text_of(import_tflite(mobilenet)).splitlines()[1]
    argument = 'tensor<1x64x64x3xui8> {qnn.name = "input", qnn.scale = 7.812500e-03 : f64, qnn.zero_point = 128 : i64}'
    result = 'tensor<1x1001xui8> {qnn.name = "Softmax", qnn.scale = 3.906250e-03 : f64, qnn.zero_point = 0 : i64}'
    assert text == f"  func.func public @main(%arg0: {argument}) -> ({result}) {{"


def test_ops_know_the_node_they_come_from(mobilenet: Path) -> None:
    module = import_tflite(mobilenet)
    made = operations(module)
    producer = next(op for op in made if op.name == "qnn.requantize")
    assert str(producer.location) == 'loc("Conv2d_0"("seeded.tflite":0:0))'
    assert [str(op.location) for op in made if op.name == "qnn.conv2d"][1].startswith('loc("Conv2d_1_depthwise"')
    tensors = [
        ir.IntegerAttr(op.attributes[TENSOR_ATTRIBUTE]).value for op in made if TENSOR_ATTRIBUTE in op.attributes
    ]
    assert len(tensors) == len(set(tensors)) == 31


@pytest.mark.parametrize("dtype", [np.int8, np.uint8])
def test_fully_connected_rounds_once_and_ties_away_from_zero(dtype: type[np.generic]) -> None:
    """Recorded from the reference kernel: halves of -5 to 5."""
    module = import_tflite(fully_connected(dtype, 2.0, list(range(-5, 6))))
    requantize = next(op for op in operations(module) if op.name == "qnn.requantize")
    assert ir.StringAttr(requantize.attributes["rounding"]).value == "fixed64_nearest"
    expected = np.array([-3, -2, -2, -1, -1, 0, 1, 1, 2, 2, 3]) + 3
    assert interpreter.run(module, [np.zeros((1, 4), dtype)])[0].tolist() == [expected.tolist()]


def test_convolutions_form_their_multiplier_by_type(mobilenet: Path) -> None:
    module = import_tflite(mobilenet)
    choices = {
        (ir.StringAttr(op.attributes["rounding"]).value, ir.StringAttr(op.attributes["multiplier"]).value)
        for op in operations(module)
        if op.name == "qnn.requantize"
    }
    assert choices == {("fixed32_double", "f32_product")}


@pytest.mark.parametrize(
    ("activation", "low", "high"),
    [
        (tflite.ActivationFunctionType.NONE, -128, 127),
        (tflite.ActivationFunctionType.RELU, 3, 127),
        (tflite.ActivationFunctionType.RELU6, 3, 15),
        (tflite.ActivationFunctionType.RELU_N1_TO_1, 1, 5),
    ],
)
def test_fused_activation_is_a_clamp(activation: int, low: int, high: int) -> None:
    text = text_of(import_tflite(added(activation)))
    assert f"output_max = {high} : i64, output_min = {low} : i64" in text


def test_reshapes_take_the_shape_of_their_output() -> None:
    writer = ModelWriter("shapes")
    x = writer.tensor("x", (1, 2, 3), np.int8, HALF)
    y = writer.tensor("y", (2, 3), np.int8, HALF)
    z = writer.tensor("z", (2, 1, 3), np.int8, HALF)
    p = writer.tensor("p", (6,), np.int8, HALF)
    axis = writer.constant("axis", np.array([1], dtype=np.int32))
    shape = writer.constant("shape", np.array([-1], dtype=np.int32))
    writer.operator(OPERATOR.SQUEEZE, [x], y)
    writer.operator(OPERATOR.EXPAND_DIMS, [y, axis], z)
    writer.operator(OPERATOR.RESHAPE, [z, shape], p)
    values = np.arange(6, dtype=np.int8).reshape(1, 2, 3)
    (result,) = interpreter.run(import_tflite(writer.finish([x], [p])), [values])
    assert result.tolist() == [0, 1, 2, 3, 4, 5]


def test_everything_unsupported_is_named_at_once() -> None:
    writer = ModelWriter("unsupported")
    x = writer.tensor("x", (1, 4), np.int8, HALF)
    y, z = writer.tensor("y", (1, 4), np.int8, HALF), writer.tensor("sum", (1, 4), np.int8, HALF)
    p = writer.tensor("p", (1, 4), np.float64)
    writer.operator(OPERATOR.COS, [x], y)
    writer.operator(OPERATOR.ADD, [x, y], z, *options_of("Add", tflite.ActivationFunctionType.TANH))
    writer.operator(OPERATOR.WHERE, [z], p)
    assert notes_of(writer.finish([x], [p])) == [
        "node 0 COS ('y'): operator is not supported on i8",
        "node 1 ADD ('sum'): fused activation 4 is not supported",
        "node 2 WHERE ('p'): operator is not supported: the shape of its result depends on the data",
        "output 'p': type must be i1, i8, ui8, i16, i32, i64 or f32, but got float64",
    ]


def test_types_are_checked() -> None:
    inputs = [Given(np.zeros((1, 4), np.float32))] * 2
    content = one_operator(OPERATOR.ADD, inputs, [Result((1, 4), np.int8, HALF)], options_of("Add", 0))
    assert notes_of(content) == ["node 0 ADD ('y0'): input must be i8 or ui8, but got f32"]


def hard_swish(output_scale: float) -> bytes:
    output = Result((1, 4), np.int8, Quantization((output_scale,), (0,)))
    return one_operator(OPERATOR.HARD_SWISH, [ROW], [output])


def test_hard_swish_has_the_bound_of_its_op() -> None:
    """Beyond the bounds the kernel would shift words by a negative number, or by more bits than they have."""
    minimum = 0.5 / 128
    (note,) = notes_of(hard_swish(minimum))
    assert note == f"node 0 HARD_SWISH ('y0'): output scale must be greater than {minimum}, but got {minimum}"
    import_tflite(hard_swish(float(np.nextafter(np.float32(minimum), np.float32(1)))))
    import_tflite(hard_swish(minimum * 2**16))
    (note,) = notes_of(hard_swish(minimum * 2**17))
    assert "output scale must be at most 256.0, but got 512.0" in note


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "file is no .tflite model: it must have the identifier 'TFL3'"),
        (b"\x1c\x00\x00\x00TFL3", "file is damaged: the model cannot be read"),
        (added(0)[:-200], "file is damaged"),
        (added(0, Quantization((float("nan"),), (0,))), "has 1 unsupported operation"),
        (added(0, Quantization((0.5,), (300,))), "output zero point must be in [-128, 127], but got 300"),
    ],
    ids=["empty", "short", "truncated", "scale", "zero_point"],
)
def test_damage_is_told(content: bytes, message: str) -> None:
    assert message in refused(content)


def test_a_missing_file_is_told() -> None:
    with pytest.raises(ImportModelError, match=r"cannot read 'nowhere\.tflite': No such file or directory"):
        import_tflite("nowhere.tflite")


def test_a_tensor_without_producer_is_told() -> None:
    writer = ModelWriter("graph")
    x, loose, y = (writer.tensor(name, (1, 4), np.int8, HALF) for name in ("x", "loose", "y"))
    writer.operator(OPERATOR.ADD, [x, loose], y, *options_of("Add", 0))
    assert "tensor 'loose' must be produced before it is used" in refused(writer.finish([x], [y]))


def test_a_wrong_shape_is_told() -> None:
    content = one_operator(OPERATOR.ADD, [ROW] * 2, [Result((1, 5), np.int8, HALF)], options_of("Add", 0))
    assert "tensor 'y0' must be tensor<1x5xi8>, but got tensor<1x4xi8>" in refused(content)


def two_outputs(kind: int, **options: Any) -> bytes:
    writer = ModelWriter("two outputs")
    x, y, z = (writer.tensor(name, (1, 4), np.int8, HALF) for name in "xyz")
    writer.operator(kind, [x, x], [y, z], **options)
    return writer.finish([x], [z, y])


def plan_as(monkeypatch: pytest.MonkeyPatch, emission: Emission) -> None:
    def plan(_: Operator, **_options: object) -> Emission:
        return emission

    monkeypatch.setattr(importer, "plan", plan)


def test_every_output_of_a_node_gets_its_value(monkeypatch: pytest.MonkeyPatch) -> None:
    def emit(emitter: Emitter) -> list[ir.Value]:
        return [emitter.build(ClipOp, emitter.value(data), element="i8", min=low, max=127) for low in (0, 50)]

    data = read_graph(two_outputs(OPERATOR.COS)).inputs[0]
    plan_as(monkeypatch, emit)
    module = import_tflite(two_outputs(OPERATOR.COS))
    values = np.array([[-1, 1, 49, 51]], np.int8)
    assert [result.tolist() for result in interpreter.run(module, [values])] == [[[50, 50, 50, 51]], [[0, 1, 49, 51]]]
    clips = [op for op in operations(module) if op.name == "qnn.clip"]
    assert [ir.IntegerAttr(op.attributes[TENSOR_ATTRIBUTE]).value for op in clips] == [1, 2]


def test_an_output_may_be_an_argument(monkeypatch: pytest.MonkeyPatch) -> None:
    data = read_graph(two_outputs(OPERATOR.COS)).inputs[0]
    plan_as(monkeypatch, lambda emitter: [emitter.value(data)] * 2)
    module = import_tflite(two_outputs(OPERATOR.COS))
    values = np.array([[-1, 1, 49, 51]], np.int8)
    assert [result.tolist() for result in interpreter.run(module, [values])] == [values.tolist()] * 2


def test_a_node_without_outputs_is_told() -> None:
    writer = ModelWriter("no output")
    x = writer.tensor("x", (1, 4), np.int8, HALF)
    writer.operator(OPERATOR.ADD, [x, x], [], *options_of("Add", 0))
    assert notes_of(writer.finish([x], [x])) == ["node 0 ADD: must have at least 1 output, but got 0"]
