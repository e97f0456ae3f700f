"""The decorator that makes one test of many variants: what is wrong is found and named, as by a test for each."""

from typing import Any

import numpy as np
import pytest
import together
from graphs import graph
from numpy.typing import NDArray
from together import check_compiled, is_chosen, variants_together

from qdialect.dialect import ClipOp, build
from qdialect.dialect.type_constraints import NUMPY_DTYPES
from qdialect.ir._mlir import ir

Array = NDArray[Any]
Failed, Skipped = pytest.fail.Exception, pytest.skip.Exception
VALUES = np.arange(-8, 8)


def clip(element: str, bound: int, *, wrong: bool = False) -> tuple[ir.Module, Array, Array]:
    """A module, its input and what it gives, or something else."""
    x = VALUES.astype(NUMPY_DTYPES[element])
    module = graph([f"tensor<16x{element}>"], lambda x: build(ClipOp, x, element=element, min=0, max=bound).output)
    wanted = np.clip(x, 0, bound)
    wanted[3] += wrong
    return module, x, wanted


@variants_together
@pytest.mark.parametrize("element", ["i8", "i32"])
@pytest.mark.parametrize(("bound", "wrong"), [(3, None), (5, "i32"), (6, "all"), (7, None)])
def clips(bound: int, wrong: str | None, element: str, fixture: list[str]) -> None:
    fixture.append(f"{element} {bound}")
    assert wrong != "all", "found by the test itself"
    module, x, expected = clip(element, bound, wrong=wrong == element)
    check_compiled(module, "host", [[x]], [[expected]])


def message_of(**fixtures: Any) -> str:
    with pytest.raises(Failed) as caught:
        clips(**fixtures)
    return str(caught.value)


def test_every_variant_runs_and_those_that_are_wrong_are_named() -> None:
    seen: list[str] = []
    message = message_of(fixture=seen)
    assert sorted(seen) == sorted(f"{element} {bound}" for bound in (3, 5, 6, 7) for element in ("i8", "i32"))
    assert message.startswith("3 of 8 variants fail; one alone: VARIANT=")
    assert "variant [bound=5, wrong='i32', element='i32']" in message
    assert "Mismatched elements: 1 / 16" in message
    # The line of the test that handed over what is wrong.
    assert "check_compiled(module, " in message
    assert message.count("found by the test itself") >= 2
    assert "bound=7" not in message


def test_a_variant_runs_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[str] = []
    monkeypatch.setenv(together.CHOSEN, "bound=5, wrong='i32', element='i32'")
    assert message_of(fixture=seen).startswith("1 of 1 variants fail")
    assert seen == ["i32 5"]
    monkeypatch.setenv(together.CHOSEN, "bound=7")
    clips(fixture=seen)
    assert seen[1:] == ["i8 7", "i32 7"]
    monkeypatch.setenv(together.CHOSEN, "bound=9")
    with pytest.raises(Skipped, match="no variant 'bound=9'"):
        clips(fixture=seen)


def test_what_is_wrong_together_alone_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    joined = vars(together)["_joined"]

    def mixed_up(modules: list[ir.Module]) -> ir.Module:
        return joined(modules if len(modules) == 1 else [modules[0], *modules[:0:-1]])

    monkeypatch.setattr(together, "_joined", mixed_up)
    monkeypatch.setenv(together.CHOSEN, "element='i8'")
    assert "only together" in message_of(fixture=[])


def test_several_rounds_and_a_module_that_cannot_be_joined() -> None:
    @variants_together
    @pytest.mark.parametrize("bound", [2, 4])
    def rounds(bound: int) -> None:
        module, x, wanted = clip("i8", bound)
        check_compiled(module, "host", [[x], [x[::-1].copy()]][:bound], [[wanted], [wanted[::-1]]][:bound])
        module, x, wanted = clip("i8", bound, wrong=bound == 4)
        module.operation.attributes["qnn.own"] = ir.UnitAttr.get(module.context)
        check_compiled(module, "generic", [[x]], [[wanted]])

    with pytest.raises(Failed, match=r"1 of 2 variants fail; one alone: VARIANT='bound=4' pytest"):
        rounds()


@pytest.mark.parametrize(
    ("found", "wanted"),
    [
        (np.array([0], np.float32), np.array([-0.0], np.float32)),
        (np.array([1], np.int8), np.array([1], np.uint8)),
        (np.array([[1]], np.int8), np.array([1], np.int8)),
        (np.array([np.nan], np.float32), np.array([1], np.float32)),
    ],
)
def test_bits_are_compared(found: Array, wanted: Array) -> None:
    compare = vars(together)["_compare_bits"]
    compare(found, found.copy(), "output 3")
    with pytest.raises(AssertionError, match="output 3"):
        compare(found, wanted, "output 3")


def test_half_of_the_variants_are_chosen_and_always_the_same() -> None:
    def chosen() -> list[bool]:
        found: list[bool] = []

        @variants_together
        @pytest.mark.parametrize("number", range(40))
        def asking(number: int) -> None:
            del number
            found.append(is_chosen())

        asking()
        return found

    assert is_chosen()
    assert 10 < sum(chosen()) < 30
    assert chosen() == chosen()
