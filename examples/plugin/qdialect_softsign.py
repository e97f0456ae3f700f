"""A plugin: an op with its arithmetic, and a pass that builds it.

The function is all that the reference, `fuse-qnn`, which makes a table of the op, and the lowering need to know.
"""

from dataclasses import dataclass

import qdialect
from qdialect.arithmetic.expressions import Input
from qdialect.dialect import TanhOp, UnaryOp, build
from qdialect.dialect.type_constraints import element_of

X = Input()


class SoftsignOp(UnaryOp, name="softsign", function=X / (1.0 + abs(X))):
    """``x / (1 + |x|)``."""


class TanhIsSoftsign(qdialect.Pattern):
    """A tanh becomes a softsign, which has the same limits."""

    name = "tanh-is-softsign"
    roots = (TanhOp,)

    def check(self, op):
        if op.output_scale < 1 / 128:
            raise qdialect.MatchFailure("has a result in which the difference would show")
        return op.attribute_values()

    def rewrite(self, op, match, rewriter):
        with rewriter.before(op):
            softsign = build(SoftsignOp, op.input, element=element_of(op.output.type), **match)
        rewriter.replace(op, softsign.output)


@qdialect.register_pass
@dataclass(frozen=True)
class TanhToSoftsignPass(qdialect.PatternPass):
    """Replace tanh by softsign where the result is coarse."""

    name = "tanh-to-softsign"

    def patterns(self):
        return (TanhIsSoftsign(),)
