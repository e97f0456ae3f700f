"""A small encoder as exporters write it: token ids and a mask to embeddings, attention, logits and a label."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from networks_16x8 import classifier
from numpy.typing import NDArray
from onnx import ModelProto
from onnx.reference import ReferenceEvaluator
from onnx_graphs import ModelBuilder, Quantization
from tflite_graphs import reference

import qdialect
from qdialect import targets
from qdialect.frontends.onnx import import_onnx
from qdialect.frontends.tflite import import_tflite
from qdialect.passes.pipeline import PassManager
from qdialect.reference import interpreter
from qdialect.runtime import compile_module

Array = NDArray[Any]

VOCABULARY, LENGTH, WIDTH, HEADS = 50, 9, 32, 4
LABELS = 5
LOGITS: Quantization = (1 / 32, 128)


class Encoder:
    """Builds the model; every tensor between two products is quantized to ui8."""

    def __init__(self) -> None:
        self.model = ModelBuilder()
        self._rng = np.random.default_rng(0)

    def content(self) -> bytes:
        model = self.model
        ids, mask = (model.input(name, (1, "seq"), np.int64) for name in ("input_ids", "attention_mask"))
        hidden = self._embedding(ids)
        hidden = self._attention(hidden, self._mask(mask), ids)
        hidden = self._normalized(self._dense(hidden, WIDTH, (1 / 40, 128)))
        first = model.node("Gather", hidden, model.constant(np.array(0)), axis=1)
        quantized = model.quantize(self._product(first, LABELS), LOGITS)
        logits = model.node("DequantizeLinear", quantized, *model.parameters(LOGITS, np.uint8), output="logits")
        label = model.node("ArgMax", logits, axis=-1, keepdims=0, output="label")
        mask_bits = model.node("Cast", mask, to=9)
        ones, along = model.node("Cast", mask_bits, to=7), model.constant(np.array([1]))
        used = model.node("ReduceSum", ones, along, output="used")
        return model.finish(logits, label, used, dtype=np.float32, version=19)

    def _table(self, rows: int) -> str:
        return self.model.weight(self._rng.integers(-127, 128, (rows, WIDTH)).astype(np.int8), 1 / 64)

    def _embedding(self, ids: str) -> str:
        """Words and positions; the positions are known once the shape is."""
        model = self.model
        words = model.node("Gather", self._table(VOCABULARY), ids)
        extent = model.node("Gather", model.node("Shape", ids), model.constant(np.array(1)))
        numbers = [model.constant(np.array(number)) for number in (0, 1)]
        where = model.node("Range", numbers[0], extent, numbers[1])
        positions = model.node("Gather", self._table(2 * LENGTH), where)
        words, positions = (self._requantized(value, (1 / 64, 128)) for value in (words, positions))
        return self._normalized(self._requantized(model.node("Add", words, positions), (1 / 32, 128)))

    def _mask(self, mask: str) -> str:
        """Zero where a token is, a large negative number elsewhere."""
        model = self.model
        grown = model.node("Unsqueeze", mask, model.constant(np.array([1, 2])))
        is_padding = model.node("Equal", grown, model.constant(np.array(0)))
        numbers = model.constant(np.array(-60.0, np.float32)), model.constant(np.array(0.0, np.float32))
        return model.node("Where", is_padding, *numbers)

    def _attention(self, hidden: str, mask: str, ids: str) -> str:
        model, size = self.model, WIDTH // HEADS
        shape = [model.node("Gather", model.node("Shape", ids), model.constant(np.array([i]))) for i in (0, 1)]
        split = model.node("Concat", *shape, model.constant(np.array([HEADS, size])), axis=0)
        joined = model.node("Concat", *shape, model.constant(np.array([-1])), axis=0)
        query, key, value = (
            model.node(
                "Transpose",
                model.node("Reshape", self._dense(hidden, WIDTH, (1 / 40, 128)), split),
                perm=[0, 2, 3, 1] if is_key else [0, 2, 1, 3],
            )
            for is_key in (False, True, False)
        )
        scores = self._requantized(model.node("MatMul", query, key), (1 / 8, 128))
        scaled = model.node("Div", scores, model.constant(np.array(np.sqrt(size), np.float32)))
        masked = model.node("Add", scaled, mask)
        shares = self._requantized(model.node("Softmax", masked, axis=-1), (1 / 256, 0))
        found = self._requantized(model.node("MatMul", shares, value), (1 / 48, 128))
        found = model.node("Reshape", model.node("Transpose", found, perm=[0, 2, 1, 3]), joined)
        total = model.node("Add", self._dense(found, WIDTH, (1 / 40, 128)), hidden)
        return self._normalized(self._requantized(total, (1 / 32, 128)))

    def _dense(self, value: str, width: int, to: Quantization) -> str:
        return self._requantized(self._product(value, width), to)

    def _product(self, value: str, width: int) -> str:
        weight = self.model.weight(self._rng.integers(-127, 128, (WIDTH, width)).astype(np.int8), 1 / 512)
        bias = self.model.constant(self._rng.normal(size=width).astype(np.float32) / 4)
        return self.model.node("Add", self.model.node("MatMul", value, weight), bias)

    def _normalized(self, value: str) -> str:
        scale, bias = np.ones(WIDTH, np.float32), self._rng.normal(size=WIDTH).astype(np.float32) / 8
        parameters = self.model.constant(scale), self.model.constant(bias)
        return self._requantized(self.model.node("LayerNormalization", value, *parameters, axis=-1), (1 / 32, 128))

    def _requantized(self, value: str, to: Quantization) -> str:
        return self.model.dequantize(self.model.quantize(value, to), to)


@pytest.fixture(scope="module")
def content() -> bytes:
    return Encoder().content()


def inputs(seed: int) -> dict[str, Array]:
    rng = np.random.default_rng(seed)
    mask = (np.arange(LENGTH) < LENGTH - 2 * seed).astype(np.int64)[np.newaxis]
    return {"input_ids": rng.integers(0, VOCABULARY, (1, LENGTH)), "attention_mask": mask}


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_logits_and_label_are_those_of_the_model_in_float32(content: bytes, seed: int) -> None:
    """A step of the logits' scale is left for what float32 sums in another order round the other way."""
    given = inputs(seed)
    evaluator: Any = ReferenceEvaluator(ModelProto.FromString(content))
    wanted = evaluator.run(None, given)
    module = import_onnx(content, dims={"seq": LENGTH})
    logits, label, used = interpreter.run(module, list(given.values()))
    assert np.abs(logits - wanted[0]).max() <= LOGITS[0]
    assert logits.std() > 4 * LOGITS[0]
    assert label.tolist() == np.argmax(logits, axis=-1).tolist()
    assert used.tolist() == given["attention_mask"].sum(axis=1, keepdims=True).tolist()
    PassManager("fuse-qnn").run(module)
    for target in ("host", "generic"):
        found = qdialect.compile(module, target=target)(*given.values())
        for one, other in zip(found, (logits, label, used), strict=True):
            np.testing.assert_array_equal(one, other, strict=True)


def test_products_stay_in_integers(content: bytes) -> None:
    module = import_onnx(content, dims={"seq": LENGTH})
    PassManager("fuse-qnn").run(module)
    text = str(module)
    assert "qnn.f32_matmul" not in text
    assert text.count("qnn.fused_dense") + text.count("qnn.fused_matmul") == 8
    assert text.count("tensor<50x32xi8>, tensor<1x9xi64>") == 1


# A whole network of 16-bit activations and 8-bit weights (N5): compiled, it is LiteRT's reference, bit for bit.


@pytest.mark.parametrize("seed", [0, 1])
def test_a_network_equals_the_reference_kernels(seed: int) -> None:
    content = classifier(seed)
    image = np.random.default_rng(seed).normal(size=(1, 33, 31, 3)).astype(np.float32)
    (wanted,) = reference(content, [image])
    assert np.unique(wanted).size > 3
    module = import_tflite(content)
    np.testing.assert_array_equal(interpreter.run(module, [image])[0], wanted)
    for name in dict.fromkeys((targets.host().name, "generic")):
        np.testing.assert_array_equal(compile_module(module, target=name)(image), wanted)
    np.testing.assert_array_equal(compile_module(module, threads=2)(image), wanted)
