"""Unit by unit: each is computed from the framework's or the truth's own tensors, so that no difference is carried on.

A unit ends where the network quantizes: a QDQ group, or a quantized operator.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Protocol

import numpy as np

import qdialect
from qdialect.bench import frameworks, truth
from qdialect.bench.frameworks import Array, Runner, Sample
from qdialect.bench.truth.tracing import Exact, tracing
from qdialect.bench.units.agreement import Agreement, Cause, Ties, agreement, causes, difference, ties

_MODULES = {".onnx": "onnx_units", ".pt2": "torch_units", ".tflite": "tflite_units"}
# Behind the last quantized tensor floats are left, which are rounded in another order.
_ROUNDINGS = 2.0**-16

Tensors = dict[str, Array]


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


@dataclass(frozen=True)
class Unit:
    """A quantized tensor, computed from the framework's own tensors, and from those of the truth."""

    name: str
    elements: int
    different: int
    """Elements of ours that are not the framework's."""
    steps: int
    """The largest difference of quantized values."""
    first: tuple[tuple[int, ...], int, int] | None = None
    """Where the first of them is, ours and the framework's."""
    from_truth: int | None = None
    """Elements of ours that are not those of the truth; None where there is none."""
    framework_from_truth: int | None = None
    """The same of the framework's."""


def compared_units(path: Path, sample: Sample, target: str = "host") -> tuple[Unit, ...]:
    """The units of a model on one sample, in the model's order; nothing where it has no quantized tensors.

    Raises `ImportError` where the framework is not installed, and whatever it raises for a part of the model.
    """
    runs = _runs(path, [sample], target)
    if runs is None:
        return ()
    truths: Mapping[str, tuple[int, int]] = {}
    if runs.against:
        traces, *both = runs.against
        truths = {
            name: (int((both[0][0][name] != exact.values).sum()), int((both[1][0][name] != exact.values).sum()))
            for name, exact in traces[0].items()
        }
    return tuple(
        _unit(name, runs.found[0][name], runs.wanted[0][name], truths.get(name, (None, None)))
        for name in runs.network.quantized
    )


def _unit(name: str, ours: Array, theirs: Array, truths: tuple[int | None, int | None]) -> Unit:
    at = np.argwhere(ours != theirs)
    if not at.size:
        return Unit(name, ours.size, 0, 0, None, *truths)
    steps = int(np.abs(ours.astype(np.int64) - theirs).max())
    where = tuple(map(int, at[0]))
    return Unit(name, ours.size, len(at), steps, (where, int(ours[where]), int(theirs[where])), *truths)


@dataclass(frozen=True)
class _Runs:
    """The results of units on samples: ours and the framework's from the framework's tensors, and from the truth's."""

    network: Network
    cut: Cut
    exact: Runner | None
    runs: Sequence[Tensors]
    found: Sequence[Tensors]
    wanted: Sequence[Tensors]
    against: tuple[Sequence[Mapping[str, Exact]], Sequence[Tensors], Sequence[Tensors]] | None


def measured_units(path: Path, samples: Sequence[Sample]) -> Measured:
    """Each unit computed from the framework's tensors, and each from those of the truth.

    Raises whatever the framework raises for a part of the model.
    """
    runs = _runs(path, samples)
    if runs is None:
        return Measured()
    network, found, wanted = runs.network, runs.found, runs.wanted
    floating = [name for name in network.quantized if name not in runs.cut.integer]
    integer, others = (_agreement(found, wanted, names) for names in (runs.cut.integer, floating))
    against = (ties(runs.against[1], runs.against[0]), ties(runs.against[2], runs.against[0])) if runs.against else ()
    return Measured(integer, others, *(against or (None, None)), _causes(runs, samples))


def _runs(path: Path, samples: Sequence[Sample], target: str = "host") -> _Runs | None:
    network = _network(path)
    if network is None:
        return None
    with TemporaryDirectory() as folder:
        whole, parts = (Path(folder) / f"{name}{path.suffix}" for name in ("whole", "units"))
        network.write_exposed(whole, samples[0])
        runner = _framework(whole)
        runs = [_run(network, runner, one) for one in samples]
        cut = network.write_units(parts, runs[0])
        engines = _ours(parts, target), _framework(parts)

        def results(tensors: Mapping[str, Array]) -> tuple[Tensors, Tensors]:
            ours, theirs = (_of_units(network, cut, engine, tensors) for engine in engines)
            return ours, theirs

        found, wanted = zip(*map(results, runs), strict=True)
        exact = _truth(path)
        against = _against_truth(network, exact, samples, results) if exact else None
    return _Runs(network, cut, exact, runs, found, wanted, against)


