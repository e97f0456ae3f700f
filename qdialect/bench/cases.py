"""Benchmark cases as files: models, inputs and expected outputs; and the interface of an engine."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from qdialect.support.diagnostics import QDialectError

# Benchmark cases as files: models in the formats that engines read, their inputs, and the expected outputs.

Array = NDArray[Any]


@dataclass(frozen=True)
class Form:
    """A model file with data in its own layout: arrays ``in_0``, ``out_0`` and so on, in an .npz file."""

    model: str
    data: str

    def inputs(self) -> list[Array]:
        """The arrays to call the model with."""
        return _numbered(self.data, "in_")

    def outputs(self) -> list[Array]:
        """The right answer."""
        return _numbered(self.data, "out_")


@dataclass(frozen=True)
class Case:
    """A workload ready to be measured."""

    name: str
    kind: str
    """``layer``, ``chain``, ``network``, ``model``, ``function`` or ``call``."""
    text: str
    """A short description."""
    macs: int
    """Multiply-accumulates of a call; 0 where they are not counted."""
    bytes_moved: int
    """Bytes that a call must read and write at least; 0 where they are not counted."""
    weight_bytes: int
    """Bytes of weights and biases in the model; 0 where they are not counted."""
    forms: Mapping[str, Form]
    """By name; engines know the names they can read."""
    parameters: str = ""
    """An .npz file with the numbers of a layer, for engines without model files."""
    tolerance: float = 0.0
    """How far a float may be from the right one, as a share of it or of 1, whichever is larger."""

    def to_json(self) -> str:
        """The case as text, for a worker."""
        return json.dumps(asdict(self))

    @staticmethod
    def from_json(text: str) -> Case:
        """A case from its text."""
        fields: dict[str, Any] = json.loads(text)
        forms = {name: Form(**form) for name, form in fields.pop("forms").items()}
        return Case(**fields, forms=forms)


@dataclass(frozen=True)
class Source:
    """A workload by name, and how its files are made in a folder."""

    name: str
    kind: str
    prepare: Callable[[Path], Case]
    is_default: bool = True


def save(path: Path, inputs: Sequence[Array], outputs: Sequence[Array]) -> str:
    """Write data of a `Form`; its path."""
    arrays = {f"in_{i}": np.asarray(array, order="C") for i, array in enumerate(inputs)}
    arrays |= {f"out_{i}": np.asarray(array, order="C") for i, array in enumerate(outputs)}
    # Written by name: the keys are data, not parameters of the function.
    np.savez(path, allow_pickle=False, **arrays)
    return str(path)


def _numbered(path: str, prefix: str) -> list[Array]:
    with np.load(path, allow_pickle=False) as archive:
        count = sum(key.startswith(prefix) and key.removeprefix(prefix).isdecimal() for key in archive.files)
        return [archive[f"{prefix}{i}"] for i in range(count)]


# The interface of an engine.


class EngineError(QDialectError):
    """An engine is absent, or cannot run a workload."""


class Session(Protocol):
    """A loaded model whose inputs and outputs are in place."""

    def call(self) -> None:
        """Compute once."""
        ...

    def outputs(self) -> Sequence[Array]:
        """The results of the last call, in the layout of the expected outputs."""
        ...


class Engine(Protocol):
    """A way to run models."""

    def version(self) -> str:
        """Of the package."""
        ...

    def variants(self, case: Case) -> Mapping[str, str]:
        """Ways to run `case`, each with the form whose data it takes and gives; none where it cannot."""
        ...

    def load(self, case: Case, variant: str, threads: int) -> Session:
        """Get ready to run; raises whatever the engine's package raises."""
        ...


def foreign(name: str) -> Any:
    """A package that the project does not depend on, and knows no types of; raises `ImportError`."""
    return import_module(name)


def known_forms(case: Case, forms: Sequence[str]) -> dict[str, str]:
    """Variants named as the forms that they read: those of `forms` that `case` has."""
    return {form: form for form in forms if form in case.forms}
