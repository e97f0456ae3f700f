"""Damaged .tflite files: each import ends in `ImportModelError` or a module that runs, in time, in one process."""

from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np
import pytest
from deadline import deadline
from tflite_graphs import small_network

from qdialect.dialect.type_constraints import dtype_of, shape_of
from qdialect.frontends.tflite import import_tflite
from qdialect.frontends.tflite.flatbuffer.reader import read_graph
from qdialect.frontends.tflite.seeded_mobilenet import write_mobilenet
from qdialect.ir._mlir import ir
from qdialect.ir.context import make_context
from qdialect.reference import interpreter
from qdialect.support.diagnostics import ImportModelError

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
