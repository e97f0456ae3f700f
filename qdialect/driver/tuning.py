"""From a network to the same network with the fastest variant of each kernel.

All kernels are measured in place, in the network: its first form has what the cost model chooses, the next one the
first candidate of every kernel, and so on.  What is chosen is then measured once more against the model's choice, so
that a kernel that was fast by luck does not stay.
"""

from __future__ import annotations

import json
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qdialect.cache.fingerprint import fingerprint, key
from qdialect.cache.store import Store, open_store
from qdialect.frontends.model_files import read_model
from qdialect.ir import context
from qdialect.ir._mlir import ir
from qdialect.lowering.cost import variants as variant_attributes
from qdialect.lowering.ir import lowered
from qdialect.lowering.ir.lowered import Lowered, Phase, phase_of
from qdialect.lowering.pipeline.phases import lower
from qdialect.runtime.base import CallTime, Trial, TunedKernel, TuningReport
from qdialect.runtime.comparison import random_inputs
from qdialect.runtime.compiler import CompiledExecutable, compile_module, prepared
from qdialect.runtime.native import Binding
from qdialect.support.diagnostics import CompileError
from qdialect.support.interface import KernelCall, Tunable, kernel_names
from qdialect.support.options import CompileOptions
from qdialect.targets import Target

# The times of all kernels of several forms of a network, measured in turns.

Clock = Callable[[Sequence[ir.Module]], Sequence[NDArray[np.float64]]]
"""From clocked networks at phase `linalg` to the seconds of each kernel call, [rounds, calls] for each network."""

_ROUNDS = 9
_SECONDS = 0.02
"""Of a network in a round."""
_WARM_UP_CALLS = 3
_MAX_CALLS = 2000
"""Repetitions of a measurement, of which the median is taken."""


def measure(modules: Sequence[ir.Module]) -> list[NDArray[np.float64]]:
    """Call the networks in turns on random inputs, so that what disturbs the machine meets all of them.

    Raises what `compile_module` raises.
    """
    networks = [compile_module(module, target="host", clocked=True) for module in modules]
    calls = [_bound(network) for network in networks]
    for call in calls:
        for _ in range(_WARM_UP_CALLS):
            call()
    rounds: list[list[NDArray[np.float64]]] = [[] for _ in networks]
    for _ in range(_ROUNDS):
        for network, call, found in zip(networks, calls, rounds, strict=True):
            ticks, length = measured_calls(call, network.ticks, _SECONDS)
            found.append(middle(np.diff(np.array(ticks), axis=1)) * length)
    return [np.array(found) for found in rounds]


def call_times(model: Path, options: CompileOptions) -> tuple[CallTime, ...]:
    """The time of each kernel call of a model on one thread, with random inputs; raises what compiling it does."""
    module = read_model(model, options.importing)
    if options.tune:
        module, _ = tuned(module, options.target, store=open_store() if options.cache else None)
    network = compile_module(module, target=options.target, clocked=True, externals=options.externals)
    call = _bound(network)
    for _ in range(_WARM_UP_CALLS):
        call()
    ticks, length = measured_calls(call, network.ticks, _ROUNDS * _SECONDS)
    seconds = middle(np.diff(np.array(ticks), axis=1)) * length
    return tuple(CallTime(one, float(time)) for one, time in zip(network.calls, seconds, strict=True))


def _bound(network: CompiledExecutable) -> Binding:
    outputs: list[NDArray[Any]] = [np.empty(port.shape, port.dtype) for port in network.outputs]
    return network.bind(random_inputs(network.inputs, 0), outputs)


