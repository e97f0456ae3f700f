"""Passes by name, and their options as text."""

from dataclasses import dataclass
from typing import ClassVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qdialect import Pass, PipelineError
from qdialect.ir._mlir import ir
from qdialect.passes import options
from qdialect.passes.pattern import PatternPass
from qdialect.passes.registry import all_passes, lookup


@dataclass(frozen=True)
class WithOptions(Pass):
    """Do nothing, with options.

    More words.
    """

    name: ClassVar[str] = "test-with-options"
    max_size: int = 4
    fast: bool = False
    factor: float = 1.5
    label: str = ""
    sizes: tuple[int, ...] = ()

    def run(self, module: ir.Module) -> None: ...


@given(
    st.builds(
        WithOptions,
        max_size=st.integers(),
        fast=st.booleans(),
        factor=st.floats(allow_nan=False),
        label=st.text(st.characters(exclude_characters="\"'"), max_size=8),
        sizes=st.lists(st.integers(), max_size=3).map(tuple),
    )
)
def test_every_pass_is_read_back_from_its_print(made: WithOptions) -> None:
    text = str(made).removeprefix("test-with-options{").removesuffix("}")
    assert WithOptions.from_options(options.split(text)) == made


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("", {}),
        ("a", {"a": "true"}),
        ("a=1  b=x,y", {"a": "1", "b": "x,y"}),
        ("a={x y} b='p q' c=\"r s\" d", {"a": "x y", "b": "p q", "c": "r s", "d": "true"}),
        ("a=f(x, y){z w}", {"a": "f(x, y){z w}"}),
        ("a='{'", {"a": "{"}),
        ("a=", {"a": ""}),
    ],
)
def test_options_are_split_at_blanks_outside_of_brackets(text: str, found: dict[str, str]) -> None:
    assert options.split(text) == found


@pytest.mark.parametrize(
    ("given_", "message"),
    [
        ({"max-size": "big"}, "option 'max-size' of 'test-with-options' must be an integer, but got 'big'"),
        ({"fast": "2"}, "option 'fast' of 'test-with-options' must be true or false, but got '2'"),
        ({"factor": "x"}, "option 'factor' of 'test-with-options' must be a number, but got 'x'"),
        ({"sizes": "1,x"}, "option 'sizes' of 'test-with-options' must be an integer, but got 'x'"),
        (
            {"size": "1"},
            "'test-with-options' has no option 'size', its options are: max-size, fast, factor, label, sizes",
        ),
    ],
)
def test_a_value_of_another_kind_is_refused(given_: dict[str, str], message: str) -> None:
    with pytest.raises(PipelineError) as error:
        WithOptions.from_options(given_)
    assert str(error.value) == message


def test_every_pass_of_ours_has_a_summary_and_is_found_by_its_name() -> None:
    found = all_passes()
    assert "fuse-qnn" in found
    for name, pass_class in found.items():
        assert lookup(name) is pass_class
        assert pass_class.summary(), name
        assert list(found) == sorted(found)


@pytest.mark.parametrize("pass_class", [one for one in all_passes().values() if issubclass(one, PatternPass)])
def test_patterns_that_note_what_they_have_seen_are_new_in_each_run(pass_class: type[PatternPass]) -> None:
    """What a pattern has noted of one module must not be looked up in another."""
    one = pass_class()
    first, second = one.patterns(), one.patterns()
    assert not {id(pattern) for pattern in first} & {id(pattern) for pattern in second}
