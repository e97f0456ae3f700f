"""Sums as ONNX Runtime has them: recorded where a product that is rounded by itself gives another code."""

from typing import Any

import numpy as np
import pytest
from graphs import graph

from qdialect.arithmetic import float_sum, float_sum_numbers
from qdialect.dialect import AddOp, build
from qdialect.ir._mlir import ir
from qdialect.lowering.qnn_to_linalg.bodies import addition
from qdialect.reference import interpreter
from qdialect.runtime import compile_module

# Scales and zero points of both operands and the sum, two quantized values, and what ONNX Runtime 1.31.1 makes of them.
RECORDED = [
    ((0.05353185161948204, 0.03582951799035072, 0.045797303318977356), (113, 169, 254), (165, 83), 248),
    ((0.04218011721968651, 0.05837279558181763, 0.013826764188706875), (255, 127, 8), (252, 157), 126),
    ((0.06921231001615524, 0.051151737570762634, 0.031609680503606796), (238, 81, 79), (239, 109), 127),
    ((0.022086871787905693, 0.011721027083694935, 0.06873873621225357), (22, 2, 119), (199, 35), 181),
    ((0.016503099352121353, 0.01125734206289053, 0.0305082555860281), (240, 186, 167), (224, 181), 157),
    ((0.06970439851284027, 0.025204790756106377, 0.03206279128789902), (126, 122, 66), (123, 178), 104),
    ((0.0622556246817112, 0.012800917029380798, 0.014720724895596504), (80, 136, 103), (119, 101), 237),
    ((0.05845953896641731, 0.06467384099960327, 0.07492518424987793), (169, 122, 38), (230, 130), 92),
]


@pytest.mark.parametrize(("scales", "zero_points", "quantized", "expected"), RECORDED)
def test_sums_equal_onnx_runtime(
    scales: tuple[float, ...], zero_points: tuple[int, ...], quantized: tuple[int, int], expected: int
) -> None:
    numbers = float_sum_numbers(scales, zero_points)
    assert float_sum(np.array(quantized[0]), np.array(quantized[1]), numbers) == expected


def no_line(*_: object) -> None:
    """There are no numbers."""


@pytest.mark.parametrize(
    ("target", "refused"),
    [
        ("avx512vnni,portable", []),
        ("avx512vnni,portable", ["multiply_add_sum"]),
        ("avx512vnni,portable", ["multiply_add_sum", "fixed_point_sum"]),
        ("generic", []),
        ("generic", ["fixed_point_sum"]),
    ],
)
@pytest.mark.parametrize(("scales", "zero_points", "quantized", "expected"), RECORDED[:3])
def test_kernels_equal_the_reference_on_all_pairs(
    scales: tuple[float, ...],
    zero_points: tuple[int, ...],
    quantized: tuple[int, int],
    expected: int,
    target: str,
    refused: list[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for way in refused:
        monkeypatch.setattr(addition, way, no_line)
    values: dict[str, Any] = {"arithmetic": "float_once", "output_min": 0, "output_max": 255}
    for name, scale, zero_point in zip(("lhs", "rhs", "output"), scales, zero_points, strict=True):
        values |= {f"{name}_scale": scale, f"{name}_zero_point": zero_point}

    def add(lhs: ir.Value, rhs: ir.Value) -> ir.Value:
        return build(AddOp, lhs, rhs, element="ui8", **values).output

    module = graph(["tensor<256x256xui8>"] * 2, add)
    left, right = np.meshgrid(np.arange(256, dtype=np.uint8), np.arange(256, dtype=np.uint8), indexing="ij")
    pairs = [np.ascontiguousarray(left), np.ascontiguousarray(right)]
    (wanted,) = interpreter.run(module, pairs)
    assert wanted[quantized] == expected
    np.testing.assert_array_equal(compile_module(module, target=target)(*pairs), wanted)
