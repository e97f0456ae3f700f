"""LSTM, GRU and RNN of ONNX models: against their formulas in float64, interpreted and compiled."""

from collections.abc import Callable
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

import numpy as np
import pytest
from compiled_ops import check_compiled, variants_together
from numpy.typing import NDArray
from onnx_graphs import CONTRIB, ModelBuilder, drawn, f32_values, quantized_of
from tolerances import assert_floats_within, assert_within, tolerance_of

from qdialect.frontends.onnx import import_onnx
from qdialect.reference import interpreter
from qdialect.runtime import compile_module
from qdialect.support.diagnostics import ImportModelError

Array = NDArray[Any]
ORT: Any = import_module("onnxruntime")
GATES = {"LSTM": 4, "GRU": 3, "RNN": 1}
DIRECTIONS = {"forward": [False], "reverse": [True], "bidirectional": [False, True]}
STEPS, BATCH, INPUTS, HIDDEN = 5, 3, 7, 6


def numbers(*shape: int, seed: int) -> Array:
    return (np.random.default_rng(seed).normal(size=shape) * 0.6).astype(np.float32)


def sigmoid(x: Array) -> Array:
    return 1 / (1 + np.exp(-x))


def relu(x: Array) -> Array:
    return np.maximum(x, 0)


FUNCTIONS: dict[str, Callable[[Array], Array]] = {
    "Sigmoid": sigmoid,
    "Tanh": np.tanh,
    "Relu": relu,
    "Affine": lambda x: 0.7 * x + 0.1,
    "LeakyRelu": lambda x: np.where(x > 0, x, 0.01 * x),
    "ThresholdedRelu": lambda x: np.where(x > 0.2, x, 0),
    "ScaledTanh": lambda x: 1.2 * np.tanh(0.8 * x),
    "HardSigmoid": lambda x: np.clip(0.2 * x + 0.5, 0, 1),
    "Elu": lambda x: np.where(x > 0, x, 0.9 * np.expm1(np.minimum(x, 0))),
    "Softsign": lambda x: x / (1 + np.abs(x)),
    "Softplus": lambda x: np.log1p(np.exp(x)),
}
DEFAULTS = {"LSTM": ["Sigmoid", "Tanh", "Tanh"], "GRU": ["Sigmoid", "Tanh"], "RNN": ["Tanh"]}


