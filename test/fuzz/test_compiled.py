"""Compiled code equals the reference interpreter on drawn modules, and touches no byte outside its buffers."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from drawn_contractions import CONTRACTIONS
from drawn_graphs import random_inputs
from drawn_networks import in_tiles, with_tiles
from drawn_numbers import F32_VALUES, I16_VALUES
from drawn_ops import OTHERS
from drawn_vector import (
    HOST_TARGETS,
    Program,
    assert_same_on_targets,
    contractions,
    conversions,
    gathers,
    products,
    stores,
    tiles,
)
from guarded_worker import GuardedRunner
from hypothesis import given, settings
from hypothesis import strategies as st

import qdialect
from qdialect import targets
from qdialect.ir.context import parse
from qdialect.lowering.pipeline.phases import Phase, lower
from qdialect.runtime import compile_module
from qdialect.targets import Target

_HOST_KINDS = [name for name, one in targets.TARGETS.items() if one.features <= targets.host_features()]
# Cores whose code has forms of its own, and by vector ops the kinds that this CPU does not have.
_TUNED = [f"{name},tune=znver4" for name in ("avx2", "sse4.1") if name in _HOST_KINDS]
TARGETS = [*_HOST_KINDS, *_TUNED, *(f"{name},portable" for name in targets.TARGETS if name not in _HOST_KINDS)]
# An example compiles a module, which takes longer than most tests: fewer of them than elsewhere, in a campaign too.
_IS_CAMPAIGN = settings().max_examples > settings.get_profile("default").max_examples
FEW, MANY = (settings(max_examples=settings().max_examples // 10 if _IS_CAMPAIGN else n) for n in (9, 20))
# Every second example is divided among threads.
THREADS = st.sampled_from((1, 1, 1, 1, 2, 3, 5, 8))


@pytest.fixture(scope="module")
def runner() -> Iterator[GuardedRunner]:
    one = GuardedRunner()
    yield one
    one.close()


def _check(runner: GuardedRunner, text: str, name: str, seed: int, threads: int = 1) -> None:
    found = runner.check(text, name, seed, threads)
    assert not found, "\n".join([f"target {name}, seed {seed}, threads {threads}", *found, text])


# What once went wrong.
KNOWN = {
    "four pixels of wide rows": """
      func.func @main(%x: tensor<1x8x8x64xui8>) -> tensor<1x4x4x64xui8> {
        %w = "qnn.constant"() {value = dense<3> : tensor<64x3x3x1xi8>} : () -> tensor<64x3x3x1xi8>
        %b = arith.constant dense<700> : tensor<64xi32>
        %y = "qnn.fused_conv2d"(%x, %w, %b) {
          input_scale = 0.02 : f64, input_zero_point = 7 : i64, weight_scales = array<f64: 0.01>,
          strides = array<i64: 2, 2>, padding = array<i64: 0, 0, 1, 1>, groups = 64 : i64, output_scale = 0.03 : f64,
          output_zero_point = 5 : i64,
          epilogue = [{requantize = {rounding = "fixed32_double"}}]
        }
          : (tensor<1x8x8x64xui8>, tensor<64x3x3x1xi8>, tensor<64xi32>) -> tensor<1x4x4x64xui8>
        func.return %y : tensor<1x4x4x64xui8>
      }""",
    "taps of the last group": """
      func.func @main(%x: tensor<1x1x1x8xui8>) -> tensor<1x1x1x32xui8> {
        %w = "qnn.constant"() {value = dense<3> : tensor<32x1x1x2xi8>} : () -> tensor<32x1x1x2xi8>
        %sums = "qnn.conv2d"(%x, %w) {input_scale = 0.5 : f64, input_zero_point = 7 : i64,
          weight_scales = array<f64: 0.25>, weight_zero_points = array<i64: 0>, strides = array<i64: 1, 1>,
          padding = array<i64: 0, 0, 0, 0>, dilation = array<i64: 1, 1>, groups = 4 : i64}
          : (tensor<1x1x1x8xui8>, tensor<32x1x1x2xi8>) -> tensor<1x1x1x32xi32>
        %y = "qnn.requantize"(%sums) {input_scale = 0.5 : f64, weight_scales = array<f64: 0.25>,
          input_zero_points = array<i64: 0>, output_scale = 2.0 : f64, output_zero_point = 3 : i64, axis = 3 : i64,
          rounding = "fixed64_up", multiplier = "f64"} : (tensor<1x1x1x32xi32>) -> tensor<1x1x1x32xui8>
        func.return %y : tensor<1x1x1x32xui8>
      }""",
}


@pytest.mark.parametrize("name", TARGETS)
@pytest.mark.parametrize("case", KNOWN)
def test_known_cases(runner: GuardedRunner, case: str, name: str) -> None:
    _check(runner, KNOWN[case], name, seed=0)


@pytest.mark.parametrize("kind", CONTRACTIONS)
def test_contractions(runner: GuardedRunner, kind: str) -> None:
    _check_drawn(runner, CONTRACTIONS[kind], MANY)


@pytest.mark.parametrize("kind", [*OTHERS, *F32_VALUES, *I16_VALUES])
def test_other_ops(runner: GuardedRunner, kind: str) -> None:
    _check_drawn(runner, (OTHERS | F32_VALUES | I16_VALUES)[kind], FEW)


@with_tiles
@pytest.mark.parametrize("kind", ["fused_conv2d", "transposed", "residual", "fused_dense", "chain", "conv2d"])
def test_contractions_in_matrix_tiles_wherever_they_can_be(runner: GuardedRunner, kind: str) -> None:
    """Products are drawn small, so that the cost model prefers dot products for most."""
    used: list[str] = []

    @FEW
    @given(CONTRACTIONS[kind], st.integers(0, 999), THREADS)
    def check(text: str, seed: int, threads: int) -> None:
        tiled = in_tiles(text)
        _check(runner, tiled, "amxint8", seed, threads)
        used.append(tiled)

    check()
    assert any('tdpbusd"' in str(lower(parse(one), targets.TARGETS["amxint8"], Phase.X86).module) for one in used)


def _check_drawn(runner: GuardedRunner, texts: st.SearchStrategy[str], examples: settings) -> None:
    divided: set[bool] = set()

    @examples
    @given(texts, st.sampled_from(TARGETS), st.integers(0, 999), THREADS)
    def check(text: str, name: str, seed: int, threads: int) -> None:
        _check(runner, text, name, seed, threads)
        divided.add(threads > 1)

    check()
    assert divided == {True, False}


# What is saved and loaded gives the bits of what was compiled, on drawn modules.

KINDS = CONTRACTIONS | OTHERS | F32_VALUES
EXECUTED = [name for name, one in targets.TARGETS.items() if one.features <= targets.host_features()]

SAVED = settings(max_examples=settings().max_examples // 10 if _IS_CAMPAIGN else 20)


def test_saved_code_computes_the_same(tmp_path: Path) -> None:
    paths = (tmp_path / f"network{number}.so" for number in range(100_000))

    @SAVED
    @given(
        st.sampled_from(sorted(KINDS)).flatmap(KINDS.__getitem__),
        st.sampled_from(EXECUTED),
        st.sampled_from((1, 1, 2)),
        st.integers(0, 999),
    )
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


# Whatever a legal module of phase `vector` says, instructions of a target give what portable code gives.

# An example compiles a module for the generic target and for three others, which together are all of them.
TRIPLES = [(HOST_TARGETS[first:] + HOST_TARGETS[:first])[:3] for first in range(len(HOST_TARGETS))]
EXAMPLES = settings(max_examples=settings().max_examples // 5 if _IS_CAMPAIGN else 20)
VECTOR_PROGRAMS = {
    "contractions": contractions(),
    "conversions": conversions(),
    "gathers": gathers(),
    "products": products(),
    "stores": stores(),
    "tiles": tiles(),
}

_MARK_VECTOR_PROGRAMS = pytest.mark.skipif(not HOST_TARGETS, reason="this CPU is not an x86-64 one")


@_MARK_VECTOR_PROGRAMS
@pytest.mark.parametrize("kind", VECTOR_PROGRAMS)
def test_instructions_change_nothing(kind: str) -> None:
    covered: set[str] = set()

    @EXAMPLES
    @given(VECTOR_PROGRAMS[kind], st.sampled_from(TRIPLES))
    def check(program: Program, targets: list[Target]) -> None:
        assert_same_on_targets(program.text, program.arrays, targets)
        covered.update(one.name for one in targets)

    check()
    assert covered == {one.name for one in HOST_TARGETS}
