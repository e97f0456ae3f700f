"""LSTM, GRU and RNN of ONNX models: interpreted and compiled, compared with ONNX Runtime."""

from typing import Any

import numpy as np
import pytest
from compiled_ops import variants_together
from onnx_graphs import (
    CONTRIB,
    Array,
    Known,
    ModelBuilder,
    Operand,
    assert_same,
    drawn,
    found_by,
    node,
    numbers,
    of_onnx_runtime,
    refused,
    run_both,
)
from tolerances import assert_floats_within, assert_within, tolerance_of

from qdialect.frontends.onnx import import_onnx

GATES = {"LSTM": 4, "GRU": 3, "RNN": 1}
STEPS, BATCH, INPUTS, HIDDEN = 5, 3, 7, 6
Attributes = dict[str, Any]


def scaled(*shape: int, seed: int) -> Array:
    return numbers(*shape, seed=seed) * np.float32(0.6)


def layer(
    kind: str, direction: str = "forward", lengths: Operand = None, bare: str = "", *, has_peepholes: bool = False
) -> list[Operand]:
    """Sequence, weights, bias, lengths, states and peepholes; `bare` names what is left out, "bias" and "states"."""
    count, width = 2 if direction == "bidirectional" else 1, GATES[kind] * HIDDEN
    operands: list[Operand] = [scaled(STEPS, BATCH, INPUTS, seed=0)]
    operands += [Known(scaled(count, width, depth, seed=depth)) for depth in (INPUTS, HIDDEN)]
    operands += [None if "bias" in bare else Known(scaled(count, 2 * width, seed=3)), lengths]
    states = [scaled(count, BATCH, HIDDEN, seed=seed) for seed in (4, 5)[: 2 if kind == "LSTM" else 1]]
    if has_peepholes:
        states = [*(states if "states" not in bare else [None, None]), Known(scaled(count, 3 * HIDDEN, seed=6))]
    return operands if "states" in bare and not has_peepholes else [*operands, *states]


def outputs_of(kind: str) -> int:
    return 3 if kind == "LSTM" else 2


def known(*lengths: int) -> Known:
    return Known(np.array(lengths, np.int32))


OTHERS: list[tuple[str, Attributes, Attributes]] = [
    *((kind, {"bare": "bias states"}, {}) for kind in GATES),
    *((kind, {}, {"clip": 0.3}) for kind in GATES),
    *((kind, {"lengths": known(2, 5, 2)}, {}) for kind in GATES),
    ("LSTM", {"lengths": known(3, 3, 3), "direction": "bidirectional"}, {}),
    ("GRU", {"direction": "bidirectional"}, {"linear_before_reset": 1, "clip": 0.5}),
    ("LSTM", {"direction": "bidirectional"}, {"activations": ["Sigmoid", "Relu", "Tanh", "Tanh", "Tanh", "Relu"]}),
    ("RNN", {}, {"activations": ["Relu"]}),
    ("LSTM", {"direction": "bidirectional", "has_peepholes": True}, {"clip": 0.8}),
    ("LSTM", {"direction": "reverse", "has_peepholes": True, "lengths": known(2, 5, 2)}, {}),
    ("LSTM", {}, {"input_forget": 1}),
    ("LSTM", {"has_peepholes": True, "bare": "states"}, {"input_forget": 1}),
    (
        "LSTM",
        {"direction": "bidirectional"},
        {
            "activations": ["HardSigmoid", "ScaledTanh", "Softsign", "Sigmoid", "Elu", "Affine"],
            "activation_alpha": [0.2, 1.2, 0.9, 0.7],
            "activation_beta": [0.5, 0.8, 0.1],
        },
    ),
    ("GRU", {}, {"activations": ["HardSigmoid", "LeakyRelu"]}),
    ("GRU", {}, {"activations": ["HardSigmoid", "Softsign"], "linear_before_reset": 1}),
    ("RNN", {}, {"activations": ["ThresholdedRelu"], "activation_alpha": [0.2], "clip": 0.9}),
    ("RNN", {"direction": "reverse"}, {"activations": ["Softplus"]}),
]


@variants_together
@pytest.mark.parametrize(("kind", "form", "attributes"), OTHERS)
def test_forms_of_layers(kind: str, form: Attributes, attributes: Attributes) -> None:
    how = {"direction": form.get("direction", "forward"), **attributes}
    content, given = node(kind, layer(kind, **form), outputs_of(kind), hidden_size=HIDDEN, **how)
    assert_same(found_by(content, *given), of_onnx_runtime(content, *given), "layer")


@variants_together
@pytest.mark.parametrize("lengths", [None, [5, 5, 5], [0, 5, 3], [2, 1, 4]])
@pytest.mark.parametrize("direction", ["forward", "reverse", "bidirectional"])
@pytest.mark.parametrize("kind", GATES)
def test_layers(kind: str, direction: str, lengths: list[int] | None) -> None:
    """The lengths of the sequences are known when the network runs."""
    operands = layer(kind, direction, None if lengths is None else np.array(lengths, np.int32))
    content, given = node(kind, operands, outputs_of(kind), hidden_size=HIDDEN, direction=direction)
    assert_same(found_by(content, *given), of_onnx_runtime(content, *given), "layer")


