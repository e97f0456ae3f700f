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
from qdialect.bench.truth import Exact, tracing

_MODULES = {".onnx": "onnx_units", ".pt2": "torch_units", ".tflite": "tflite_units"}

Tensors = dict[str, Array]


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
    runs = runs_of(path, [sample], target)
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
class Runs:
    """The results of units on samples: ours and the framework's from the framework's tensors, and from the truth's."""

    network: Network
    cut: Cut
    exact: Runner | None
    runs: Sequence[Tensors]
    found: Sequence[Tensors]
    wanted: Sequence[Tensors]
    against: tuple[Sequence[Mapping[str, Exact]], Sequence[Tensors], Sequence[Tensors]] | None


def runs_of(path: Path, samples: Sequence[Sample], target: str = "host") -> Runs | None:
    """Those of a model; None where it has no quantized tensors.  Raises whatever its framework raises for a part."""
    network = network_of(path)
    if network is None:
        return None
    with TemporaryDirectory() as folder:
        whole, parts = (Path(folder) / f"{name}{path.suffix}" for name in ("whole", "units"))
        network.write_exposed(whole, samples[0])
        runner = framework_runner(whole)
        runs = [exposed_tensors(network, runner, one) for one in samples]
        cut = network.write_units(parts, runs[0])
        engines = own_runner(parts, target), framework_runner(parts)

        def results(tensors: Mapping[str, Array]) -> tuple[Tensors, Tensors]:
            ours, theirs = (unit_tensors(network, cut, engine, tensors) for engine in engines)
            return ours, theirs

        found, wanted = zip(*map(results, runs), strict=True)
        exact = _truth(path)
        against = _against_truth(network, exact, samples, results) if exact else None
    return Runs(network, cut, exact, runs, found, wanted, against)


def network_of(path: Path) -> Network | None:
    """The model at `path`, where it has quantized tensors."""
    module: Any = import_module(f"{__name__}.{_MODULES[path.suffix]}")
    network: Network = module.load(path)
    return network if network.quantized else None


def framework_runner(path: Path) -> Runner:
    """The model in its own framework."""
    return frameworks.load(frameworks.OWN[path.suffix.lower()], str(path))


def own_runner(path: Path, target: str = "host") -> Runner:
    """The compiled model, of which the framework runs the rest."""
    profile = frameworks.PROFILES.get(path.suffix, "")
    executable = qdialect.compile(path, profile=profile, fallback="framework", cache=False, target=target)

    def run(inputs: Sequence[Array]) -> list[Array]:
        found = executable(*inputs)
        return list(found) if isinstance(found, tuple) else [found]

    return run


def exposed_tensors(network: Network, engine: Runner, sample: Sample) -> Tensors:
    """The inputs and quantized tensors of the exposed network."""
    found = engine(sample)[-len(network.quantized) :]
    return {**dict(zip(network.inputs, sample, strict=False)), **dict(zip(network.quantized, found, strict=True))}


def unit_tensors(network: Network, cut: Cut, engine: Runner, tensors: Mapping[str, Array]) -> Tensors:
    """Each quantized tensor, computed from others in `tensors`."""
    return dict(zip(network.quantized, engine([tensors[name] for name in cut.given]), strict=True))


def _truth(path: Path) -> Runner | None:
    """The truth of a model; where it lacks an operator, the error comes at the first use."""
    try:
        return truth.load(str(path), path.suffix)
    except truth.NoTruthError:
        return None


def _against_truth(
    network: Network,
    exact: Runner,
    samples: Sequence[Sample],
    results: Callable[[Mapping[str, Array]], tuple[Tensors, Tensors]],
) -> tuple[Sequence[Mapping[str, Exact]], Sequence[Tensors], Sequence[Tensors]]:
    """The truth, and ours and the framework's units, each computed from its tensors."""
    traces = [forced_truth(network, exact, one, {})[1] for one in samples]
    given = [
        {**dict(zip(network.inputs, one, strict=False)), **{name: trace[name].values for name in network.quantized}}
        for one, trace in zip(samples, traces, strict=True)
    ]
    ours, theirs = zip(*map(results, given), strict=True)
    return traces, ours, theirs


def forced_truth(
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
    def inputs(self) -> tuple[str, ...]: ...

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
