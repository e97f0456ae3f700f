"""Unary ops: a class without a function, or with a parameter that nothing gives, is an error where it is defined."""

from __future__ import annotations

from types import new_class
from typing import Any

import pytest

from qdialect.arithmetic import activations
from qdialect.arithmetic.expressions import Alpha, has_parameter
from qdialect.dialect import OPS, UNARY_OPS, EluOp, ReluOp, UnaryOp
from qdialect.dialect.fields import F64, attribute


def defined(attributes: dict[str, Any], **keywords: Any) -> type[UnaryOp]:
    """A class statement, as it would be written."""
    return new_class("OtherOp", (UnaryOp,), keywords, lambda body: body.update(attributes))


def test_a_unary_op_must_have_a_function() -> None:
    with pytest.raises(TypeError, match="'function'"):
        defined({}, name="other")


def test_a_parameter_must_be_an_attribute() -> None:
    with pytest.raises(TypeError, match="OtherOp must have the attribute alpha if and only if its function has"):
        defined({}, name="other", function=activations.elu(Alpha()))
    with pytest.raises(TypeError, match="OtherOp must have the attribute alpha if and only if its function has"):
        defined({"alpha": attribute(F64)}, name="other", function=activations.relu)


def test_what_was_refused_is_not_an_op() -> None:
    assert {op_class.OPERATION_NAME for op_class in OPS}.isdisjoint({"qnn.other"})
    assert all(issubclass(op_class, UnaryOp) for op_class in UNARY_OPS)


def test_functions_have_a_parameter_where_the_op_has_alpha() -> None:
    assert has_parameter(EluOp.function)
    assert not has_parameter(ReluOp.function)