@dataclass
class Layer:
    """A node and its inputs; `formula` is what the operator's definition says, in float64."""

    kind: str
    attributes: dict[str, Any] = field(default_factory=dict[str, Any])
    lengths: list[int] | None = None
    has_bias: bool = True
    has_initial: bool = True
    has_peepholes: bool = False

    def __post_init__(self) -> None:
        self.directions = DIRECTIONS[self.attributes.get("direction", "forward")]
        count, width = len(self.directions), GATES[self.kind] * HIDDEN
        self.x = numbers(STEPS, BATCH, INPUTS, seed=0)
        self.w, self.r = numbers(count, width, INPUTS, seed=1), numbers(count, width, HIDDEN, seed=2)
        self.p = numbers(count, 3 * HIDDEN, seed=6) * self.has_peepholes
        self.b = numbers(count, 2 * width, seed=3) * self.has_bias
        states = (count, BATCH, HIDDEN)
        self.h, self.c = numbers(*states, seed=4) * self.has_initial, numbers(*states, seed=5) * self.has_initial

    @property
    def free(self) -> list[Array]:
        """What the model is called with."""
        states = [self.h, self.c][: 2 if self.kind == "LSTM" else 1] if self.has_initial else []
        if self.attributes.get("layout"):
            return [np.ascontiguousarray(one.swapaxes(0, 1)) for one in (self.x, *states)]
        return [self.x, *states]

    def model(self, outputs: list[str]) -> bytes:
        b = ModelBuilder()
        x, *states = (b.input(f"x{i}", array.shape) for i, array in enumerate(self.free))
        names = [x, b.constant(self.w), b.constant(self.r), b.constant(self.b) if self.has_bias else ""]
        names += [b.constant(np.array(self.lengths, np.int32)) if self.lengths else "", *states]
        names += ([] if states else ["", ""]) + [b.constant(self.p)] if self.has_peepholes else []
        b.node_of_many(self.kind, names, outputs, hidden_size=HIDDEN, **self.attributes)
        return b.finish(*filter(None, outputs), dtype=np.float32)

    def formula(self) -> list[Array]:
        """Y, Y_h and, of an LSTM, Y_c."""
        y = np.zeros((STEPS, len(self.directions), BATCH, HIDDEN))
        last = np.zeros((2, len(self.directions), BATCH, HIDDEN))
        for d, is_reverse in enumerate(self.directions):
            for n in range(BATCH):
                length = self.lengths[n] if self.lengths else STEPS
                h, c = self.h[d, n].astype(np.float64), self.c[d, n].astype(np.float64)
                for t in range(length - 1, -1, -1) if is_reverse else range(length):
                    h, c = self._step(d, self.x[t, n].astype(np.float64), h, c)
                    y[t, d, n] = h
                last[:, d, n] = h, c
        results = [y, last[0], last[1]][: 3 if self.kind == "LSTM" else 2]
        if not self.attributes.get("layout"):
            return results
        return [y.transpose(2, 0, 1, 3), *(one.swapaxes(0, 1) for one in results[1:])]

    def _step(self, d: int, x: Array, h: Array, c: Array) -> tuple[Array, Array]:
        names = self.attributes.get("activations", DEFAULTS[self.kind] * len(self.directions))
        own = names[d * len(DEFAULTS[self.kind]) :]
        f, g = FUNCTIONS[own[0]], FUNCTIONS[own[min(1, len(own) - 1)]]
        width, clip = len(self.w[d]), self.attributes.get("clip", np.inf)
        wb, rb = self.b[d, :width].astype(np.float64), self.b[d, width:].astype(np.float64)
        inner, outer = self.r[d] @ h + rb, self.w[d] @ x + wb

        def limited(gate: Array) -> Array:
            return np.clip(gate, -clip, clip)

        if self.kind == "RNN":
            return f(limited(outer + inner)), c
        if self.kind == "LSTM":
            i, o, forget, n = np.split(outer + inner, 4)
            p_i, p_o, p_f = np.split(self.p[d].astype(np.float64), 3)
            taken = f(limited(i + p_i * c))
            kept = 1 - taken if self.attributes.get("input_forget") else f(limited(forget + p_f * c))
            c = kept * c + taken * g(limited(n))
            return f(limited(o + p_o * c)) * FUNCTIONS[own[2]](c), c
        z, r = np.split(f(limited((outer + inner)[: 2 * HIDDEN])), 2)
        last = slice(2 * HIDDEN, None)
        after = r * inner[last] if self.attributes.get("linear_before_reset") else self.r[d][last] @ (r * h) + rb[last]
        return (1 - z) * g(limited(outer[last] + after)) + z * h, c


LAYERS: dict[str, Layer] = {
    **{f"{kind} {direction}": Layer(kind, {"direction": direction}) for kind in GATES for direction in DIRECTIONS},
    **{f"{kind} alone": Layer(kind, {}, has_bias=False, has_initial=False) for kind in GATES},
    **{f"{kind} by batch": Layer(kind, {"layout": 1, "direction": "bidirectional"}) for kind in GATES},
    **{f"{kind} limited": Layer(kind, {"clip": 0.3}) for kind in GATES},
    **{
        f"{kind} of lengths {direction}": Layer(kind, {"direction": direction}, lengths=[2, 5, 2])
        for kind in GATES
        for direction in ("forward", "bidirectional")
    },
    "all shorter": Layer("LSTM", {"direction": "bidirectional"}, lengths=[3, 3, 3]),
    "linear before reset": Layer("GRU", {"direction": "bidirectional", "linear_before_reset": 1, "clip": 0.5}),
    "other functions": Layer(
        "LSTM", {"direction": "bidirectional", "activations": ["Sigmoid", "Relu", "Tanh", "Tanh", "Tanh", "Relu"]}
    ),
    "relu": Layer("RNN", {"activations": ["Relu"]}),
    "peepholes": Layer("LSTM", {"direction": "bidirectional", "clip": 0.8}, has_peepholes=True),
    "peepholes of lengths": Layer("LSTM", {"direction": "reverse"}, lengths=[2, 5, 2], has_peepholes=True),
    "coupled gates": Layer("LSTM", {"input_forget": 1, "layout": 1}),
    "coupled gates with peepholes": Layer("LSTM", {"input_forget": 1}, has_peepholes=True, has_initial=False),
    "functions of an LSTM": Layer(
        "LSTM",
        {
            "direction": "bidirectional",
            "activations": ["HardSigmoid", "ScaledTanh", "Softsign", "Sigmoid", "Elu", "Affine"],
            "activation_alpha": [0.2, 1.2, 0.9, 0.7],
            "activation_beta": [0.5, 0.8, 0.1],
        },
    ),
    "functions of a GRU": Layer("GRU", {"activations": ["HardSigmoid", "LeakyRelu"]}),
    "functions after a reset": Layer("GRU", {"activations": ["HardSigmoid", "Softsign"], "linear_before_reset": 1}),
    "thresholds": Layer("RNN", {"activations": ["ThresholdedRelu"], "activation_alpha": [0.2], "clip": 0.9}),
    "softplus": Layer("RNN", {"activations": ["Softplus"], "direction": "reverse"}),
}


