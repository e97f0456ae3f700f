"""Contractions in which all pixels meet one tile of channels before the next: large weights are read once."""

from typing import Any

import numpy as np
import pytest
from compiled_ops import Attributes, check, check_compiled, drawn_inputs, tensor
from graphs import graph
from quantized_layers import SCALE, ZERO_POINT, requantize

from qdialect.arithmetic.tables import Entries, NanPolicy
from qdialect.dialect import Conv2DOp, DenseOp, MatMulOp, TanhOp, build
from qdialect.dialect.constants import constant
from qdialect.ir._mlir import ir
from qdialect.lowering.cost.strategy import Strategy, TiledOperand
from qdialect.lowering.ir.lowered import Phase
from qdialect.lowering.pipeline.phases import lower
from qdialect.passes.fuse_qnn import FuseQnnPass
from qdialect.passes.pipeline import PassManager
from qdialect.reference import interpreter
from qdialect.targets import TARGETS, host_features, resolve

Case = tuple[tuple[int, int, int, int], int, tuple[int, ...]]
# Weights [OC, KH, KW, IC / groups], groups, zero points of the weights: 75 channels are tiles of every width.
CASES: list[Case] = [((75, 3, 3, 5), 1, (0,)), ((70, 1, 1, 9), 1, (-128, 127)), ((48, 3, 3, 4), 3, (5,))]


def convolution(
    data: ir.Value, case: tuple[tuple[int, ...], int, tuple[int, ...]], rng: np.random.Generator
) -> ir.Value:
    shape, groups, points = case
    weight = constant(rng.integers(-128, 128, shape, dtype=np.int8))
    source: Any = build(
        Conv2DOp, data, weight, None, element="i32", input_scale=0.02, input_zero_point=200, weight_scales=(0.01,),
        weight_zero_points=tuple(points[i % len(points)] for i in range(shape[0])), groups=groups,
        padding=(shape[1] // 2,) * 4,
    ).output  # fmt: skip
    return requantize(source, weight_scales=(0.01,))


def contractions() -> ir.Module:
    """Convolutions, grouped and not, a dense layer of one row, and products in groups."""
    rng = np.random.default_rng(4)

    def body(*arguments: ir.Value) -> list[ir.Value]:
        *images, row, left, right = arguments
        found = [convolution(data, case, rng) for data, case in zip(images, CASES, strict=True)]
        weight = constant(rng.integers(-128, 128, (67, 33), dtype=np.int8))
        values: Attributes = {"element": "i32", "input_scale": 0.02, "input_zero_point": 7, "weight_scales": (0.01,)}
        dense = build(DenseOp, row, weight, None, **values).output
        return [*found, dense, build(MatMulOp, left, right, weight_zero_points=(9,), **values).output]

    images = [tensor((2, 7, 5, shape[3] * groups), "ui8") for shape, groups, _ in CASES]
    others = [tensor((1, 33), "ui8"), tensor((3, 11, 6), "ui8"), tensor((3, 6, 72), "i8")]
    module = graph([*images, *others], body)
    PassManager(FuseQnnPass()).run(module)
    return module


def pixels_inside(_: Strategy, weights: TiledOperand, data: TiledOperand, results: int) -> bool:
    assert weights.size > 0
    assert data.tiles > 0
    assert results > 0
    return True


def test_all_pixels_for_each_tile_of_channels(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Strategy, "is_weight_stationary", pixels_inside)
    check(contractions())


@pytest.mark.parametrize("name", ["avx512vbmi", "avx512vnni", "avx2,portable", "sse4.1,portable"])
def test_tables_behind_all_pixels_for_each_tile_of_channels(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Strategy, "is_weight_stationary", pixels_inside)
    rng = np.random.default_rng(5)

    def body(data: ir.Value) -> list[ir.Value]:
        quantized = convolution(data, ((70, 3, 3, 5), 1, (0,)), rng)
        return [
            build(
                TanhOp, quantized, element="i8", input_scale=SCALE, input_zero_point=ZERO_POINT, output_scale=2**-7,
                output_zero_point=0, entries=Entries.HALF_AWAY_DIVIDE, nan=NanPolicy.MAX,
            ).output
        ]  # fmt: skip

    module = graph([tensor((1, 7, 5, 5), "ui8")], body)
    PassManager(FuseQnnPass()).run(module)
    assert "lut = " in str(module)
    if resolve(name).features <= host_features():
        inputs = drawn_inputs(module)
        check_compiled(module, name, [inputs], [interpreter.run(module, inputs)])
    assert "vector.gather" not in str(lower(module, resolve(name), Phase.X86).module)


def test_large_weights_meet_all_pixels_tile_by_tile() -> None:
    texts = [_kernels(channels) for channels in (64, 640)]
    assert ["qnn.tiles = array<i64: 1, 5, 0, 0>" in text for text in texts] == [False, True]


def _kernels(channels: int) -> str:
    """A dense layer whose weights fit four times the near bytes of the generic target, or do not."""

    def body(rows: ir.Value) -> ir.Value:
        weight = constant(np.ones((channels, 1024), np.int8))
        values: Attributes = {"input_scale": 0.02, "input_zero_point": 7, "weight_scales": (0.01,)}
        return build(DenseOp, rows, weight, None, element="i32", **values).output

    return str(lower(graph([tensor((20, 1024), "ui8")], body), TARGETS["generic"], Phase.LINALG).module)
