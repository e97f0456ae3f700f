"""Prefetches of the lines that register tiles write."""

from __future__ import annotations

import re

import pytest

import qdialect
from qdialect.lowering.pipeline import Phase, compile_to
from qdialect.target import resolve

_DENSE = """
func.func @main(%x: tensor<128x{depth}xui8>, %s: tensor<f32>, %z: tensor<ui8>) -> tensor<128x{columns}xf32> {{
  %w = "qnn.constant"() {{value = dense<3> : tensor<{columns}x{depth}xi8>}} : () -> tensor<{columns}x{depth}xi8>
  %b = "qnn.constant"() {{value = dense<1.0> : tensor<{columns}xf32>}} : () -> tensor<{columns}xf32>
  %y = "qnn.dynamic_dense"(%x, %w, %s, %z, %b) {{weight_scales = array<f64: 1.0e-3>}}
    : (tensor<128x{depth}xui8>, tensor<{columns}x{depth}xi8>, tensor<f32>, tensor<ui8>, tensor<{columns}xf32>)
    -> tensor<128x{columns}xf32>
  func.return %y : tensor<128x{columns}xf32>
}}
"""


def _prefetches(depth: int, columns: int) -> int:
    """How many lines are fetched to be written to."""
    module = qdialect.parse(_DENSE.format(depth=depth, columns=columns))
    lowered = compile_to(module, Phase.X86, resolve("znver4"))
    return len(re.findall(r"memref\.prefetch .*, write, locality<3>", str(lowered)))


@pytest.mark.parametrize(
    ("depth", "columns", "lines"),
    # Tiles of 13 and 12 rows by 2 vectors; results that stay near; products that are over too soon.
    [(256, 1024, 26 + 24), (256, 256, 0), (64, 1024, 0)],
)
def test_lines_of_large_results_are_fetched_before_long_products(depth: int, columns: int, lines: int) -> None:
    assert _prefetches(depth, columns) == lines