@variants_together
@pytest.mark.parametrize("kind", GATES)
def test_batches_may_come_first(kind: str) -> None:
    """ONNX Runtime takes sequences with the steps first."""
    operands = layer(kind, "bidirectional")
    how: Attributes = {"hidden_size": HIDDEN, "direction": "bidirectional"}
    content, given = node(kind, operands, outputs_of(kind), **how)
    y, *states = of_onnx_runtime(content, *given)
    turned = [one.swapaxes(0, 1).copy() if isinstance(one, np.ndarray) else one for one in operands]
    content, given = node(kind, turned, outputs_of(kind), **how, layout=1)
    wanted = [y.transpose(2, 0, 1, 3), *(one.swapaxes(0, 1) for one in states)]
    assert_same(found_by(content, *given), wanted, "layer")


@pytest.mark.parametrize("outputs", [["", "last"], ["", "", "last"]])
def test_results_that_no_one_reads_are_not_computed(outputs: list[str]) -> None:
    content, given = node("LSTM", layer("LSTM"), outputs, hidden_size=HIDDEN)
    assert_floats_within(run_both(content, *given), of_onnx_runtime(content, *given)[0], "layer")
    assert str(import_onnx(content)).count("qnn.slice") == 1


@pytest.mark.parametrize("scales", [(), (2,), (4 * HIDDEN,)])
def test_a_layer_between_quantizations(scales: tuple[int, ...]) -> None:
    """The sequence and the weights are quantized values: their product is one of integers."""
    x, w = drawn((STEPS, BATCH, INPUTS), np.uint8), drawn((2, 4 * HIDDEN, INPUTS), np.int8, 1)
    w_by = np.random.default_rng(3).uniform(0.005, 0.01, scales).astype(np.float32)
    b = ModelBuilder()
    data = b.dequantize(b.input("x", x.shape, np.uint8), (0.02, 120))
    weights = b.weight(w, w_by.tolist(), int(scales == (24,))), b.weight(drawn((2, 4 * HIDDEN, HIDDEN), np.int8), 0.01)
    b.node_of_many("LSTM", [data, *weights], ["y"], hidden_size=HIDDEN, direction="bidirectional")
    content = b.finish(b.quantize("y", (1 / 128, 128)))
    assert "qnn.f32_matmul" not in str(import_onnx(content))
    assert_within(run_both(content, x), of_onnx_runtime(content, x)[0], tolerance_of(".onnx", "LSTM"))


@pytest.mark.parametrize("is_by_column", [False, True])
@pytest.mark.parametrize("dtype", [np.int8, np.uint8])
def test_dynamically_quantized_layers(dtype: type[np.generic], is_by_column: bool) -> None:
    width = 4 * HIDDEN
    quantized: list[Operand] = [Known(drawn((2, depth, width), dtype, depth)) for depth in (INPUTS, HIDDEN)]
    shape = (2, width) if is_by_column else (2,)
    scale = Known(np.random.default_rng(6).uniform(0.005, 0.01, shape).astype(np.float32))
    point = Known(np.full(shape, 0 if dtype is np.int8 else 128, dtype))
    operands = [scaled(STEPS, BATCH, INPUTS, seed=0), *quantized, Known(scaled(2, 2 * width, seed=3)), *[None] * 4]
    how: Attributes = {"direction": "bidirectional", "hidden_size": HIDDEN}
    content, given = node(f"{CONTRIB}.DynamicQuantizeLSTM", [*operands, scale, point, scale, point], 3, **how)
    assert "qnn.f32_matmul" not in str(import_onnx(content))
    assert_same(found_by(content, *given), of_onnx_runtime(content, *given), "layer")


REFUSED: list[tuple[str, str, Attributes, Attributes]] = [
    ("direction must be forward, reverse, bidirectional, but got up", "LSTM", {}, {"direction": "up"}),
    ("activations must be functions of ONNX's recurrent operators, but got Cos", "RNN", {}, {"activations": ["Cos"]}),
    (
        "activation_alpha must have an entry for each function with one",
        "GRU",
        {},
        {"activations": ["HardSigmoid", "Elu"], "activation_alpha": [0.5]},
    ),
    ("ScaledTanh must have an activation_alpha and an activation_beta", "RNN", {}, {"activations": ["ScaledTanh"]}),
    ("activations must have 2 entries, but got 1", "GRU", {}, {"activations": ["Tanh"]}),
    ("clip must be more than 0, but got 0.0", "RNN", {}, {"clip": 0.0}),
    ("sequence_lens must be 3 integers in [1, 5], but got [2, 6, 1]", "GRU", {"lengths": known(2, 6, 1)}, {}),
    ("sequence_lens must be i32 of shape [3], but got i32 of [2]", "GRU", {"lengths": np.array([1, 2], np.int32)}, {}),
]


@pytest.mark.parametrize(("message", "kind", "form", "attributes"), REFUSED)
def test_cells_without_a_meaning_are_refused(message: str, kind: str, form: Attributes, attributes: Attributes) -> None:
    assert message in refused(node(kind, layer(kind, **form), hidden_size=HIDDEN, **attributes)[0])


@pytest.mark.parametrize(
    ("width", "steps", "message"),
    [
        (2 * HIDDEN, 5, "input 7 must be f32 of shape [1, 18], but got float32 [1, 12]"),
        (3 * HIDDEN, 257, "cell must have at most 256 time steps, but got 257"),
    ],
)
def test_peepholes_that_no_cell_has_are_refused(width: int, steps: int, message: str) -> None:
    operands = [(steps, BATCH, INPUTS), *layer("LSTM")[1:3], *[None] * 4, Known((1, width))]
    assert message in refused(node("LSTM", operands, hidden_size=HIDDEN)[0])
