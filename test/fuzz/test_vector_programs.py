"""Whatever a legal module of phase `vector` says, instructions of a target give what portable code gives."""

import pytest
from drawn_tiles import tiles
from drawn_vector import Program, contractions, conversions, gathers, products, stores
from hypothesis import given, settings
from hypothesis import strategies as st
from vector_programs import HOST_TARGETS, assert_same_on_every_target

_IS_CAMPAIGN = settings().max_examples > settings.get_profile("default").max_examples
# An example compiles a module for each target.
EXAMPLES = settings(max_examples=settings().max_examples // 5 if _IS_CAMPAIGN else 20)
KINDS = {
    "contractions": contractions(),
    "conversions": conversions(),
    "gathers": gathers(),
    "products": products(),
    "stores": stores(),
    "tiles": tiles(),
}

pytestmark = pytest.mark.skipif(not HOST_TARGETS, reason="this CPU lacks AVX-512 VNNI")


@pytest.mark.parametrize("kind", KINDS)
def test_instructions_change_nothing(kind: str) -> None:
    @EXAMPLES
    @given(st.data())
    def check(data: st.DataObject) -> None:
        program: Program = data.draw(KINDS[kind])
        assert_same_on_every_target(program.text, program.arrays)

    check()
