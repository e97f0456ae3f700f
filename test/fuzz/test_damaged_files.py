"""Damaged .tflite files: each import ends in `ImportModelError` or a module that runs, in time, in one process."""

import copy
import json
import random
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
from bounds import deadline, memory_at_most
from seeded_mobilenet import write_mobilenet
from tflite_graphs import small_network
from torch_models import (
    CONSTANTS,
    PROGRAM,
    WEIGHTS,
    Members,
    content_of,
    directory,
    good_content,
    members_of,
    network,
    packed,
)
from tosa_graphs import network as tosa_network

from qdialect.dialect.type_constraints import dtype_of, shape_of
from qdialect.frontends.building.checks import CONVERSION_FAILED
from qdialect.frontends.tflite import import_tflite
from qdialect.frontends.tflite.flatbuffer.reader import read_graph
from qdialect.frontends.torch import import_torch
from qdialect.frontends.tosa import import_tosa
from qdialect.ir._mlir import ir
from qdialect.ir.context import make_context
from qdialect.reference import interpreter
from qdialect.support.diagnostics import ImportModelError, QDialectError

CONTEXT = make_context()
# Larger values than this in a valid module would make running it slow, not wrong.
LARGEST_RUN = 1 << 16


@pytest.fixture(scope="module")
def mobilenet(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    path: Path = tmp_path_factory.mktemp("models") / "seeded.tflite"
    write_mobilenet(path, seed=1, size=32)
    return path.read_bytes()


@pytest.fixture(scope="module")
def small() -> bytes:
    return small_network()


def outcome(content: bytes) -> str:
    """How the import ends; anything but an `ImportModelError` or a module that runs fails the test."""
    try:
        with deadline("an import"):
            module = import_tflite(content, CONTEXT)
    except ImportModelError:
        return "refused"
    run(module)
    return "imported"


def run(module: ir.Module) -> None:
    function = module.body.operations[0]
    types = [argument.type for argument in function.regions[0].blocks[0].arguments]
    values = [result.type for op in function.regions[0].blocks[0].operations for result in op.results]
    if all(np.prod(shape_of(type_), dtype=np.float64) <= LARGEST_RUN for type_ in (*types, *values)):
        interpreter.run(module, [np.zeros(shape_of(type_), dtype_of(type_)) for type_ in types])


def outcomes(contents: Iterable[bytes]) -> set[str]:
    return {outcome(content) for content in contents}


def flipped(content: bytes, bits: Iterable[int]) -> Iterator[bytes]:
    for bit in bits:
        damaged = bytearray(content)
        damaged[bit // 8] ^= 1 << bit % 8
        yield bytes(damaged)


def structure_of(content: bytes) -> list[int]:
    """Offsets of the bytes that are not the content of a constant."""
    inside = np.zeros(len(content), dtype=bool)
    for tensor in read_graph(content).tensors:
        if tensor.data is not None and tensor.data.nbytes > 16:
            start = content.find(tensor.data.tobytes())
            inside[start : start + tensor.data.nbytes] = True
    return np.flatnonzero(~inside).tolist()


def test_the_whole_files_are_imported(small: bytes, mobilenet: bytes) -> None:
    assert outcomes([small, mobilenet]) == {"imported"}


def test_every_truncation_of_a_small_model(small: bytes) -> None:
    assert outcomes(small[:size] for size in range(len(small))) <= {"refused", "imported"}


def test_a_flipped_bit_in_every_byte_of_a_small_model(small: bytes) -> None:
    bits = 8 * np.arange(len(small)) + np.random.default_rng(4).integers(0, 8, len(small))
    assert outcomes(flipped(small, bits.tolist())) == {"refused", "imported"}


def test_truncations_of_a_network(mobilenet: bytes) -> None:
    sizes = np.linspace(0, len(mobilenet) - 1, 200, dtype=int).tolist()
    assert outcomes(mobilenet[:size] for size in sizes) <= {"refused", "imported"}


def test_flipped_bits_of_a_network(mobilenet: bytes) -> None:
    random = np.random.default_rng(5)
    offsets = random.choice(structure_of(mobilenet), 400, replace=False)
    bits = 8 * offsets + random.integers(0, 8, offsets.size)
    assert outcomes(flipped(mobilenet, bits.tolist())) == {"refused", "imported"}


def test_many_flipped_bytes_at_once(mobilenet: bytes) -> None:
    random = np.random.default_rng(6)
    offsets = structure_of(mobilenet)

    def damaged() -> Iterator[bytes]:
        for _ in range(100):
            content = bytearray(mobilenet)
            for offset in random.choice(offsets, 8, replace=False).tolist():
                content[offset] = int(random.integers(0, 256))
            yield bytes(content)

    assert outcomes(damaged()) <= {"refused", "imported"}


# Damaged .pt2 files: each import ends in `ImportModelError` or a module, in time and within memory, in one process.

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


def archive_outcome(content: bytes) -> str:
    """How the import ends; anything but an `ImportModelError` or a module fails the test."""
    said = ""
    try:
        with deadline("an import"):
            import_torch(content, CONTEXT)
    except ImportModelError as error:
        said = error.render()
    assert said.replace("\n", "").isprintable()
    return "refused" if said else "imported"


def archive_outcomes(contents: Iterable[bytes]) -> set[str]:
    with memory_at_most(MAX_MEMORY):
        return {archive_outcome(content) for content in contents}


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


def with_other_bytes(content: bytes, seed: int, count: int, changes: int) -> Iterator[bytes]:
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
def small_archive() -> bytes:
    return good_content()


@pytest.fixture(scope="module")
def large() -> bytes:
    return content_of(network("mobilenet", "xnnpack").exported())


def test_whole_archives_are_imported(small_archive: bytes, large: bytes) -> None:
    assert archive_outcomes([small_archive, large]) == {"imported"}


def test_truncations(small_archive: bytes, large: bytes) -> None:
    for content in (small_archive, large):
        assert archive_outcomes(content[:size] for size in range(0, len(content), len(content) // 100)) == {"refused"}


def test_flipped_bytes(small_archive: bytes) -> None:
    assert archive_outcomes(with_other_bytes(small_archive, 1, 300, 1)) <= {"refused", "imported"}
    assert archive_outcomes(with_other_bytes(small_archive, 2, 100, 8)) <= {"refused", "imported"}


def test_changed_directories(small_archive: bytes) -> None:
    assert archive_outcomes(resized(small_archive, 3, 300)) == {"refused", "imported"}


@pytest.mark.parametrize("changes", [1, 4])
def test_changed_json(small_archive: bytes, changes: int) -> None:
    assert archive_outcomes(damaged_json(members_of(small_archive), 4 + changes, 600, changes)) == {
        "refused",
        "imported",
    }


def test_changed_json_of_a_network(large: bytes) -> None:
    assert archive_outcomes(damaged_json(members_of(large), 9, 60, 1)) == {"refused", "imported"}


# TOSA texts with other attributes, types and ranks: each import ends in a module or in an error of the project.

CHANGES = 60
_NUMBERS = ("0", "1", "2", "-1", "3", "8", "127", "128", "-129", "62", "63", "2147483647")
_ELEMENTS = ("i8", "i16", "i32", "i48", "f32", "i1", "ui8", "index")
_WORDS = ("true", "false", "SINGLE_ROUND", "DOUBLE_ROUND", "INEXACT_ROUND")
# What is replaced, and by what.
_TOKENS = (
    (re.compile(r"(?<![\w.%#-])-?\d+(?![\w.x])"), _NUMBERS),
    (re.compile(r"(?<=x)u?i\d+\b"), _ELEMENTS),
    (re.compile(r"\b\d+(?=x)"), _NUMBERS[:6]),
    (re.compile(r"\b\d+x(?=\d)"), ("", "1x", "1x1x")),
    (re.compile("|".join(_WORDS)), _WORDS),
)


def source() -> str:
    """A network of every kind of op."""
    text = tosa_network("SINGLE_ROUND")
    return text.render(list(text.types)[-1])


def changed(text: str, rng: np.random.Generator) -> str:
    """`text` with up to 3 tokens replaced."""
    for _ in range(int(rng.integers(1, 4))):
        pattern, others = _TOKENS[int(rng.integers(len(_TOKENS)))]
        found = [match for match in pattern.finditer(text) if match.end() - match.start() < 20]
        if not found:
            continue
        match = found[int(rng.integers(len(found)))]
        text = text[: match.start()] + str(rng.choice(others)) + text[match.end() :]
    return text


def message_of(text: str) -> str:
    """What the import says; nothing where it gives a module."""
    try:
        import_tosa(text)
    except QDialectError as error:
        return error.render()
    return ""


@pytest.mark.parametrize("seed", range(4))
def test_wrong_attributes_types_and_ranks(seed: int) -> None:
    rng, text = np.random.default_rng(seed), source()
    messages = [message_of(changed(text, rng)) for _ in range(CHANGES)]
    assert sum(map(bool, messages)) > CHANGES // 4
    assert not [message for message in messages if CONVERSION_FAILED in message]


def test_the_text_itself_is_imported() -> None:
    import_tosa(source())
