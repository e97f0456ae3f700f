"""Names of element types, which are read through the bindings, against the text that MLIR prints."""

import pytest

from qdialect.dialect.type_constraints import element_of, range_of
from qdialect.ir._mlir import ir
from qdialect.ir.context import make_context
from qdialect.lowering.qnn_to_linalg.bodies.scalar_ops import scalar_type

NAMES = ["i1", "i8", "ui8", "si8", "i16", "ui16", "i32", "ui32", "i64", "f32", "f64", "bf16", "index"]


@pytest.mark.parametrize("name", NAMES)
def test_an_element_type_has_the_name_that_is_printed(name: str) -> None:
    with make_context():
        assert element_of(ir.Type.parse(f"tensor<2x3x{name}>")) == name


@pytest.mark.parametrize(("name", "bits"), [("ui8", "i8"), ("ui16", "i16"), ("i8", "i8"), ("i1", "i1"), ("f32", "f32")])
def test_a_kernel_holds_bits_without_a_sign(name: str, bits: str) -> None:
    with make_context(), ir.Location.unknown():
        module = ir.Module.parse(f"func.func @f(%x: tensor<2x{name}>) {{ return }}")
        assert scalar_type(module.body.operations[0].regions[0].blocks[0].arguments[0]) == bits


def test_a_signed_element_is_none_of_ours() -> None:
    with make_context(), pytest.raises(KeyError):
        range_of(ir.Type.parse("tensor<2xsi8>"))