@variants_together
@pytest.mark.parametrize("name", LAYERS)
def test_layers(name: str) -> None:
    layer = LAYERS[name]
    wanted = layer.formula()
    module = import_onnx(layer.model([f"y{i}" for i in range(len(wanted))]))
    results = interpreter.run(module, layer.free)
    check_compiled(module, "host", [layer.free], [results])
    for found, exact in zip(results, wanted, strict=True):
        assert_floats_within(found, exact, "formula")


@pytest.mark.parametrize("asked", [1, 2])
def test_what_no_one_reads_is_not_computed(asked: int) -> None:
    layer = LAYERS["LSTM forward"]
    outputs = ["", "", ""]
    outputs[asked] = "last"
    module = import_onnx(layer.model(outputs))
    (found,) = interpreter.run(module, layer.free)
    assert_floats_within(found, layer.formula()[asked], "formula")
    assert str(module).count("qnn.slice") == 1


@pytest.mark.parametrize("scales", ["one", "by direction", "by row"])
def test_a_layer_between_quantizations(scales: str) -> None:
    """The sequence and the weights are quantized values: their product is one of integers."""
    x_by, r_by, to = (0.02, 120), 0.01, (1 / 128, 128)
    x, w = drawn((STEPS, BATCH, INPUTS), np.uint8), drawn((2, 4 * HIDDEN, INPUTS), np.int8, 1)
    r = drawn((2, 4 * HIDDEN, HIDDEN), np.int8, 2)
    shape, axis = {"one": ((), 0), "by direction": ((2,), 0), "by row": ((4 * HIDDEN,), 1)}[scales]
    w_by = np.random.default_rng(3).uniform(0.005, 0.01, shape).astype(np.float32)
    b = ModelBuilder()
    data = b.dequantize(b.input("x", x.shape, np.uint8), x_by)
    weights = b.weight(w, w_by.tolist(), axis), b.weight(r, r_by)
    b.node_of_many("LSTM", [data, *weights], ["y"], hidden_size=HIDDEN, direction="bidirectional")
    module = import_onnx(b.finish(b.quantize("y", to)))
    assert "qnn.f32_matmul" not in str(module)
    (found,) = interpreter.run(module, [x])
    np.testing.assert_array_equal(compile_module(module)(x), found)
    layer = Layer("LSTM", {"direction": "bidirectional"}, has_bias=False, has_initial=False)
    by = w_by.reshape({"one": (), "by direction": (2, 1, 1), "by row": (-1, 1)}[scales])
    layer.x, layer.w, layer.r = f32_values(x, x_by), w.astype(np.float32) * by, f32_values(r, (r_by, 0))
    assert_within(found, quantized_of(layer.formula()[0], to), tolerance_of(".onnx", "LSTM"))


@pytest.mark.parametrize("is_by_column", [False, True])
@pytest.mark.parametrize("dtype", [np.int8, np.uint8])
def test_dynamically_quantized_layers(dtype: type[np.generic], is_by_column: bool) -> None:
    layer = Layer("LSTM", {"direction": "bidirectional"}, has_initial=False)
    width = 4 * HIDDEN
    quantized = [drawn((2, depth, width), dtype, depth) for depth in (INPUTS, HIDDEN)]
    shape = (2, width) if is_by_column else (2,)
    scale = np.random.default_rng(6).uniform(0.005, 0.01, shape).astype(np.float32)
    point = 0 if dtype is np.int8 else 128
    points = np.full(shape, point, dtype)
    b = ModelBuilder()
    names = [b.input("x", layer.x.shape), *map(b.constant, quantized), b.constant(layer.b), "", "", "", ""]
    names += [b.constant(one) for one in (scale, points, scale, points)]
    attributes: dict[str, Any] = {"direction": "bidirectional", "hidden_size": HIDDEN}
    b.node_of_many(f"{CONTRIB}.DynamicQuantizeLSTM", names, ["y", "h", "c"], **attributes)
    content = b.finish("y", "h", "c", dtype=np.float32)
    options = ORT.SessionOptions()
    # With several threads every sequence of a batch is quantized by itself.
    options.intra_op_num_threads = 1
    kernel = ORT.InferenceSession(content, options, providers=["CPUExecutionProvider"])
    module = import_onnx(content)
    assert "qnn.f32_matmul" not in str(module)
    results = compile_module(module)(layer.x)
    for found, wanted in zip(results, kernel.run(None, {"x": layer.x}), strict=True):
        assert_floats_within(found, wanted, "layer")


