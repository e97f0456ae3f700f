"""Short innermost loops are unrolled by a divisor of their iterations."""

from __future__ import annotations

import pytest

from qdialect.ir.context import make_context, parse
from qdialect.lowering.x86_to_llvm.to_llvm import unroll_loops

TEXT = """
func.func @main(%to: memref<4096xi32>, %last: index) {{
  %first = arith.constant {first} : index
  %end = {end}
  %step = arith.constant {step} : index
  %outer = arith.constant 1 : index
  scf.for %j = %first to %end step %outer {{
    scf.for %i = %first to %end step %step {{
      %a = memref.load %to[%i] : memref<4096xi32>
      memref.store %a, %to[%j] : memref<4096xi32>
    }}
  }}
  return
}}
"""


def copies(first: int, end: str, step: int) -> tuple[int, int]:
    """How often the body stands there, and how many loops there are."""
    module = parse(TEXT.format(first=first, end=end, step=step), make_context())
    unroll_loops(module, "test")
    text = str(module)
    assert "qnn.unroll" not in text or text.count("scf.for") == 2
    return text.count("memref.load"), text.count("scf.for")


@pytest.mark.parametrize(
    ("first", "end", "step", "expected"),
    [
        (0, "arith.constant 1024 : index", 1, (8, 2)),
        # 99 iterations: the largest divisor of at most 10.
        (3, "arith.constant 300 : index", 3, (9, 2)),
        # 4 iterations, the last of which is shorter: all of the loop.
        (0, "arith.constant 10 : index", 3, (4, 1)),
        # A prime number of iterations has no divisor, and none is left over.
        (0, "arith.constant 1021 : index", 1, (1, 2)),
        (5, "arith.constant 5 : index", 1, (1, 2)),
        (0, "arith.addi %last, %last : index", 1, (1, 2)),
    ],
)
def test_copies(first: int, end: str, step: int, expected: tuple[int, int]) -> None:
    assert copies(first, end, step) == expected