def flipped_ties(path: Path, samples: Sequence[Sample], outputs: Sequence[Sequence[Array]]) -> Ties | None:
    """The elements that distinguish `outputs`, our results for `samples`, from the truth and from the framework.

    The truth is computed once more, and where it quantizes it goes on with our elements.  If it then has our results,
    to the rounding of floats, then the elements that it would have quantized otherwise are all that distinguishes us.
    Those of them are returned that the framework, too, quantizes otherwise from the same tensors; None is returned
    where the results are not ours.
    """
    network = _network(path)
    if network is None:
        return None
    exact = truth.load(str(path), path.suffix)
    with TemporaryDirectory() as folder:
        whole, parts = (Path(folder) / f"{name}{path.suffix}" for name in ("whole", "units"))
        network.write_exposed(whole, samples[0])
        engine = _ours(whole)
        found = [_run(network, engine, one) for one in samples]
        cut = network.write_units(parts, found[0])
        framework = _framework(parts)
        theirs = [_of_units(network, cut, framework, one) for one in found]
    forced = [_forced(network, exact, one, own) for one, own in zip(samples, found, strict=True)]
    ends, traces = zip(*forced, strict=True)
    if difference(outputs, ends).maximum > _ROUNDINGS:
        return None
    return ties(found, traces, theirs)


def _network(path: Path) -> Network | None:
    """The model at `path`, where it has quantized tensors."""
    module: Any = import_module(f"{__name__}.{_MODULES[path.suffix]}")
    network: Network = module.load(path)
    return network if network.quantized else None


def _framework(path: Path) -> Runner:
    return frameworks.load(frameworks.OWN[path.suffix.lower()], str(path))


def _ours(path: Path, target: str = "host") -> Runner:
    profile = frameworks.PROFILES.get(path.suffix, "")
    executable = qdialect.compile(path, profile=profile, fallback="framework", cache=False, target=target)

    def run(inputs: Sequence[Array]) -> list[Array]:
        found = executable(*inputs)
        return list(found) if isinstance(found, tuple) else [found]

    return run


def _run(network: Network, engine: Runner, sample: Sample) -> Tensors:
    """The inputs and quantized tensors of the exposed network."""
    found = engine(sample)[-len(network.quantized) :]
    return {**dict(zip(network.inputs, sample, strict=False)), **dict(zip(network.quantized, found, strict=True))}


def _of_units(network: Network, cut: Cut, engine: Runner, tensors: Mapping[str, Array]) -> Tensors:
    """Each quantized tensor, computed from others in `tensors`."""
    return dict(zip(network.quantized, engine([tensors[name] for name in cut.given]), strict=True))


def _agreement(found: Sequence[Tensors], wanted: Sequence[Tensors], names: Sequence[str]) -> Agreement | None:
    if not names:
        return None
    return agreement(found, [{name: one[name] for name in names} for one in wanted])


def _truth(path: Path) -> Runner | None:
    """The truth of a model; where it lacks an operator, the error comes at the first use."""
    try:
        return truth.load(str(path), path.suffix)
    except truth.NoTruthError:
        return None


def _causes(runs: _Runs, samples: Sequence[Sample]) -> tuple[Cause, ...]:
    """Of differences of our results and the framework's, both from the framework's tensors."""
    exact, results = runs.exact, (runs.found, runs.wanted)
    pairs = [(one[name], other[name]) for one, other in zip(*results, strict=True) for name in other]
    if exact is None or all(np.array_equal(one, other) for one, other in pairs):
        return ()
    traces = [_forced(runs.network, exact, one, run)[1] for one, run in zip(samples, runs.runs, strict=True)]
    return causes(*results, traces)


def _against_truth(
    network: Network,
    exact: Runner,
    samples: Sequence[Sample],
    results: Callable[[Mapping[str, Array]], tuple[Tensors, Tensors]],
) -> tuple[Sequence[Mapping[str, Exact]], Sequence[Tensors], Sequence[Tensors]]:
    """The truth, and ours and the framework's units, each computed from its tensors."""
    traces = [_forced(network, exact, one, {})[1] for one in samples]
    given = [
        {**dict(zip(network.inputs, one, strict=False)), **{name: trace[name].values for name in network.quantized}}
        for one, trace in zip(samples, traces, strict=True)
    ]
    ours, theirs = zip(*map(results, given), strict=True)
    return traces, ours, theirs


def _forced(
    network: Network, exact: Runner, sample: Sample, forced: Mapping[str, Array]
) -> tuple[list[Array], dict[str, Exact]]:
    """The outputs of the truth, and its quantized tensors, which are those of `forced` to what reads them."""
    with tracing(forced) as trace:
        outputs = exact(sample)
    return outputs, {name: trace.exact[name] for name in network.quantized}


# A model of any format in the measurement of units.


@dataclass(frozen=True)
class Cut:
    """A network cut at its quantized tensors."""

    given: tuple[str, ...]
    """The tensors that units read: inputs of the network and quantized tensors, in the order of the model."""
    integer: tuple[str, ...] = ()
    """The quantized tensors that the framework computes with an integer kernel or a table."""


class Network(Protocol):
    """A model with tensors that are computed from its inputs and quantized."""

    @property
    def inputs(self) -> tuple[str, ...]:
        """The names of its inputs."""
        ...

    @property
    def quantized(self) -> tuple[str, ...]:
        """The names of its quantized tensors, as the truth of this format notes them."""
        ...

    def write_exposed(self, path: Path, sample: Sequence[Array]) -> None:
        """Write a model that gives the quantized tensors too, after its own outputs."""
        ...

    def write_units(self, path: Path, tensors: Mapping[str, Array]) -> Cut:
        """Write a model that gives nothing but the quantized tensors, each computed from others that are its inputs.

        `tensors` has inputs and quantized tensors of one run.
        """
        ...
