"""Compiled code equals the reference interpreter on drawn modules, and touches no byte outside its buffers."""

from collections.abc import Iterator

import pytest
from drawn_contractions import CONTRACTIONS
from drawn_ops import OTHERS
from guarded import GuardedRunner
from hypothesis import given, settings
from hypothesis import strategies as st

from qdialect import target

TARGETS = ["generic", *(name for name, one in target.TARGETS.items() if one.features <= target.host_features())][1:]
_DEFAULT = settings.get_profile("default")
# A campaign says how much it wants; what `make test` does must end soon.
_IS_BOUNDED = settings().max_examples == _DEFAULT.max_examples
FEW, MANY = (settings(max_examples=n) if _IS_BOUNDED else settings() for n in (12, 40))


@pytest.fixture(scope="module")
def runner() -> Iterator[GuardedRunner]:
    one = GuardedRunner()
    yield one
    one.close()


def _check(runner: GuardedRunner, text: str, name: str, seed: int) -> None:
    found = runner.check(text, name, seed)
    assert not found, "\n".join([f"target {name}, seed {seed}", *found, text])


@pytest.mark.parametrize("kind", CONTRACTIONS)
def test_contractions(runner: GuardedRunner, kind: str) -> None:
    @MANY
    @given(CONTRACTIONS[kind], st.sampled_from(TARGETS), st.integers(0, 999))
    def check(text: str, name: str, seed: int) -> None:
        _check(runner, text, name, seed)

    check()


@pytest.mark.parametrize("kind", OTHERS)
def test_other_ops(runner: GuardedRunner, kind: str) -> None:
    @FEW
    @given(OTHERS[kind], st.sampled_from(TARGETS), st.integers(0, 999))
    def check(text: str, name: str, seed: int) -> None:
        _check(runner, text, name, seed)

    check()
