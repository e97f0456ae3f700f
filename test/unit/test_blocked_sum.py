"""frontends/planning/blocked_sum.py: sums of long rows lose no more than those of vectors do."""

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from onnx_graphs import ModelBuilder, run

import qdialect
from qdialect.frontends.onnx import import_onnx


def _normalized(kind: str, x: NDArray[Any], **attributes: Any) -> NDArray[Any]:
    model = ModelBuilder()
    source = model.input("x", list(x.shape))
    parameters = [model.constant(np.ones(x.shape[-1:], np.float32))] if kind == "LayerNormalization" else []
    content = model.finish(model.node(kind, source, *parameters, **attributes), dtype=np.float32, version=20)
    compiled = np.asarray(qdialect.compile(import_onnx(content))(x))
    np.testing.assert_array_equal(compiled, run(content, x))
    return compiled.astype(np.float64)


def _error(found: NDArray[Any], exact: NDArray[Any]) -> float:
    return float(np.sqrt(((found - exact) ** 2).mean()))


# Added one after another, the rows of 768 numbers have an error of 1.8e-7.
@pytest.mark.parametrize("columns", [768, 770, 97])
def test_rows_are_normalized_to_the_rounding_of_the_result(columns: int) -> None:
    x = np.random.default_rng(2).normal(0.3, 1.5, (24, columns)).astype(np.float32)
    wide = x.astype(np.float64)
    centred = wide - wide.mean(-1, keepdims=True)
    exact = centred / np.sqrt((centred**2).mean(-1, keepdims=True) + float(np.float32(1e-5)))
    assert _error(_normalized("LayerNormalization", x), exact) < (7e-8 if columns != 97 else 1.2e-7)


def test_axes_that_do_not_follow_each_other_are_summed_run_by_run() -> None:
    x = np.random.default_rng(3).normal(0.3, 1.5, (6, 8, 6, 8)).astype(np.float32)
    wide = x.astype(np.float64)
    centred = wide - wide.mean((0, 2, 3), keepdims=True)
    exact = centred / np.sqrt((centred**2).mean((0, 2, 3), keepdims=True))
    assert _error(_normalized("MeanVarianceNormalization", x), exact) < 6e-8


def test_shares_of_long_rows_are_exact() -> None:
    x = np.random.default_rng(4).normal(size=(24, 512)).astype(np.float32)
    powers = np.exp(x.astype(np.float64) - x.max(-1, keepdims=True))
    exact = powers / powers.sum(-1, keepdims=True)
    assert _error(_normalized("Softmax", x, axis=-1) / exact, np.ones_like(exact)) < 2e-7
