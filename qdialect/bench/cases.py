"""Benchmark cases as files: models, inputs and expected outputs; and the interface of an engine."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from qdialect.support.diagnostics import QDialectError
from qdialect.support.interface import Array


@dataclass(frozen=True)
class Form:
    """A model file with data in its own layout: arrays ``in_0``, ``out_0`` and so on, in an .npz file."""

    model: str
    data: str

    def inputs(self) -> list[Array]:
        return self._arrays("in_")

    def outputs(self) -> list[Array]:
        """The right answer."""
        return self._arrays("out_")

    def _arrays(self, prefix: str) -> list[Array]:
        with np.load(self.data, allow_pickle=False) as archive:
            return numbered(archive, prefix)


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
        return json.dumps(asdict(self))

    @staticmethod
    def from_json(text: str) -> Case:
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


def write_form(path: Path, content: bytes, inputs: Sequence[Array], outputs: Sequence[Array]) -> Form:
    """Write a model, and its data next to it."""
    path.write_bytes(content)
    return Form(str(path), save(path.with_suffix(".npz"), inputs, outputs))


def numbered(arrays: Mapping[str, Array], prefix: str) -> list[Array]:
    """The arrays named by `prefix` and a number from 0 on."""
    count = sum(key.startswith(prefix) and key.removeprefix(prefix).isdecimal() for key in arrays)
    return [arrays[f"{prefix}{i}"] for i in range(count)]


# The interface of an engine.


class EngineError(QDialectError):
    """An engine is absent, or cannot run a workload."""


@dataclass(frozen=True)
class Session:
    """A loaded model whose inputs and outputs are in place."""

    call: Callable[[], object]
    outputs: Callable[[], Sequence[Array]]
    """The results of the last call, in the layout of the expected outputs."""
    kept: object = None
    """What must live as long."""


def session_of(function: Callable[[], Any], arrays: Callable[[Any], Sequence[Array]], kept: object = None) -> Session:
    """A loaded model whose function makes a new result with each call; `arrays` are those of a result."""
    last: Any = None

    def call() -> None:
        nonlocal last
        last = function()

    return Session(call, lambda: arrays(last), kept)


class Engine(Protocol):
    """A way to run models."""

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
