"""The units of a network in numbers: how they agree with the framework's and with the truth, and why they do not."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from qdialect.bench import truth
from qdialect.bench.frameworks import Array, Sample
from qdialect.bench.units import (
    Runs,
    Tensors,
    exposed_tensors,
    forced_truth,
    framework_runner,
    network_of,
    own_runner,
    runs_of,
    unit_tensors,
)
from tools.zoo.agreement import Agreement, Cause, Ties, agreement, causes, difference, ties

# Behind the last quantized tensor floats are left, which are rounded in another order.
_ROUNDINGS = 2.0**-16


@dataclass(frozen=True)
class Measured:
    """The units of a network; `None` for what a network lacks or what cannot be measured."""

    integer: Agreement | None = None
    """Of ours with the framework: units that it computes with an integer kernel or a table."""
    floating: Agreement | None = None
    """Those with float arithmetic inside."""
    ours: Ties | None = None
    """Of ours with the truth."""
    framework: Ties | None = None
    """Of the framework's with the truth."""
    causes: tuple[Cause, ...] = ()
    """Of the units of ours that differ from the framework's."""


def measured_units(path: Path, samples: Sequence[Sample]) -> Measured:
    """Each unit computed from the framework's tensors, and each from those of the truth.

    Raises whatever the framework raises for a part of the model.
    """
    runs = runs_of(path, samples)
    if runs is None:
        return Measured()
    network, found, wanted = runs.network, runs.found, runs.wanted
    floating = [name for name in network.quantized if name not in runs.cut.integer]
    integer, others = (_agreement(found, wanted, names) for names in (runs.cut.integer, floating))
    against = (ties(runs.against[1], runs.against[0]), ties(runs.against[2], runs.against[0])) if runs.against else ()
    return Measured(integer, others, *(against or (None, None)), _causes(runs, samples))


def _agreement(found: Sequence[Tensors], wanted: Sequence[Tensors], names: Sequence[str]) -> Agreement | None:
    if not names:
        return None
    return agreement(found, [{name: one[name] for name in names} for one in wanted])


def _causes(runs: Runs, samples: Sequence[Sample]) -> tuple[Cause, ...]:
    """Of differences of our results and the framework's, both from the framework's tensors."""
    exact, results = runs.exact, (runs.found, runs.wanted)
    pairs = [(one[name], other[name]) for one, other in zip(*results, strict=True) for name in other]
    if exact is None or all(np.array_equal(one, other) for one, other in pairs):
        return ()
    traces = [forced_truth(runs.network, exact, one, run)[1] for one, run in zip(samples, runs.runs, strict=True)]
    return causes(*results, traces)


def flipped_ties(path: Path, samples: Sequence[Sample], outputs: Sequence[Sequence[Array]]) -> Ties | None:
    """The elements that distinguish `outputs`, our results for `samples`, from the truth and from the framework.

    The truth is computed once more, and where it quantizes it goes on with our elements.  If it then has our results,
    to the rounding of floats, then the elements that it would have quantized otherwise are all that distinguishes us.
    Those of them are returned that the framework, too, quantizes otherwise from the same tensors; None is returned
    where the results are not ours.
    """
    network = network_of(path)
    if network is None:
        return None
    exact = truth.load(str(path), path.suffix)
    with TemporaryDirectory() as folder:
        whole, parts = (Path(folder) / f"{name}{path.suffix}" for name in ("whole", "units"))
        network.write_exposed(whole, samples[0])
        engine = own_runner(whole)
        found = [exposed_tensors(network, engine, one) for one in samples]
        cut = network.write_units(parts, found[0])
        framework = framework_runner(parts)
        theirs = [unit_tensors(network, cut, framework, one) for one in found]
    forced = [forced_truth(network, exact, one, own) for one, own in zip(samples, found, strict=True)]
    ends, traces = zip(*forced, strict=True)
    if difference(outputs, ends).maximum > _ROUNDINGS:
        return None
    return ties(found, traces, theirs)
