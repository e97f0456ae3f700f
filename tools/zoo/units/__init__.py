"""Unit by unit: each is computed from the framework's or the truth's own tensors, so that no difference is carried on.

A unit ends where the network quantizes: a QDQ group, or a quantized operator.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

import qdialect
from tools.zoo import frameworks, truth
from tools.zoo.distance import difference
from tools.zoo.flows.samples import Sample
from tools.zoo.frameworks.runner import Array, Runner
from tools.zoo.truth.tracing import Exact, tracing
from tools.zoo.units.agreement import Agreement, agreement
from tools.zoo.units.causes import Cause, causes
from tools.zoo.units.network import Cut, Network
from tools.zoo.units.ties import Ties, ties

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


def measured_units(path: Path, samples: Sequence[Sample]) -> Measured:
    """Each unit computed from the framework's tensors, and each from those of the truth.

    Raises whatever the framework raises for a part of the model.
    """
    network = _network(path)
    if network is None:
        return Measured()
    with TemporaryDirectory() as folder:
        whole, parts = (Path(folder) / f"{name}{path.suffix}" for name in ("whole", "units"))
        network.write_exposed(whole, samples[0])
        runner = _framework(whole)
        runs = [_run(network, runner, one) for one in samples]
        cut = network.write_units(parts, runs[0])
        engines = _ours(parts), _framework(parts)

        def results(tensors: Mapping[str, Array]) -> tuple[Tensors, Tensors]:
            ours, theirs = (_of_units(network, cut, engine, tensors) for engine in engines)
            return ours, theirs

        found, wanted = zip(*map(results, runs), strict=True)
        exact = _truth(path)
        against = _against_truth(network, exact, samples, results) if exact else (None, None)
    floating = [name for name in network.quantized if name not in cut.integer]
    integer, others = (_agreement(found, wanted, names) for names in (cut.integer, floating))
    return Measured(integer, others, *against, _causes(network, exact, samples, runs, (found, wanted)))


def flipped_ties(path: Path, samples: Sequence[Sample], outputs: Sequence[Sequence[Array]]) -> Ties | None:
    """What distinguishes `outputs`, our results for `samples`, from the truth and from the framework.

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
    return frameworks.load(frameworks.OWN[path.suffix], str(path))


def _ours(path: Path) -> Runner:
    profile = frameworks.PROFILES.get(path.suffix, "")
    executable = qdialect.compile(path, profile=profile, fallback="framework", cache=False)

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
    """What the truth lacks is told where it is first asked for."""
    try:
        return truth.load(str(path), path.suffix)
    except truth.NoTruthError:
        return None


def _causes(
    network: Network,
    exact: Runner | None,
    samples: Sequence[Sample],
    runs: Sequence[Tensors],
    results: tuple[Sequence[Tensors], Sequence[Tensors]],
) -> tuple[Cause, ...]:
    """Of differences of `results`, ours and the framework's, both from the framework's tensors in `runs`."""
    pairs = [(one[name], other[name]) for one, other in zip(*results, strict=True) for name in other]
    if exact is None or all(np.array_equal(one, other) for one, other in pairs):
        return ()
    traces = [_forced(network, exact, one, run)[1] for one, run in zip(samples, runs, strict=True)]
    return causes(*results, traces)


def _against_truth(
    network: Network,
    exact: Runner,
    samples: Sequence[Sample],
    results: Callable[[Mapping[str, Array]], tuple[Tensors, Tensors]],
) -> tuple[Ties, Ties]:
    """Of ours and the framework's units, each computed from the tensors of the truth."""
    traces = [_forced(network, exact, one, {})[1] for one in samples]
    given = [
        {**dict(zip(network.inputs, one, strict=False)), **{name: trace[name].values for name in network.quantized}}
        for one, trace in zip(samples, traces, strict=True)
    ]
    ours, theirs = zip(*map(results, given), strict=True)
    return ties(ours, traces), ties(theirs, traces)


def _forced(
    network: Network, exact: Runner, sample: Sample, forced: Mapping[str, Array]
) -> tuple[list[Array], dict[str, Exact]]:
    """The outputs of the truth, and its quantized tensors, which are those of `forced` to what reads them."""
    with tracing(forced) as trace:
        outputs = exact(sample)
    return outputs, {name: trace.exact[name] for name in network.quantized}
