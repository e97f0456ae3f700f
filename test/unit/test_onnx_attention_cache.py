"""frontends/onnx/operators/attention_cache.py: keys and values of earlier tokens, compared with ONNX Runtime."""

from collections.abc import Sequence
from importlib import import_module
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from onnx_graphs import CONTRIB, ModelBuilder
from tolerances import assert_floats_within

from qdialect.frontends.onnx import import_onnx
from qdialect.reference import interpreter
from qdialect.runtime import compile_module

Array = NDArray[Any]
ORT: Any = import_module("onnxruntime")
BATCH, STEPS, EARLIER, HEADS, WIDTH = 2, 3, 5, 4, 2
ROWS, CACHE = (BATCH, STEPS, HEADS * WIDTH), (BATCH, HEADS, EARLIER, WIDTH)
SPLIT = (BATCH, HEADS, STEPS, WIDTH)


def numbers(*shape: int, seed: int = 0) -> Array:
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


def _check(
    kind: str, shapes: Sequence[tuple[int, ...] | None], outputs: int, constants: dict[int, Array], **attributes: Any
) -> None:
    """Inputs without a shape are omitted or constants."""
    model, given = ModelBuilder(), list[Array]()
    names: list[str] = []
    for index, shape in enumerate(shapes):
        if shape is None:
            names.append(model.constant(constants[index]) if index in constants else "")
            continue
        names.append(model.input(f"x{index}", shape))
        given.append(numbers(*shape, seed=index))
    results = [f"y{index}" for index in range(outputs)]
    model.node_of_many(kind, names, results, **attributes)
    content = model.finish(*results, dtype=np.float32, version=23)
    session = ORT.InferenceSession(content, providers=["CPUExecutionProvider"])
    wanted = session.run(None, dict(zip([one.name for one in session.get_inputs()], given, strict=True)))
    module = import_onnx(content)
    reference = interpreter.run(module, given)
    compiled = compile_module(module)(*given)
    found = compiled if isinstance(compiled, tuple) else (compiled,)
    for one, other, exact in zip(found, wanted, reference, strict=True):
        np.testing.assert_array_equal(one, exact)
        assert_floats_within(one, other, "layer")


@pytest.mark.parametrize("is_causal", [0, 1])
@pytest.mark.parametrize(("earlier", "outputs"), [(True, 3), (False, 3), (False, 1)])
def test_several_heads(is_causal: int, earlier: bool, outputs: int) -> None:
    caches: list[tuple[int, ...] | None] = [None, None, None, CACHE, CACHE] if earlier else []
    how = {"num_heads": HEADS, "unidirectional": is_causal}
    _check(f"{CONTRIB}.MultiHeadAttention", [ROWS, ROWS, ROWS, *caches], outputs, {}, **how)


def test_a_mask_of_keys_counts_those_of_the_cache() -> None:
    mask = np.ones((BATCH, EARLIER + STEPS), np.int32)
    mask[0, :2] = mask[1, 3] = 0
    shapes = [ROWS, ROWS, ROWS, None, None, None, CACHE, CACHE]
    _check(f"{CONTRIB}.MultiHeadAttention", shapes, 3, {4: mask}, num_heads=HEADS)


@pytest.mark.parametrize("is_causal", [0, 1])
@pytest.mark.parametrize(("earlier", "outputs"), [(True, 2), (False, 2), (False, 1)])
def test_one_input(is_causal: int, earlier: bool, outputs: int) -> None:
    weights = {1: numbers(6, 3 * HEADS * WIDTH, seed=8), 2: numbers(3 * HEADS * WIDTH, seed=9)}
    caches: list[tuple[int, ...] | None] = [None, (2, *CACHE)] if earlier else []
    how = {"num_heads": HEADS, "unidirectional": is_causal}
    _check(f"{CONTRIB}.Attention", [(BATCH, STEPS, 6), None, None, *caches], outputs, weights, **how)


@pytest.mark.parametrize("is_causal", [0, 1])
@pytest.mark.parametrize("key_heads", [HEADS, 2])
def test_the_standard_operator(is_causal: int, key_heads: int) -> None:
    keys, cache = (BATCH, key_heads, STEPS, WIDTH), (BATCH, key_heads, EARLIER, WIDTH)
    _check("Attention", [SPLIT, keys, keys, None, cache, cache], 3, {}, is_causal=is_causal)
