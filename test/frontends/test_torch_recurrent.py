"""LSTM, GRU and RNN of PyTorch, over sequences and of one time step, against what PyTorch computes."""

from collections.abc import Callable
from importlib import import_module
from typing import Any

import numpy as np
import pytest
import torch
import torch.utils._pytree as pytree
from tolerances import assert_floats_within, assert_within, tolerance_of
from torch import Tensor, nn
from torch_models import drawn

import qdialect
from qdialect.frontends.torch import import_torch
from qdialect.frontends.torch.importer import import_graph
from qdialect.frontends.torch.program.model import Graph, Node, Output, Ref
from qdialect.support.diagnostics import ImportModelError

import_module("torch.ao.quantization.fx._decomposed")
OPS = torch.ops.quantized_decomposed
STEPS, BATCH, INPUTS, HIDDEN = 6, 3, 5, 4


def seeded(model: nn.Module) -> nn.Module:
    for index, parameter in enumerate(model.parameters()):
        parameter.data = drawn(index, *parameter.shape) / 3
    return model.eval()


def check(model: nn.Module, *given: Tensor) -> str:
    """Compiled code gives what PyTorch does; returns the imported text."""
    program = torch.export.export(model, given)
    module = import_torch(program)
    with torch.no_grad():
        wanted: list[Tensor] = pytree.tree_leaves(model(*given))
    found = qdialect.compile(module)(*(one.numpy() for one in given))
    for one, tensor in zip(found if isinstance(found, tuple) else (found,), wanted, strict=True):
        assert_floats_within(one, tensor.numpy(), "layer")
    return str(module)


LAYERS: dict[str, Callable[..., nn.Module]] = {"lstm": nn.LSTM, "gru": nn.GRU, "rnn": nn.RNN}
SETTINGS: dict[str, dict[str, Any]] = {
    "plain": {},
    "bidirectional": {"bidirectional": True},
    "batch_first": {"batch_first": True},
    "layers": {"num_layers": 3, "bidirectional": True, "batch_first": True, "dropout": 0.5},
    "no_bias": {"bias": False, "num_layers": 2},
}


@pytest.mark.parametrize("setting", SETTINGS)
@pytest.mark.parametrize("kind", LAYERS)
def test_layers(kind: str, setting: str) -> None:
    model = seeded(LAYERS[kind](INPUTS, HIDDEN, **SETTINGS[setting]))
    text = check(model, drawn(1, STEPS, BATCH, INPUTS))
    count = SETTINGS[setting].get("num_layers", 1) * (2 if SETTINGS[setting].get("bidirectional") else 1)
    assert text.count(f'"qnn.f32_{kind}"') == count


def test_a_sequence_without_batch() -> None:
    check(seeded(nn.GRU(INPUTS, HIDDEN)), drawn(3, STEPS, INPUTS))


class WithStates(nn.Module):
    """A layer whose initial states are inputs."""

    def __init__(self, layer: nn.Module, count: int) -> None:
        super().__init__()
        self.layer = layer
        self.count = count

    def forward(self, x: Tensor, *states: Tensor) -> Any:
        return self.layer(x, states if self.count == 2 else states[0])


@pytest.mark.parametrize("kind", LAYERS)
def test_initial_states(kind: str) -> None:
    count = 2 if kind == "lstm" else 1
    layer = LAYERS[kind](INPUTS, HIDDEN, num_layers=2, bidirectional=True)
    states = (drawn(4 + i, 4, BATCH, HIDDEN) for i in range(count))
    check(WithStates(seeded(layer), count).eval(), drawn(3, STEPS, BATCH, INPUTS), *states)


CELLS: dict[str, Callable[..., nn.Module]] = {"lstm": nn.LSTMCell, "gru": nn.GRUCell, "rnn": nn.RNNCell}


@pytest.mark.parametrize("shape", [(BATCH, INPUTS), (INPUTS,)])
@pytest.mark.parametrize("kind", CELLS)
def test_cells(kind: str, shape: tuple[int, ...]) -> None:
    assert f'"qnn.f32_{kind}"' in check(seeded(CELLS[kind](INPUTS, HIDDEN)), drawn(6, *shape))


