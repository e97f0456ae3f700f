"""The benchmark's workloads: their files compute what the NumPy answer says, for tiny versions of every kind."""

from dataclasses import replace
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from shutil import which
from typing import Any

import numpy as np
import pytest

import qdialect
from qdialect.bench import float_functions, torch_program
from qdialect.bench.drawn import LAYERS, ConvolutionLayer, DenseLayer, draw_input, layer_network
from qdialect.bench.engines import ggml
from qdialect.bench.engines.inductor import Inductor, main, make_unsigned
from qdialect.bench.float_functions import FUNCTIONS
from qdialect.bench.network import Network, evaluate
from qdialect.bench.onnx_writer import write_operators, write_qdq
from qdialect.bench.tflite_writer import signed_channels_last, write_tflite
from qdialect.bench.traced_graph import Weights, arrays
from qdialect.bench.transformers import LANGUAGE_LAYERS, WORKLOADS, Shape, prepare
from qdialect.bench.worker import agreement
from qdialect.frontends.onnx import import_onnx
from qdialect.frontends.tflite import import_tflite
from qdialect.reference import interpreter


def tiny(name: str) -> Network:
    """The layer with few rows, channels and columns; what makes it that layer stays."""
    layer = LAYERS[name]
    if isinstance(layer, DenseLayer):
        return layer_network(name, DenseLayer(min(layer.rows, 3), 40, 10))
    channels = min(layer.channels, 6)
    outputs = channels if layer.is_depthwise else 5
    window = (layer.window[0], min(layer.window[1], 9))
    width = window[1] if layer.width == layer.window[1] else 7
    return layer_network(
        name, replace(layer, batch=2, channels=channels, height=8, width=width, outputs=outputs, window=window)
    )


@pytest.mark.parametrize("name", LAYERS)
def test_the_onnx_form_is_the_answer(name: str) -> None:
    network = tiny(name)
    data = draw_input(network, name)
    (found,) = interpreter.run(import_onnx(write_qdq(network)), [data])
    np.testing.assert_array_equal(found, evaluate(network, data))


@pytest.mark.parametrize("name", [name for name, layer in LAYERS.items() if isinstance(layer, ConvolutionLayer)])
def test_the_form_with_channels_last_is_the_answer(name: str) -> None:
    network = tiny(name)
    data = draw_input(network, name)
    module = import_onnx(write_qdq(network, channels_last=True))
    (found,) = interpreter.run(module, [np.ascontiguousarray(data.transpose(0, 2, 3, 1))])
    np.testing.assert_array_equal(found.transpose(0, 3, 1, 2), evaluate(network, data))


@pytest.mark.parametrize("name", ["W1", "W3", "W4", "W6", "W7b"])
def test_the_form_of_quantized_operators_is_the_answer(name: str) -> None:
    network = tiny(name)
    data = draw_input(network, name)
    (found,) = interpreter.run(import_onnx(write_operators(network)), [data])
    np.testing.assert_array_equal(found, evaluate(network, data))


@pytest.mark.parametrize("name", ["W4", "W6", "W7a", "W7b"])
def test_the_tflite_form_is_the_answer_but_for_its_own_rounding(name: str) -> None:
    network = tiny(name)
    data = draw_input(network, name)
    (found,) = interpreter.run(import_tflite(write_tflite(network)), [signed_channels_last(data)])
    gaps = np.abs(found.astype(int) - signed_channels_last(evaluate(network, data)))
    assert gaps.max() <= 1
    assert np.mean(gaps > 0) < 0.01


# A new token, and first tokens; weights of 4 bits, rows as they are and quantized, and weights of 8 bits.
@pytest.mark.parametrize(
    ("name", "bound"), [("T5", 1e-4), ("T5_level4", 0.05), ("T5_int8", 1e-4), ("T5_prefill", 1e-4)]
)
def test_a_layer_of_a_language_model_is_the_answer(name: str, bound: float, tmp_path: Path) -> None:
    load = LANGUAGE_LAYERS[name]
    rows = 1 if load.shape.rows == 1 else 4
    small = replace(load, shape=Shape(1, 64, 4, 96, 9 if rows == 1 else rows, groups=2, rows=rows))
    form = prepare(name, small, tmp_path).forms["onnx"]
    data, answer = form.inputs(), form.outputs()
    found = qdialect.compile(form.model).results(data)
    package: Any = import_module("onnxruntime")
    session: Any = package.InferenceSession(form.model)
    theirs = session.run(None, dict(zip((one.name for one in session.get_inputs()), data, strict=True)))
    for ours, other, exact in zip(found, theirs, answer, strict=True):
        np.testing.assert_allclose(ours, exact, atol=bound)
        np.testing.assert_allclose(ours, other, atol=max(bound, 0.05 if name == "T5_int8" else 0))


@pytest.mark.parametrize("name", WORKLOADS)
def test_a_transformer_is_the_answer_but_for_ties(name: str) -> None:
    shape = Shape(layers=2, width=16, heads=2, hidden=32, tokens=5)
    graph, outputs = WORKLOADS[name].build(shape, np.random.default_rng(5))
    found = interpreter.run(import_onnx(graph.content(outputs)), arrays(graph.inputs))
    # Caches are concatenated, which rounds nothing.
    assert agreement(arrays(outputs)[1:], found[1:]).different == 0
    assert agreement(arrays(outputs)[:1], found[:1], tolerance=0.1).different == 0
    assert graph.macs > 0
    assert len(graph.weights) >= 12


