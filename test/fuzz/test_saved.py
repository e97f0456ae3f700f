"""What is saved and loaded gives the bits of what was compiled, on drawn modules."""

from pathlib import Path

import numpy as np
import pytest
from drawn_contractions import CONTRACTIONS
from drawn_f32 import F32_VALUES
from drawn_ops import OTHERS
from graphs import random_inputs
from hypothesis import given, settings
from hypothesis import strategies as st

import qdialect
from qdialect import targets
from qdialect.ir.context import parse
from qdialect.runtime import compile_module

KINDS = CONTRACTIONS | OTHERS | F32_VALUES
TARGETS = [name for name, one in targets.TARGETS.items() if one.features <= targets.host_features()]
_IS_CAMPAIGN = settings().max_examples > settings.get_profile("default").max_examples
FEW = settings(max_examples=settings().max_examples // 10 if _IS_CAMPAIGN else 2)


@pytest.mark.parametrize("kind", KINDS)
def test_saved_code_computes_the_same(kind: str, tmp_path: Path) -> None:
    paths = (tmp_path / f"network{number}.so" for number in range(100_000))

    @FEW
    @given(KINDS[kind], st.sampled_from(TARGETS), st.sampled_from((1, 1, 2)), st.integers(0, 999))
    def check(text: str, name: str, threads: int, seed: int) -> None:
        module, path = parse(text), next(paths)
        compiled = compile_module(module, target=name, threads=threads, min_cycles=0)
        compiled.save(path)
        loaded = qdialect.load(path)
        inputs = random_inputs(module, seed)
        found, wanted = loaded(*inputs), compiled(*inputs)
        for one, other in zip(_listed(found), _listed(wanted), strict=True):
            assert one.dtype == other.dtype
            np.testing.assert_array_equal(one.view(np.uint8), other.view(np.uint8))

    check()


def _listed(found: np.ndarray | tuple[np.ndarray, ...]) -> list[np.ndarray]:
    return [np.atleast_1d(array) for array in (found if isinstance(found, tuple) else (found,))]