def test_a_cell_in_a_loop() -> None:
    class Loop(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.cell = nn.LSTMCell(INPUTS, HIDDEN)

        def forward(self, x: Tensor) -> Tensor:
            hidden, state = x.new_zeros(BATCH, HIDDEN), x.new_ones(BATCH, HIDDEN)
            for step in x:
                hidden, state = self.cell(step, (hidden, state))
            return hidden

    assert check(seeded(Loop()), drawn(8, STEPS, BATCH, INPUTS)).count('"qnn.f32_lstm"') == STEPS


def test_projections_are_decomposed() -> None:
    layer = nn.LSTM(INPUTS, HIDDEN, num_layers=2, proj_size=3, bidirectional=True, batch_first=True)
    assert '"qnn.f32_lstm"' not in check(seeded(layer), drawn(9, BATCH, STEPS, INPUTS))


@pytest.mark.parametrize("kind", LAYERS)
def test_layers_that_pytorch_decomposes(kind: str) -> None:
    model, x = seeded(LAYERS[kind](INPUTS, HIDDEN, bidirectional=True)), drawn(10, STEPS, BATCH, INPUTS)
    exported: Any = torch.export.export(model, (x,))
    program = exported.run_decompositions()
    assert not any(".input" in str(node.target) for node in program.graph.nodes)
    found = qdialect.compile(import_torch(program))(x.numpy())
    for one, wanted in zip(found, pytree.tree_leaves(model(x)), strict=True):
        assert_floats_within(one, wanted.detach().numpy(), "layer")


class Quantized(nn.Module):
    """A layer between quantizations, its weights quantized by channel."""

    def __init__(self, kind: str) -> None:
        super().__init__()
        self.operator: Any = {"lstm": torch.lstm, "gru": torch.gru}[kind]
        self.states = 2 if kind == "lstm" else 1
        gates = (4 if kind == "lstm" else 3) * HIDDEN
        rng = np.random.default_rng(11)
        self.values = nn.Buffer(torch.tensor(rng.integers(-127, 128, (gates, INPUTS)).astype(np.int8)))
        self.scales = nn.Buffer(drawn(12, gates).abs() / 100)
        self.points = nn.Buffer(torch.zeros(gates, dtype=torch.int64))
        self.recurrence = nn.Buffer(drawn(13, gates, HIDDEN) / 2)
        self.biases = nn.Buffer(drawn(14, 2, gates) / 4)

    def forward(self, x: Tensor) -> Tensor:
        data = OPS.quantize_per_tensor(x, 0.03, 128, 0, 255, torch.uint8)
        data = OPS.dequantize_per_tensor(data, 0.03, 128, 0, 255, torch.uint8)
        weight = OPS.dequantize_per_channel(self.values, self.scales, self.points, 0, -127, 127, torch.int8)
        zeros = x.new_zeros(1, BATCH, HIDDEN)
        states = (zeros, zeros) if self.states == 2 else zeros
        weights = [weight, self.recurrence, self.biases[0], self.biases[1]]
        found = self.operator(data, states, weights, True, 1, 0.0, False, False, False)
        return OPS.quantize_per_tensor(found[0], 0.01, 100, 0, 255, torch.uint8)


@pytest.mark.parametrize("kind", ["lstm", "gru"])
def test_quantized_weights_multiply_integers(kind: str) -> None:
    x, model = drawn(15, STEPS, BATCH, INPUTS), Quantized(kind)
    module = import_torch(torch.export.export(model, (x,)))
    assert '"qnn.dense"' in str(module)
    found: Any = qdialect.compile(module)(x.numpy())
    assert_within(found, model(x).numpy(), tolerance_of(".pt2", f"aten.{kind}.input"))


def test_packed_sequences_are_refused() -> None:
    arguments = {"data": Ref("x"), "batch_sizes": Ref("sizes"), "hx": (), "params": ()}
    node = Node("lstm", "aten.lstm.data", arguments, (Output((4, 4), "f32"),), "")
    constants = {"x": np.zeros((4, 5), np.float32), "sizes": np.ones(4, np.int64)}
    with pytest.raises(ImportModelError, match="sequences must not be packed"):
        import_graph(Graph((node,), (), ("lstm",), constants), "program")


def test_weights_that_are_computed_are_decomposed() -> None:
    class Computed(nn.Module):
        def forward(self, x: Tensor, weight: Tensor, recurrence: Tensor) -> Tensor:
            zeros = x.new_zeros(1, BATCH, HIDDEN)
            return torch.gru(x, zeros, [weight, recurrence], False, 1, 0.0, False, False, False)[0]

    given = drawn(1, STEPS, BATCH, INPUTS), drawn(2, 3 * HIDDEN, INPUTS), drawn(3, 3 * HIDDEN, HIDDEN)
    check(Computed(), *given)