@pytest.mark.parametrize("lengths", [[5, 5, 5], [0, 5, 3], [2, 1, 4]])
@pytest.mark.parametrize("direction", ["forward", "reverse", "bidirectional"])
@pytest.mark.parametrize("kind", ["LSTM", "GRU", "RNN"])
def test_lengths_that_are_known_at_run_time(kind: str, direction: str, lengths: list[int]) -> None:
    layer = Layer(kind, {"direction": direction})
    outputs = ["y", "h", "c"] if kind == "LSTM" else ["y", "h"]
    b = ModelBuilder()
    names = [b.input("x", layer.x.shape), b.constant(layer.w), b.constant(layer.r), b.constant(layer.b)]
    names.append(b.input("lengths", (3,), np.int32))
    states = np.random.default_rng(9).normal(size=(len(outputs) - 1, len(layer.w), 3, HIDDEN)).astype(np.float32)
    names += [b.constant(one) for one in states]
    b.node_of_many(kind, names, outputs, hidden_size=HIDDEN, direction=direction)
    content = b.finish(*outputs, dtype=np.float32)
    inputs = {"x": layer.x, "lengths": np.array(lengths, np.int32)}
    wanted = ORT.InferenceSession(content, providers=["CPUExecutionProvider"]).run(None, inputs)
    module = import_onnx(content)
    given = list(inputs.values())
    interpreted, compiled = interpreter.run(module, given), compile_module(module)(*given)
    for found, same, exact in zip(interpreted, compiled, wanted, strict=True):
        np.testing.assert_array_equal(found, same)
        assert_floats_within(found, exact, "formula")


def test_lengths_have_one_entry_for_each_sequence() -> None:
    layer, b = Layer("GRU"), ModelBuilder()
    names = [b.input("x", layer.x.shape), b.constant(layer.w), b.constant(layer.r), ""]
    b.node_of_many("GRU", [*names, b.input("lengths", (2,), np.int32)], ["y"], hidden_size=HIDDEN)
    with pytest.raises(ImportModelError) as caught:
        import_onnx(b.finish("y", dtype=np.float32))
    assert "sequence_lens must be i32 of shape [3], but got i32 of [2]" in caught.value.render()


REFUSED: dict[str, tuple[str, dict[str, Any]]] = {
    "direction must be forward, reverse, bidirectional, but got up": ("LSTM", {"direction": "up"}),
    "activations must be functions of ONNX's recurrent operators, but got Cos": ("RNN", {"activations": ["Cos"]}),
    "activation_alpha must have an entry for each function with one": (
        "GRU",
        {"activations": ["HardSigmoid", "Elu"], "activation_alpha": [0.5]},
    ),
    "ScaledTanh must have an activation_alpha and an activation_beta": ("RNN", {"activations": ["ScaledTanh"]}),
    "activations must have 2 entries, but got 1": ("GRU", {"activations": ["Tanh"]}),
    "clip must be more than 0, but got 0.0": ("RNN", {"clip": 0.0}),
    "sequence_lens must be 3 integers in [1, 5], but got [2, 6, 1]": ("GRU", {"lengths": [2, 6, 1]}),
}


@pytest.mark.parametrize("message", REFUSED)
def test_what_no_cell_means_is_refused(message: str) -> None:
    kind, attributes = REFUSED[message]
    layer = Layer(kind, lengths=attributes.pop("lengths", None))
    layer.attributes = attributes
    with pytest.raises(ImportModelError) as caught:
        import_onnx(layer.model(["y"]))
    assert message in caught.value.render()


@pytest.mark.parametrize(
    ("shape", "steps", "message"),
    [
        ((1, 2 * HIDDEN), 5, "input 7 must be f32 of shape [1, 18], but got float32 [1, 12]"),
        ((1, 3 * HIDDEN), 257, "cell must have at most 256 time steps, but got 257"),
    ],
)
def test_peepholes_that_no_cell_has_are_refused(shape: tuple[int, ...], steps: int, message: str) -> None:
    layer, b = LAYERS["LSTM forward"], ModelBuilder()
    names = [b.input("x", (steps, BATCH, INPUTS)), b.constant(layer.w), b.constant(layer.r), *[""] * 4]
    b.node_of_many("LSTM", [*names, b.constant(np.ones(shape, np.float32))], ["y"], hidden_size=HIDDEN)
    with pytest.raises(ImportModelError) as caught:
        import_onnx(b.finish("y", dtype=np.float32))
    assert message in caught.value.render()
