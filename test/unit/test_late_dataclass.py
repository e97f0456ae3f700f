"""Dataclasses whose methods are made late behave as those of `dataclasses`."""

from __future__ import annotations

import copy
import dataclasses
import math
import pickle
import re
from abc import ABC, abstractmethod
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier
from typing import Any, ClassVar, get_type_hints

import pytest

from qdialect.late_dataclass import dataclass

PACKAGE = Path(__file__).resolve().parents[2] / "qdialect"
# It has a field that `__init__` alone takes.
OF_THE_LIBRARY = {"outline_fused.py"}


@dataclass(frozen=True)
class Point:
    kind: ClassVar[str] = "point"
    x: int
    y: int = 2
    tags: tuple[str, ...] = ()


@dataclass(frozen=True)
class Named(Point):
    name: str = "n"
    y: int = 5


@dataclass
class Bag:
    items: list[int] = dataclasses.field(default_factory=list[int])
    count: int = dataclasses.field(init=False, default=7)
    found: dict[str, int] = dataclasses.field(init=False, default_factory=dict[str, int])
    note: str = dataclasses.field(default="", compare=False, repr=False)

    def __post_init__(self) -> None:
        self.found["items"] = len(self.items)


@dataclass(frozen=True, kw_only=True)
class Options:
    size: int = 1
    name: str


@dataclass(frozen=True, eq=False)
class Identity:
    value: int


class Other(Point):
    """No dataclass itself, so that it may have other attributes."""


def assign(one: object, name: str, value: object) -> None:
    setattr(one, name, value)


def make(one: Any, *arguments: Any) -> Any:
    return one(*arguments)


def remove(one: object, name: str) -> None:
    delattr(one, name)


def test_arguments_and_defaults() -> None:
    assert (Point(1).x, Point(1).y, Point(x=1, y=3, tags=("a",)).tags) == (1, 2, ("a",))
    assert (Named(1, 2, (), "z").name, Named(1).y) == ("z", 5)
    assert Options(name="a").size == 1
    assert Bag([1, 2]).found == {"items": 2}
    assert Bag().items is not Bag().items
    assert Bag().count == 7
    assert Point.y == 2
    assert Point.kind == "point"
    assert not hasattr(Bag, "items")
    assert Bag.count == 7


@pytest.mark.parametrize("arguments", [(), (1, 2, (), 4)])
def test_wrong_arguments(arguments: tuple[Any, ...]) -> None:
    for _ in range(2):
        with pytest.raises(TypeError, match=r"__init__\(\)"):
            make(Point, *arguments)
    with pytest.raises(TypeError, match="positional"):
        make(Options, "a")


def test_text() -> None:
    assert repr(Point(1)) == "Point(x=1, y=2, tags=())"
    assert repr(Named(1)) == "Named(x=1, y=5, tags=(), name='n')"
    assert repr(Bag([1])) == "Bag(items=[1], count=7, found={'items': 1})"
    assert Point.__init__.__qualname__ == "Point.__init__"
    assert Point.__repr__.__name__ == "__repr__"


def test_equality_and_hash() -> None:
    assert Point(1) == Point(1, 2)
    assert Point(1) != Point(2)
    assert hash(Point(1)) == hash(Point(1, 2))
    assert Point(1, 5) != Named(1, 5)
    assert Point(1) != Other(1)
    assert Other(1) == Other(1)
    assert Bag([1], note="a") == Bag([1], note="b")
    assert Bag.__hash__ is None
    assert Identity(1) != Identity(1)
    assert len({Identity(1), Identity(1)}) == 2
    nan = math.nan
    assert dataclasses.replace(Identity(1), value=2).value == 2
    assert Point(1, tags=(str(nan),)) == Point(1, tags=("nan",))


def test_a_single_field_is_compared_as_a_tuple_is() -> None:
    @dataclass(frozen=True)
    class Single:
        value: float

    nan = math.nan
    assert Single(nan) == Single(nan)
    assert Single(1.0) != Single(2.0)
    assert hash(Single(1.0)) == hash((1.0,))


