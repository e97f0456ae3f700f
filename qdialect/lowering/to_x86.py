"""vector -> x86: contractions, tables and packed stores become instructions of the target."""

from __future__ import annotations

from qdialect._mlir import ir, rewrite, transform_interpreter
from qdialect.lowering.real_products import contract_to_rounded_products
from qdialect.lowering.unit_contraction import contract_to_multiply_add
from qdialect.lowering.x86.byte_store import store_packed
from qdialect.lowering.x86.byte_sum import contract_to_lane_dots
from qdialect.lowering.x86.byte_table import gather_to_permute
from qdialect.lowering.x86.dot_product import contract_to_dot
from qdialect.lowering.x86.flat_lanes import flatten_lanes
from qdialect.lowering.x86.high_word import high_word_to_blend
from qdialect.lowering.x86.interleaved_dot import contract_to_interleaved_dot
from qdialect.lowering.x86.round_convert import round_to_convert
from qdialect.target import Target

_OP = "!transform.any_op"

_LOWER_GATHERS = f"""module attributes {{transform.with_named_sequence}} {{
  transform.named_sequence @__transform_main(%module: {_OP}) {{
    %funcs = transform.structured.match ops{{["func.func"]}} in %module : ({_OP}) -> {_OP}
    transform.apply_patterns to %funcs {{
      transform.apply_patterns.vector.lower_gather
    }} : {_OP}
    transform.yield
  }}
}}"""


def to_x86(module: ir.Module, target: Target) -> None:
    """Use the target's instructions in place; what has none stays vector code that LLVM makes fit."""
    with module.context, ir.Location.unknown():
        contractions = rewrite.RewritePatternSet()
        contractions.add("vector.contract", contract_to_multiply_add)
        contractions.add("vector.contract", contract_to_rounded_products)
        if target.has_vnni:
            contractions.add("vector.contract", contract_to_dot)
            contractions.add("vector.contract", contract_to_lane_dots)
            contractions.add("vector.contract", contract_to_interleaved_dot, 2)
        rewrite.apply_patterns_and_fold_greedily(module, contractions.freeze())
        # What stores and converts vectors looks for those that fill registers.
        flatten_lanes(module)
        patterns = rewrite.RewritePatternSet()
        if target.has_vnni:
            patterns.add("arith.trunci", high_word_to_blend)
            patterns.add("arith.fptosi", round_to_convert)
        if target.has_vbmi:
            # The packed store knows more than the gather it contains, so it is tried first.
            patterns.add("vector.transfer_write", store_packed, 2)
            patterns.add("vector.gather", gather_to_permute, 1)
        rewrite.apply_patterns_and_fold_greedily(module, patterns.freeze())
        script = ir.Module.parse(_LOWER_GATHERS)
        transform_interpreter.apply_named_sequence(module.operation, script.body.operations[0], script)
