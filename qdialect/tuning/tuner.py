"""From a network to the same network with the fastest variant of each kernel.

All kernels are measured in place, in the network: its first form has what the cost model chooses, the next one the
first candidate of every kernel, and so on.  What is chosen is then measured once more against the model's choice, so
that a kernel that was fast by luck does not stay.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from qdialect import context
from qdialect._mlir import ir
from qdialect.cache.store import Store
from qdialect.cache.tunings import KeptTuning, Tunings, tunings_of
from qdialect.diagnostics import CompileError
from qdialect.interface import KernelCall, Tunable
from qdialect.lowering import lowered
from qdialect.lowering.lowered import Lowered, phase_of
from qdialect.lowering.phase import Phase
from qdialect.lowering.pipeline import lower
from qdialect.lowering.tiling import variant_notes
from qdialect.runtime.compiler import prepared
from qdialect.runtime.tuning_report import Trial, TunedKernel, TuningReport
from qdialect.target import Target
from qdialect.tuning.clock import Clock, measure
from qdialect.tuning.decision import Times, fastest, gain

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
    """A copy of a `qnn` module that says which variant of its kernels is fastest here, and what was measured.

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
    variant_notes.write(copy, chosen, {one.kernel: one.chosen for one in found if one.gain})
    return copy, TuningReport(chosen.name, tuple(found))


@dataclass(frozen=True)
class _Network:
    """A network at phase `fused`, which is lowered again and again."""

    module: ir.Module
    target: Target

    def with_variants(self, variants: Variants) -> Lowered:
        """The network at phase `linalg`, clocked."""
        copy = context.copy(self.module)
        variant_notes.write(copy, self.target, variants)
        return lower(copy, self.target, Phase.LINALG, clocked=True)


@dataclass(frozen=True)
class _Tuning:
    network: _Network
    kept: Tunings | None
    clock: Clock
    progress: Callable[[str], None]

    def run(self) -> list[TunedKernel]:
        """Every kernel that has candidates, in the order of its first call."""
        kernels = _tunables(self.network.with_variants({}).calls)
        known = self._known(kernels)
        fresh = [one for one in kernels if one.kernel not in known]
        if fresh:
            start = {name: one.chosen for name, one in known.items() if one.gain}
            known |= {one.kernel: one for one in self._measured(fresh, start)}
        return [known[one.kernel] for one in kernels]

    def _known(self, kernels: Sequence[Tunable]) -> dict[str, TunedKernel]:
        """What was measured before of the variants that there still are."""
        found = {one.kernel: self.kept.get(one.kernel) for one in kernels} if self.kept else {}
        return {
            one.kernel: _tuned_kernel(one.kernel, kept, was_kept=True)
            for one in kernels
            if (kept := found.get(one.kernel)) and tuple(kept.seconds) == (one.own, *one.candidates)
        }

    def _measured(self, kernels: Sequence[Tunable], start: Variants) -> list[TunedKernel]:
        forms = max(len(one.candidates) for one in kernels)
        self.progress(f"measuring {len(kernels)} kernels in up to {1 + forms} variants")
        first, *others = self._times([start, *({**start, **_candidates(kernels, number)} for number in range(forms))])
        trials = {
            one.kernel: dict(zip(one.candidates, (of[one.kernel] for of in others), strict=False)) for one in kernels
        }
        best = {one.kernel: fastest(trials[one.kernel], first[one.kernel]) for one in kernels}
        again = self._confirmed(start, {name: variant for name, (variant, _) in best.items() if variant})
        found: list[TunedKernel] = []
        for one in kernels:
            times = {one.own: first[one.kernel], **trials[one.kernel]}
            seconds = {name: statistics.median(map(float, own)) for name, own in times.items()}
            variant, saved = best[one.kernel]
            # Of two measurements the one that says less.
            saved = min(saved, again.get(one.kernel, 0.0))
            decision = KeptTuning(seconds, variant if saved else one.own, saved)
            found.append(_tuned_kernel(one.kernel, decision, was_kept=False))
            if self.kept:
                self.kept.put(one.kernel, decision)
        return found

    def _confirmed(self, start: Variants, best: Variants) -> dict[str, float]:
        """What the best variants save when they are measured once more, by kernel."""
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


def _tunables(calls: Sequence[KernelCall]) -> list[Tunable]:
    """Each kernel that has candidates once."""
    found = {call.tunable.kernel: call.tunable for call in calls if call.tunable and call.tunable.candidates}
    return list(found.values())


def _candidates(kernels: Sequence[Tunable], number: int) -> dict[str, str]:
    """The candidate of a number of each kernel that has as many."""
    return {one.kernel: one.candidates[number] for one in kernels if number < len(one.candidates)}


def _by_kernel(calls: Sequence[KernelCall], times: NDArray[np.float64]) -> dict[str, Times]:
    names = [call.tunable.kernel if call.tunable else "" for call in calls]
    if times.ndim != 2 or times.shape[1] != len(names):
        raise CompileError(f"clock must give a time for each of {len(names)} calls, but gave {times.shape}")
    return {name: times[:, [own == name for own in names]].sum(axis=1) for name in dict.fromkeys(names)}


def _tuned_kernel(kernel: str, kept: KeptTuning, *, was_kept: bool) -> TunedKernel:
    trials = tuple(Trial(name, seconds) for name, seconds in kept.seconds.items())
    return TunedKernel(kernel, trials, kept.chosen, kept.gain, was_kept)
