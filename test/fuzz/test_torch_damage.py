"""Damaged .pt2 files: each import ends in `ImportModelError` or a module, in time and within memory, in one process."""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Iterable, Iterator
from typing import Any, cast

import pytest
from deadline import deadline
from memory_bound import memory_at_most
from torch_archives import CONSTANTS, PROGRAM, WEIGHTS, Members, content_of, directory, good_content, members_of, packed
from torch_models import network

from qdialect.frontends.torch import import_torch
from qdialect.ir.context import make_context
from qdialect.support.diagnostics import ImportModelError

CONTEXT = make_context()
# More than the budget of constants, of which parts may be held twice.
MAX_MEMORY = 1 << 30
VALUES: list[Any] = [
    *(None, True, False, 0, 1, -1, 2, 3, 7, 255, 2**31, 2**63, -(2**63), 10**30, 0.5, -1e300, 1e300),
    *(
        "",
        "x",
        "Infinity",
        "NaN",
        "x\x1b[31m",
        "torch.ops.aten.relu_.default",
        "torch.ops.aten.full.default",
        "é" * 300,
    ),
    *([], [1], {}, {"as_int": 5}, {"as_int": 2**40}, {"as_none": True}, {"as_ints": [1, 2]}, {"as_float": "NaN"}),
    *({"as_string": "x"}, {"as_tensor": {"name": "x"}}, {"as_bool": True}, {"as_tensors": [{"name": "x"}]}),
]


def outcome(content: bytes) -> str:
    """How the import ends; anything but an `ImportModelError` or a module fails the test."""
    said = ""
    try:
        with deadline("an import"):
            import_torch(content, CONTEXT)
    except ImportModelError as error:
        said = error.render()
    assert said.replace("\n", "").isprintable()
    return "refused" if said else "imported"


def outcomes(contents: Iterable[bytes]) -> set[str]:
    with memory_at_most(MAX_MEMORY):
        return {outcome(content) for content in contents}


MOSTLY = 0.95


def _keys(held: Any) -> list[Any]:
    return list(cast("dict[str, Any]", held)) if isinstance(held, dict) else list(range(len(held)))


def positions(held: Any) -> Iterator[tuple[Any, Any]]:
    """Every container of a JSON value with each of its keys."""
    is_container = isinstance(held, dict | list)
    for key in _keys(held) if is_container else ():
        if key == "metadata":
            continue
        yield held, key
        yield from positions(held[key])


def damage(held: Any, generator: random.Random) -> None:
    """Change one value: put another in its place, remove it, repeat it, or take one from elsewhere."""
    found = list(positions(held))
    if not found:
        return
    (container, key), (other, from_key) = generator.choice(found), generator.choice(found)
    kind = generator.randrange(8)
    if kind == 0:
        del container[key]
    elif kind == 1 and isinstance(container, list):
        cast("list[Any]", container).insert(key, container[key])
    elif kind == 2:
        container[key] = copy.deepcopy(other[from_key])
    else:
        container[key] = copy.deepcopy(generator.choice(VALUES))


def damaged_json(members: Members, seed: int, count: int, changes: int) -> Iterator[bytes]:
    generator = random.Random(seed)
    for _ in range(count):
        name = generator.choice([PROGRAM, PROGRAM, PROGRAM, WEIGHTS, CONSTANTS])
        held = json.loads(members[name])
        part = held
        if name == PROGRAM and generator.random() < MOSTLY:
            # The rest is long, and nobody reads it.
            part = held["graph_module"][generator.choice(["graph", "graph", "signature"])]
        for _ in range(changes):
            damage(part, generator)
        yield packed({**members, name: json.dumps(held).encode()})


def flipped(content: bytes, seed: int, count: int, changes: int) -> Iterator[bytes]:
    generator = random.Random(seed)
    for _ in range(count):
        damaged = bytearray(content)
        for _ in range(changes):
            damaged[generator.randrange(len(damaged))] = generator.randrange(256)
        yield bytes(damaged)


def resized(content: bytes, seed: int, count: int) -> Iterator[bytes]:
    """The directory at the end with one of its numbers changed: sizes and offsets that the file merely declares."""
    generator = random.Random(seed)
    begin = directory(content)
    for _ in range(count):
        damaged = bytearray(content)
        damaged[generator.randrange(begin, len(content))] = generator.choice([0, 1, 0x7F, 0xFF])
        yield bytes(damaged)


@pytest.fixture(scope="module")
def small() -> bytes:
    return good_content()


@pytest.fixture(scope="module")
def large() -> bytes:
    return content_of(network("mobilenet", "xnnpack").exported())


def test_whole_archives_are_imported(small: bytes, large: bytes) -> None:
    assert outcomes([small, large]) == {"imported"}


def test_truncations(small: bytes, large: bytes) -> None:
    for content in (small, large):
        assert outcomes(content[:size] for size in range(0, len(content), len(content) // 100)) == {"refused"}


def test_flipped_bytes(small: bytes) -> None:
    assert outcomes(flipped(small, 1, 300, 1)) <= {"refused", "imported"}
    assert outcomes(flipped(small, 2, 100, 8)) <= {"refused", "imported"}


def test_changed_directories(small: bytes) -> None:
    assert outcomes(resized(small, 3, 300)) == {"refused", "imported"}


@pytest.mark.parametrize("changes", [1, 4])
def test_changed_json(small: bytes, changes: int) -> None:
    assert outcomes(damaged_json(members_of(small), 4 + changes, 600, changes)) == {"refused", "imported"}


def test_changed_json_of_a_network(large: bytes) -> None:
    assert outcomes(damaged_json(members_of(large), 9, 60, 1)) == {"refused", "imported"}
