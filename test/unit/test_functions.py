"""Ops of a module by their names."""

from __future__ import annotations

from qdialect.ir.context import make_context, parse
from qdialect.lowering.ir.functions import ops_named
from qdialect.lowering.ir.upstream import load_kernel_dialects

TEXT = """func.func @main(%n: index) -> index {
  %a = arith.constant 1 : index
  scf.for %i = %a to %n step %a {
    %b = arith.addi %i, %n : index
    scf.for %j = %a to %b step %a {
      %c = arith.muli %j, %n : index
    }
  }
  %d = arith.addi %a, %n : index
  return %d : index
}"""


def test_ops_are_found_in_order_at_any_depth() -> None:
    module = parse(TEXT, make_context())
    load_kernel_dialects(module)
    before = str(module)
    found = [op.name for op in ops_named(module, "arith.addi", "arith.muli")]
    assert found == ["arith.addi", "arith.muli", "arith.addi"]
    assert [len(list(op.regions[0].blocks[0].operations)) for op in ops_named(module, "scf.for")] == [2, 3]
    assert ops_named(module, "vector.gather") == []
    assert str(module) == before
