"""A case: a model, inputs and who says what is right; how it is compiled, run and compared."""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Literal
from zlib import crc32

import numpy as np

import qdialect
from qdialect import FallbackWarning, QDialectError, targets
from qdialect.support.interface import Array
from tools.evidence.outcomes import FLOAT_LIMIT, Outcome, Rank, compare_all, worst


@dataclass(frozen=True, order=True)
class Key:
    """A row of the evidence: an operator, the types of its inputs, the form of the model, and where it comes from."""

    operator: str
    types: str
    form: str
    origin: str

    def __str__(self) -> str:
        return "\t".join((self.operator, self.types, self.form, self.origin))


@dataclass(frozen=True)
class Case:
    """A model file, the inputs of a call, and what its framework gives for them.

    `later` are the inputs and the results of the calls that follow. `steps` is how far quantized results may be,
    `limit` how far f32 ones, as a part of the largest; `dims` the open extents of the first compilation; `profile`
    whose arithmetic is asked for; `alternatives` what the framework gives in its other modes, which are as good.
    """

    suffix: str
    model: bytes
    inputs: tuple[Array, ...]
    wanted: tuple[Array, ...]
    steps: int = 0
    profile: str = ""
    alternatives: tuple[tuple[Array, ...], ...] = ()
    limit: float = FLOAT_LIMIT
    later: tuple[tuple[tuple[Array, ...], tuple[Array, ...]], ...] = ()
    dims: Mapping[str, int] = field(default_factory=dict[str, int])


class InvalidCaseError(Exception):
    """The framework does not run the model, or its results are no numbers to compare with."""


class Source(ABC):
    """Where cases come from.  Keys are cheap and the same in every process; a case is made where it is measured."""

    name: str

    @abstractmethod
    def rows(self) -> Iterator[Key]:
        """All rows, in order."""

    @abstractmethod
    def case(self, key: Key) -> Case:
        """The case of a row; raises `InvalidCaseError` where its framework does not take it."""


@dataclass(frozen=True)
class Variant:
    """One way to compile and call a model; ``dynamic`` is a batch that each call decides."""

    target: str = "host"
    threads: int = 1
    is_saved: bool = False
    batch: int | Literal["dynamic"] = 1


def measure(source: Source, key: Key) -> Outcome:
    """The worst outcome of a case: compiled for this CPU, and in one other way that its name decides."""
    try:
        case = source.case(key)
    except InvalidCaseError as error:
        return Outcome(Rank.INVALID, _line(str(error)))
    # Each way that this machine can run is taken by its share of the names.
    kinds = [kind for kind, one in targets.TARGETS.items() if one.features <= targets.host_features()]
    others = [*(Variant(kind) for kind in kinds), Variant(threads=2), Variant(is_saved=True), Variant("host,portable")]
    return outcome_of(case, (Variant(), others[crc32(str(key).encode()) % len(others)]))


def outcome_of(case: Case, variants: Sequence[Variant]) -> Outcome:
    """The worst outcome of the variants."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / f"model{case.suffix}"
        path.write_bytes(case.model)
        found = worst(_attempt(lambda variant=variant: _outcome(path, case, variant)) for variant in variants)
    return Outcome(found.rank, _line(found.detail.replace(f"{folder}/", "")))


def _attempt(work: Callable[[], Outcome]) -> Outcome:
    try:
        return work()
    except QDialectError as error:
        # The message, and the first note, which names the node; without what differs from run to run.
        notes = [note.message for found in error.diagnostics[:1] for note in found.notes[:1]]
        return Outcome(Rank.REFUSED, "; ".join([str(error).partition("\n")[0], *notes]))
    except Exception as error:
        return Outcome(Rank.CRASH, f"{type(error).__name__}: {error}")


def _outcome(path: Path, case: Case, variant: Variant) -> Outcome:
    with warnings.catch_warnings(action="ignore", category=FallbackWarning):
        executable = qdialect.compile(
            path,
            target=variant.target,
            threads=variant.threads,
            batch=variant.batch,
            dims=case.dims,
            profile=case.profile,
            trust=True,
            cache=False,
        )
    by_framework = not all(region.is_compiled for region in executable.regions)
    if variant.is_saved and len(executable.regions) == 1 and not by_framework:
        executable.save(path.with_suffix(".so"))
        executable = qdialect.load(path.with_suffix(".so"))
    calls = ((case.inputs, (case.wanted, *case.alternatives)), *((given, (wanted,)) for given, wanted in case.later))
    outcome = worst(_outcome_of_call(executable, inputs, wanted, case) for inputs, wanted in calls)
    if by_framework and outcome.rank <= Rank.NEAR:
        return Outcome(Rank.FRAMEWORK)
    return outcome


def _outcome_of_call(
    executable: Callable[..., Array | tuple[Array, ...]],
    inputs: Sequence[Array],
    wanted: Sequence[Sequence[Array]],
    case: Case,
) -> Outcome:
    """The best beside any of the results that are `wanted`."""
    results = executable(*inputs)
    found = results if isinstance(results, tuple) else (results,)
    arrays = [np.asarray(one) for one in found]
    return min(compare_all(arrays, one, case.steps, case.limit) for one in wanted)


def _line(text: str) -> str:
    return " ".join(text.split())[:160]