_TINY = Shape(layers=1, width=64, heads=2, hidden=128, tokens=5)
_TINY_DECODER = Shape(1, 64, 4, 96, 9, groups=2)


# Rows of inductor's products for weights of few bits are bfloat16.
@pytest.mark.parametrize(
    ("name", "is_folded", "bound"),
    [
        *((name, False, 1e-5) for name in (*WORKLOADS, *FUNCTIONS)),
        *((name, False, 0.1) for name in ("T5", "T5_int8")),
        *((name, True, 1e-5) for name in ("T5", "T5_int8")),
    ],
)
def test_a_program_of_pytorch_is_the_answer(name: str, is_folded: bool, bound: float, tmp_path: Path) -> None:
    torch: Any = pytest.importorskip("torch")
    if name in FUNCTIONS:
        form = float_functions.prepare(name, (3, 32), tmp_path).forms["function_onnx"]
    else:
        known, small = {**WORKLOADS, **LANGUAGE_LAYERS}[name], _TINY if name in WORKLOADS else _TINY_DECODER
        form = prepare(name, replace(known, shape=small), tmp_path).forms["onnx"]
    program = torch_program.exported(Path(form.model), is_folded=is_folded).module()
    for found, exact in zip(program(*map(torch.from_numpy, form.inputs())), form.outputs(), strict=True):
        np.testing.assert_allclose(found.numpy(), exact, atol=bound)


def test_signed_activations_are_unsigned_for_inductor() -> None:
    torch: Any = pytest.importorskip("torch")
    import_module("torch.ao.quantization.fx._decomposed")
    kinds, numbers = torch.ops.quantized_decomposed, (0.1, -3, -128, 127, torch.int8)

    class Rounded(torch.nn.Module):
        def forward(self, x: Any) -> Any:
            return kinds.dequantize_per_tensor(kinds.quantize_per_tensor(x, *numbers), *numbers)

    x = torch.linspace(-20, 20, 99)
    program = torch.export.export(Rounded(), (x,))
    before = program.module()(x)
    make_unsigned(torch, program)
    assert "torch.int8" not in program.module().code
    np.testing.assert_array_equal(program.module()(x), before)


@pytest.mark.skipif(not which("g++"), reason="inductor needs a C++ compiler")
def test_inductor_compiles_in_a_process_of_its_own(tmp_path: Path) -> None:
    case, engine = float_functions.prepare("F5", (3, 32), tmp_path), Inductor()
    (variant,) = engine.variants(case)
    session = engine.load(case, variant, 1)
    session.call()
    assert agreement(case.forms[variant].outputs(), session.outputs(), case.tolerance).different == 0
    Path(case.forms[variant].model).write_bytes(b"damaged")
    assert str(main([case.forms[variant].model, "package.pt2"])).startswith("DecodeError: ")


@pytest.mark.parametrize(("name", "rows"), [("T5_level4", 1), ("T5_prefill4", 9), ("T5_int8", 1)])
def test_ggml_gets_the_weights_of_a_layer_in_its_own_blocks(name: str, rows: int, tmp_path: Path) -> None:
    shape = replace(_TINY_DECODER, tokens=9, rows=rows)
    case = prepare(name, replace(LANGUAGE_LAYERS[name], shape=shape), tmp_path)
    products, norms = ggml.constants(case.forms["onnx"])
    assert [extents for extents, _ in products] == [
        (64, 64),
        (64, 32),
        (64, 32),
        (64, 64),
        (64, 96),
        (64, 96),
        (96, 64),
    ]
    assert len(norms) == 2
    graph, _ = LANGUAGE_LAYERS[name].build(shape, np.random.default_rng(5))
    for weights, (_, blocks) in zip(graph.weights, products, strict=True):
        scales = np.ascontiguousarray(blocks[..., :2]).view(np.float16).astype(np.float32)
        stored = blocks[..., 2:]
        if isinstance(weights, Weights):
            found, wanted = stored.view(np.int8) * scales, weights.values.T * weights.scales[:, None]
        else:
            found, wanted = (np.concatenate([stored & 15, stored >> 4], -1) - 8.0) * scales, weights.numbers().T
        np.testing.assert_allclose(found.reshape(wanted.shape), wanted, rtol=1e-3)
    if find_spec("ggml"):
        for variant, form in (engine := ggml.Ggml()).variants(case).items():
            session = engine.load(case, variant, 1)
            session.call()
            assert agreement(case.forms[form].outputs(), session.outputs(), tolerance=0.2).different == 0


def test_a_tensor_is_quantized_once_a_call_for_all_readers() -> None:
    shape = Shape(layers=1, width=16, heads=2, hidden=32, tokens=5)
    graph, outputs = WORKLOADS["T2"].build(shape, np.random.default_rng(5))
    content = graph.content(outputs)
    assert (content.count(b"DynamicQuantizeLinear"), content.count(b"MatMulInteger")) == (4, 6)
