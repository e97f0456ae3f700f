"""What an engine is to the benchmark."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any, Protocol

from numpy.typing import NDArray

from qdialect.bench.cases import Case
from qdialect.diagnostics import QDialectError

Array = NDArray[Any]


class EngineError(QDialectError):
    """An engine is absent, or cannot run a workload."""


class Session(Protocol):
    """A loaded model whose inputs and outputs are in place."""

    def call(self) -> None:
        """Compute once."""
        ...

    def outputs(self) -> Sequence[Array]:
        """What the last call computed, laid out as the form's right answer."""
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
