"""Whatever a legal module of phase `vector` says, instructions of a target give what portable code gives."""

import pytest
from drawn_tiles import tiles
from drawn_vector import Program, contractions, conversions, gathers, products, stores
from hypothesis import given, settings
from hypothesis import strategies as st
from vector_programs import HOST_TARGETS, assert_same_on_targets

from qdialect.targets import Target

_IS_CAMPAIGN = settings().max_examples > settings.get_profile("default").max_examples
# An example compiles a module for the generic target and for three others, which together are all of them.
TRIPLES = [(HOST_TARGETS[first:] + HOST_TARGETS[:first])[:3] for first in range(len(HOST_TARGETS))]
EXAMPLES = settings(max_examples=settings().max_examples // 5 if _IS_CAMPAIGN else 20)
KINDS = {
    "contractions": contractions(),
    "conversions": conversions(),
    "gathers": gathers(),
    "products": products(),
    "stores": stores(),
    "tiles": tiles(),
}

pytestmark = pytest.mark.skipif(not HOST_TARGETS, reason="this CPU is not an x86-64 one")


@pytest.mark.parametrize("kind", KINDS)
def test_instructions_change_nothing(kind: str) -> None:
    covered: set[str] = set()

    @EXAMPLES
    @given(KINDS[kind], st.sampled_from(TRIPLES))
    def check(program: Program, targets: list[Target]) -> None:
        assert_same_on_targets(program.text, program.arrays, targets)
        covered.update(one.name for one in targets)

    check()
    assert covered == {one.name for one in HOST_TARGETS}