def middle(cycles: NDArray[np.int64]) -> NDArray[np.float64]:
    """The mean of the middle half of each column: a counter may advance in strides that a median would keep."""
    count = len(cycles)
    return np.sort(cycles, axis=0)[count // 4 : count - count // 4].mean(axis=0)


def measured_calls(call: Binding, ticks: NDArray[np.int64], seconds: float) -> tuple[list[NDArray[np.int64]], float]:
    """The clock's readings of each call, and the seconds that one of its cycles lasts."""
    readings: list[NDArray[np.int64]] = []
    ends: list[float] = []
    limit = time.perf_counter() + seconds
    while len(ends) < 2 or (ends[-1] < limit and len(ends) < _MAX_CALLS):
        # A thread that has no part of a call reads no clock there.
        ticks.fill(0)
        call()
        ends.append(time.perf_counter())
        readings.append(ticks.copy())
    # Both clocks at the end of the first call and of the last.
    return readings, (ends[-1] - ends[0]) / float(readings[-1].max() - readings[0].max())


Variants = Mapping[str, str]
"""A variant by kernel; of others the one that the cost model chooses."""


def tuned(
    module: ir.Module,
    target: str | Target = "host",
    *,
    store: Store | None = None,
    clock: Clock = measure,
    progress: Callable[[str], None] = lambda text: None,
) -> tuple[ir.Module, TuningReport]:
    """A copy of a `qnn` module with attributes for the fastest variants of its kernels, and the measurements.

    Kernels of which `store` knows that are not measured again; what is measured is kept there. One thread is measured.
    Raises `CompileError` for a target that this machine cannot execute, and for a module that was lowered already; and
    what compiling raises.
    """
    if phase_of(module) not in (Phase.QNN, Phase.FUSED):
        raise lowered.error_at_module(module, f"module must be at phase qnn or fused, but is at {phase_of(module)}")
    chosen, _ = prepared(module, target, 1)
    network = _Network(lower(module, chosen, Phase.FUSED).module, chosen)
    found = _Tuning(network, tunings_of(store, chosen.name), clock, progress).run()
    copy = context.copy(module)
    variant_attributes.set_wanted_variants(copy, chosen, {one.kernel: one.chosen for one in found if one.gain})
    return copy, TuningReport(chosen.name, tuple(found))


@dataclass(frozen=True)
class _Network:
    """A network at phase `fused`, which is lowered again and again."""

    module: ir.Module
    target: Target

    def with_variants(self, variants: Variants) -> Lowered:
        """The network at phase `linalg`, clocked."""
        copy = context.copy(self.module)
        variant_attributes.set_wanted_variants(copy, self.target, variants)
        return lower(copy, self.target, Phase.LINALG, clocked=True)


@dataclass(frozen=True)
class _Tuning:
    network: _Network
    kept: Tunings | None
    clock: Clock
    progress: Callable[[str], None]

    def run(self) -> list[TunedKernel]:
        """Every kernel that has candidates, in the order of its first call."""
        calls = self.network.with_variants({}).calls
        kernels, names = tunables(calls), dict[str, str]()
        for call, name in zip(calls, kernel_names(calls), strict=True):
            names.setdefault(call.tunable.kernel if call.tunable else "", name)
        # Earlier measurements of the variants that still exist.
        found = {one.kernel: self.kept.get(one.kernel) for one in kernels} if self.kept else {}
        known = {
            one.kernel: kept
            for one in kernels
            if (kept := found.get(one.kernel))
            and [trial.variant for trial in kept.trials] == [one.own, *one.candidates]
        }
        fresh = [one for one in kernels if one.kernel not in known]
        if fresh:
            start = {name: one.chosen for name, one in known.items() if one.gain}
            known |= {one.kernel: one for one in self._measured(fresh, start)}
        return [replace(known[one.kernel], name=names[one.kernel]) for one in kernels]

    def _measured(self, kernels: Sequence[Tunable], start: Variants) -> list[TunedKernel]:
        forms = max(len(one.candidates) for one in kernels)
        self.progress(f"measuring {len(kernels)} kernels in up to {1 + forms} variants")
        first, *others = self._times(
            [start, *({**start, **candidates_number(kernels, number)} for number in range(forms))]
        )
        trials = {
            one.kernel: dict(zip(one.candidates, (of[one.kernel] for of in others), strict=False)) for one in kernels
        }
        best = {one.kernel: fastest(trials[one.kernel], first[one.kernel]) for one in kernels}
        again = self._confirmed(start, {name: variant for name, (variant, _) in best.items() if variant})
        found: list[TunedKernel] = []
        for one in kernels:
            times = {one.own: first[one.kernel], **trials[one.kernel]}.items()
            medians = tuple(Trial(name, statistics.median(map(float, own))) for name, own in times)
            variant, saved = best[one.kernel]
            # Of two measurements the one that claims less.
            saved = min(saved, again.get(one.kernel, 0.0))
            found.append(TunedKernel(one.kernel, medians, variant if saved else one.own, saved, was_kept=False))
            if self.kept:
                self.kept.put(found[-1])
        return found

    def _confirmed(self, start: Variants, best: Variants) -> dict[str, float]:
        """By kernel, the saving of the best variants in a second measurement."""
        if not best:
            return {}
        self.progress(f"measuring the {len(best)} best once more")
        model, chosen = self._times([start, {**start, **best}])
        return {name: gain(chosen[name], model[name]) for name in best}

    def _times(self, forms: Sequence[Variants]) -> list[dict[str, Times]]:
        """The times of the kernels of each form, all calls of a kernel together."""
        networks = [self.network.with_variants(variants) for variants in forms]
        times = self.clock([one.module for one in networks])
        return [_by_kernel(one.calls, own) for one, own in zip(networks, times, strict=True)]


def tunables(calls: Sequence[KernelCall]) -> list[Tunable]:
    """Each kernel that has candidates once."""
    found = {call.tunable.kernel: call.tunable for call in calls if call.tunable and call.tunable.candidates}
    return list(found.values())


def candidates_number(kernels: Sequence[Tunable], number: int) -> dict[str, str]:
    """The candidate number `number` of each kernel that has it."""
    return {one.kernel: one.candidates[number] for one in kernels if number < len(one.candidates)}


def _by_kernel(calls: Sequence[KernelCall], times: NDArray[np.float64]) -> dict[str, Times]:
    names = [call.tunable.kernel if call.tunable else "" for call in calls]
    if times.ndim != 2 or times.shape[1] != len(names):
        raise CompileError(f"clock must give a time for each of {len(names)} calls, but gave {times.shape}")
    return {name: times[:, [own == name for own in names]].sum(axis=1) for name in dict.fromkeys(names)}


# Which variant of a kernel is taken: one that is faster than the cost model's choice by more than noise, or none.
#
# With t_i and m_i the times of a variant and of the model's choice in round i, which follow each other at once, what
# changes from round to round is in both, and not in the ratios r_i = t_i / m_i.  A variant saves
#
#   g = 1 - median(r)
#
# and is taken where g is more than `MARGIN` and more than the distance between the quartiles of r, the noise.

MARGIN = 0.02
"""The least saving of a chosen variant, as a share of the time."""

Times = NDArray[np.floating[Any]]
"""Seconds of a kernel, round by round."""


def gain(own: Times, model: Times) -> float:
    """The share of the time that a variant saves; 0 where that is no more than noise."""
    if not model.all():
        # The clock does not see it.
        return 0.0
    low, middle, high = np.quantile(own / model, (0.25, 0.5, 0.75))
    saved = float(1 - middle)
    return saved if saved > max(MARGIN, float(high - low)) else 0.0


def fastest(variants: Mapping[str, Times], model: Times) -> tuple[str, float]:
    """The variant that saves most, and how much; an empty name and 0 where the model's choice stays."""
    gains = {name: gain(own, model) for name, own in variants.items()}
    best = max(gains, key=lambda name: gains[name], default="")
    return (best, gains[best]) if best and gains[best] else ("", 0.0)


# Measurements of kernels in the cache: an entry for each kernel, target, machine and version.

_KIND, _SECTION = "tuning", "measured"


@dataclass(frozen=True)
class Tunings:
    """The decisions of a store for one target."""

    store: Store
    target: str
    mark: bytes
    """The digest of everything else that they depend on, by `fingerprint`."""

    def get(self, kernel: str) -> TunedKernel | None:
        """The measurements of `kernel`; None if there are none, or if `put` did not write them."""
        sections = self.store.get(self._key(kernel))
        if not sections or _SECTION not in sections:
            return None
        try:
            return _read(kernel, json.loads(bytes(sections[_SECTION])))
        except (KeyError, TypeError, ValueError, AttributeError):
            return None

    def put(self, found: TunedKernel) -> None:
        seconds = {trial.variant: trial.seconds for trial in found.trials}
        tree = {"seconds": seconds, "chosen": found.chosen, "gain": found.gain}
        self.store.put(self._key(found.kernel), {_SECTION: json.dumps(tree).encode()})

    def _key(self, kernel: str) -> str:
        return key(_KIND, kernel, self.target, self.mark)


def tunings_of(store: Store | None, target: str) -> Tunings | None:
    """The decisions for `target`; None without a store, and where it is not known what they would depend on."""
    mark = fingerprint() if store is not None else None
    return Tunings(store, target, mark) if store is not None and mark is not None else None


def _read(kernel: str, tree: Mapping[str, Any]) -> TunedKernel:
    """The decision: the seconds of each variant, the cost model's choice first; the chosen variant, and its gain."""
    trials = tuple(Trial(str(name), float(value)) for name, value in tree["seconds"].items())
    chosen = str(tree["chosen"])
    if not any(trial.variant == chosen for trial in trials):
        raise ValueError(f"chosen must be one of {', '.join(tree['seconds'])}, but got '{chosen}'")
    return TunedKernel(kernel, trials, chosen, float(tree["gain"]), was_kept=True)