def test_own_methods_stay() -> None:
    @dataclass(frozen=True)
    class Own:
        value: int

        def __eq__(self, other: object) -> bool:
            return True

        def __hash__(self) -> int:
            return 3

        def __repr__(self) -> str:
            return "own"

    assert Own(1) == 5
    assert hash(Own(1)) == 3
    assert repr(Own(1)) == "own"


def test_frozen() -> None:
    for one in (Point(1), Named(1)):
        with pytest.raises(dataclasses.FrozenInstanceError, match="cannot assign to field 'x'"):
            assign(one, "x", 2)
        with pytest.raises(dataclasses.FrozenInstanceError, match="cannot delete field 'x'"):
            remove(one, "x")
        with pytest.raises(dataclasses.FrozenInstanceError):
            assign(one, "unknown", 2)
    other = Other(1)
    assign(other, "unknown", 2)
    remove(other, "unknown")
    with pytest.raises(dataclasses.FrozenInstanceError):
        assign(other, "x", 2)
    bag = Bag()
    bag.count = 8
    assert bag.count == 8


def test_functions_of_dataclasses() -> None:
    assert [field.name for field in dataclasses.fields(Named)] == ["x", "y", "tags", "name"]
    assert dataclasses.fields(Named(1))[1].default == 5
    assert dataclasses.is_dataclass(Other)
    assert dataclasses.asdict(Point(1)) == {"x": 1, "y": 2, "tags": ()}
    assert dataclasses.replace(Named(1), y=3) == Named(1, 3)
    assert get_type_hints(Named)["y"] is int


def test_copies() -> None:
    for one in (Point(1, 2, ("a",)), Bag([1])):
        assert copy.copy(one) == one
        assert copy.deepcopy(one) == one
        assert pickle.loads(pickle.dumps(one)) == one


def test_dataclasses_of_the_library_inherit() -> None:
    @dataclasses.dataclass(frozen=True)
    class Further(Named):
        z: int = 4

    @dataclass(frozen=True)
    class Last(Further):
        w: int = 6

    assert Further(1) == Further(1, 5, (), "n", 4)
    assert repr(Last(1)).endswith("Last(x=1, y=5, tags=(), name='n', z=4, w=6)")
    with pytest.raises(dataclasses.FrozenInstanceError):
        assign(Last(1), "z", 2)


def test_abstract_classes_stay_abstract() -> None:
    @dataclass(frozen=True)
    class Base(ABC):
        value: int

        @abstractmethod
        def run(self) -> int: ...

    @dataclass(frozen=True)
    class Derived(Base):
        def run(self) -> int:
            return self.value

    with pytest.raises(TypeError, match="abstract"):
        make(Base, 1)
    assert Derived(4).run() == 4


def test_a_default_of_the_base_holds_where_a_field_is_annotated_again() -> None:
    again = dataclass(frozen=True)(type("Again", (Point,), {"__annotations__": {"y": "int"}}))
    assert again(1).y == 2


def test_a_field_without_default_after_one_with_a_default() -> None:
    wrong = dataclass(type("Wrong", (), {"__annotations__": {"a": "int", "b": "int"}, "a": 1}))
    with pytest.raises(SyntaxError, match="default"):
        make(wrong, 1, 2)


def test_threads_that_use_a_class_first_at_the_same_time() -> None:
    for _ in range(50):

        @dataclass(frozen=True)
        class Fresh:
            a: int
            b: str = "b"

        barrier = Barrier(4)

        def use(fresh: type[Fresh] = Fresh, barrier: Barrier = barrier) -> tuple[Fresh, int, str, bool]:
            barrier.wait()
            one = fresh(1)
            return one, hash(one), repr(one), one == fresh(1, "b")

        with ThreadPoolExecutor(4) as pool:
            found = [future.result() for future in [pool.submit(use) for _ in range(4)]]
        assert len({one for one, *_ in found}) == 1
        assert all(equal for *_, equal in found)


def test_the_package_uses_it_everywhere() -> None:
    taken = re.compile(r"^from dataclasses import .*\bdataclass\b|^import dataclasses$", re.MULTILINE)
    found = {path.name for path in PACKAGE.rglob("*.py") if taken.search(path.read_text())}
    assert found == {*OF_THE_LIBRARY, "late_dataclass.py"}
