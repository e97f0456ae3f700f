"""Results of frameworks, as `test/vectors/*.npz` keep it.

A file holds, for each case, the arrays ``CASE.model`` (the bytes of the model's file), ``CASE.in0``, ``CASE.in1`` and
so on, and ``CASE.out0`` and so on.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
FOLDER = Path(__file__).parent / "vectors"


@dataclass(frozen=True)
class Recording:
    """A model's file, the inputs of one call and the outputs that a framework gave for them."""

    model: bytes
    inputs: tuple[Array, ...]
    outputs: tuple[Array, ...]


def read(path: Path) -> dict[str, Recording]:
    """The cases of a file in its order; raises `OSError` and, where an array is missing, `KeyError`."""
    with np.load(path) as file:
        arrays = dict(file)
    names = dict.fromkeys(key.rpartition(".")[0] for key in arrays)
    return {
        name: Recording(arrays[f"{name}.model"].tobytes(), _several(arrays, name, "in"), _several(arrays, name, "out"))
        for name in names
    }


def read_family(family: str) -> dict[str, Recording]:
    """The cases of the committed file of a family, such as ``onnx_resize``."""
    return read(FOLDER / f"{family}.npz")


def write(path: Path, recordings: Mapping[str, Recording]) -> None:
    """Write a file, which replaces an existing one when it is whole; the same recordings give the same bytes."""
    arrays: dict[str, Any] = {}
    for name, recording in recordings.items():
        arrays[f"{name}.model"] = np.frombuffer(recording.model, dtype=np.uint8)
        arrays |= {f"{name}.in{k}": array for k, array in enumerate(recording.inputs)}
        arrays |= {f"{name}.out{k}": array for k, array in enumerate(recording.outputs)}
    partial = path.with_suffix(".part")
    with partial.open("wb") as file:
        np.savez_compressed(file, **arrays)
    partial.replace(path)


def _several(arrays: Mapping[str, Array], name: str, kind: str) -> tuple[Array, ...]:
    count = sum(key.startswith(f"{name}.{kind}") for key in arrays)
    return tuple(arrays[f"{name}.{kind}{k}"] for k in range(count))
