"""A model file whose open extents change from call to call: compiled once for all that are proven to be computed alike.

The steps of a decoder have a cache that grows: past and total lengths have one entry more in each step.  A network for
a power of two of them computes all that are smaller, and the next one is compiled before it is needed.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from itertools import permutations, product
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from qdialect.runtime.base import Executable
from qdialect.runtime.memory import CallLock
from qdialect.runtime.shaped import Lengths, PaddedNetwork, Padding, Ranges, best, given_extents, named_extents
from qdialect.support.diagnostics import CompileError, QDialectError
from qdialect.support.late_imports import LATE_IMPORTS
from qdialect.support.limits import active_jobs, using_jobs
from qdialect.support.log import LOG
from qdialect.support.options import CompileOptions

if TYPE_CHECKING:
    from qdialect.cache.store import Store
    from qdialect.frontends.model_files import OpenShapes
    from qdialect.ir._mlir import ir

Extents = Mapping[str, int]
Varying = frozenset[str]

_SMALLEST = 256
"""Entries of the smallest network: attention to fewer costs little, and the next one takes seconds to compile."""
_CANDIDATES = 2
_MORE_WORK = {1: 1.25, 2: 2.0}
"""How much more a network may compute than one without padding, where one extent varies alone, and where sums do too.

A decoder is called with other lengths each time.
"""
_FREE_WORK = 1 << 20
"""Products and elements that take no time worth mentioning."""
_FAILURES = 2
"""Of networks in which the same extents vary; then no other is tried."""


def lengths_of(path: Path, options: CompileOptions, declared: OpenShapes, store: Store | None) -> Lengths:
    """Networks of a file for several extents each, compiled with as many jobs as now; none where all is known."""
    return PaddedLengths(path, options, declared, store) if any(declared.values()) else Lengths()


class PaddedLengths(Lengths):
    """Compiles networks for several extents each; threads may share it."""

    def __init__(self, path: Path, options: CompileOptions, declared: OpenShapes, store: Store | None) -> None:
        super().__init__()
        self._path, self._options, self._store, self._jobs = path, options, store, active_jobs()
        self._ranges: Ranges = named_extents(declared, options.ranges)
        importing = options.importing
        # The extents that the model is compiled for anyway, if that is known.
        self._first: Extents = given_extents(declared, importing.dims, importing.batch) or {}
        firsts = {name: shape[0] for name, shape in declared.items() if shape}
        # They do not vary.
        self._batches: Varying = frozenset(
            key for name, own in firsts.items() if isinstance(own, str) for key in (f"{name}:0", own)
        )
        self._seen: list[Extents] = []
        self._tried: set[tuple[Varying, str]] = set()
        self._failures: Counter[Varying] = Counter()
        self._thread: threading.Thread | None = None
        self._lock = CallLock()

    def prepare(self) -> Executable | None:
        """Compile for the ranges; gives the network of the first extents if it computes all, else None."""
        ranges = {name: ends for name, ends in self._ranges.items() if ends[1] > ends[0]}
        if not ranges or not ranges.keys() <= self._first.keys():
            return None
        widths = {name: high - low for name, (low, high) in ranges.items()}
        if len(ranges) > 1 and len(set(widths.values())) == 1:
            self._try(self._first, frozenset(ranges))
        for (name, other), totals in self._totals([self._first]).items():
            if ranges.keys() == {name, other, *totals}:
                least = ranges[other][0]
                sums = dict.fromkeys(totals, self._first[name] + least)
                self._try({**self._first, other: least, **sums}, totals | {name})
        found = best(self.networks, self._first)
        return found.executable(self._first) if found else None

    def missing(self) -> Extents | None:
        """The least extents of the ranges, where networks compute more of the ranges but not these."""
        least = {**self._first, **{name: low for name, (low, _) in self._ranges.items() if name in self._first}}
        return least if self.networks and best(self.networks, least) is None else None

    def executable(self, extents: Extents, first: Extents) -> Executable | None:
        """The network of these extents, in the code of larger ones; None where that is not proven to compute the same.

        Nothing is compiled for more than the ranges of the options.
        """
        found = best(self.networks, extents)
        if found is None:
            with self._lock.lock:
                found = self._made(extents, [*self._seen, first])
                self._seen = [*self._seen[-_CANDIDATES:], extents]
        if found is None:
            return None
        self._prepare_next(found, extents)
        return found.executable(extents)

    def _made(self, extents: Extents, others: Sequence[Extents]) -> PaddedNetwork | None:
        if self._thread is not None:
            # It may compile what is missing.
            self._thread.join()
        found = best(self.networks, extents)
        for varying in () if found else self._candidates(extents, others):
            for least in (_SMALLEST, 1):
                self._try(self._largest(extents, varying, least), varying, extents)
                found = found or best(self.networks, extents)
            if found is not None:
                break
        return found

    def _candidates(self, extents: Extents, others: Sequence[Extents]) -> list[Varying]:
        """Which extents may vary together: those that do between this call and another, and one with its sums."""
        found = [*self._changed(extents, others), *self._sums(extents, others)]
        return [one for one in dict.fromkeys(found) if self._may_vary(one, extents)][:_CANDIDATES]

    def _may_vary(self, varying: Varying, extents: Extents) -> bool:
        return varying.isdisjoint(self._batches) and all(extents[name] for name in varying)

    def _changed(self, extents: Extents, others: Sequence[Extents]) -> Iterator[Varying]:
        for seen in others:
            changes = {name: extents[name] - own for name, own in seen.items() if extents[name] != own}
            if len(set(changes.values())) == 1:
                yield frozenset(changes)

    def _sums(self, extents: Extents, others: Sequence[Extents]) -> Iterator[Varying]:
        found = self._totals([*others, extents])
        sums = frozenset[str]().union(*found.values())
        for name, other in sorted(found, key=lambda pair: -extents[pair[0]]):
            if name not in sums:
                yield found[name, other] | {name}

    def _totals(self, calls: Sequence[Extents]) -> Mapping[tuple[str, str], Varying]:
        """Which extents are the sum of two others in all `calls`, by the names of these, in both orders."""
        found: dict[tuple[str, str], Varying] = {}
        for name, other in permutations(calls[0], 2):
            rest = [one for one in calls[0] if one not in (name, other)]
            totals = [one for one in rest if all(call[one] == call[name] + call[other] for call in calls)]
            if totals:
                found[name, other] = frozenset(totals)
        return found

    def _largest(self, extents: Extents, varying: Varying, smallest: int = _SMALLEST) -> Extents:
        """The extents of a network for these ones: the least of them is a power of two, within the ranges."""
        least = min(extents[name] for name in varying)
        more = max(smallest, 1 << least.bit_length()) - least
        ranges = self._ranges
        more = min([more, *(ranges[name][1] - extents[name] for name in varying if name in ranges)])
        return {name: extent + more * (name in varying) for name, extent in extents.items()}

    def _prepare_next(self, network: PaddedNetwork, extents: Extents) -> None:
        """Compile the next larger network in a thread, long before this one is full."""
        varying = network.varying
        least, most = (min(one[name] for name in varying) for one in (extents, network.extents))
        if least <= most // 4 or (self._thread is not None and self._thread.is_alive()):
            return
        wanted = self._largest({n: own + (n in varying) for n, own in network.extents.items()}, varying)
        ranges = self._ranges
        is_allowed = all(wanted[name] <= ranges[name][1] for name in varying if name in ranges)
        if is_allowed and not self._was_tried(wanted, varying):
            self._thread = threading.Thread(target=self._try, args=(wanted, varying, None, 1), name="qdialect lengths")
            self._thread.start()

    def _was_tried(self, largest: Extents, varying: Varying) -> bool:
        return (varying, repr(largest)) in self._tried or self._failures[varying] >= _FAILURES

    def _try(self, largest: Extents, varying: Varying, wanted: Extents | None = None, jobs: int | None = None) -> None:
        """Compile a network for these extents and smaller ones, if that is proven and `wanted` is among them."""
        if self._was_tried(largest, varying) or (wanted and best(self.networks, wanted)):
            return
        self._tried.add((varying, repr(largest)))
        try:
            with using_jobs(jobs or self._jobs):
                made = self._compiled(largest, varying, wanted)
        except QDialectError as error:
            names = " and ".join(sorted(varying))
            self._failures[varying] += 1
            LOG.info("'%s' is not compiled for all extents of %s: %s", self._path.name, names, error.message)
            return
        if made is None:
            return
        # Networks have their own constants: one that computes all that another does takes its place.
        kept = [one for one in self.networks if one.varying != varying or made.count(one.extents) is None]
        self.networks = [*kept, made]
        LOG.info("'%s' is compiled for extents up to %s", self._path.name, dict(largest))

    def _compiled(self, largest: Extents, varying: Varying, wanted: Extents | None) -> PaddedNetwork | None:
        """The network; None where it would compute too much for `wanted`, which else does not matter."""
        with LATE_IMPORTS:
            from qdialect.driver.padding.network import compared, padded, work_of
            from qdialect.driver.padding.rules import Side

        least = min(largest[name] for name in varying)
        # Exporters compare extents with limits: what depends on an extent then differs at a half or at an end.
        half = least // 2
        if not half:
            raise CompileError("there is no smaller network")

        @cache
        def read(count: int) -> ir.Module:
            return self._read(largest, varying, count)

        module, sides, problems = read(0), list[Side](), list[str]()
        for side in Side:
            try:
                compared(module, [read(half)], side)
                sides.append(side)
            except QDialectError as error:
                problems.append(error.message)
        for lowest, side in product((1, 2), sides):
            counts = sorted({half, least - lowest}, reverse=True)
            try:
                smaller = [read(count) for count in counts]
                inputs, outputs = padded(module, smaller, side)
            except QDialectError as error:
                problems.append(error.message)
                continue
            work = {0: work_of(module), **{count: work_of(one) for count, one in zip(counts, smaller, strict=True)}}
            # Only `module` is needed from here on, and each holds all constants.
            del smaller
            read.cache_clear()
            most = counts[0] if wanted is None else _most_padding(work, _MORE_WORK[min(len(varying), 2)])
            if wanted is not None and next(iter(largest[name] - wanted[name] for name in varying)) > most:
                return None
            padding = Padding(tuple(inputs), tuple(outputs), side is Side.FRONT)
            return PaddedNetwork(self._code(module), padding, largest, varying, most)
        raise CompileError(f"no side may have padding: {'; '.join(dict.fromkeys(problems))}")

    def _code(self, module: ir.Module) -> Executable:
        with LATE_IMPORTS:
            from qdialect.driver.fallback import compile_tuned
            from qdialect.frontends.model_files import is_float32

        code = compile_tuned(module, self._options, self._store, is_verified=True)
        code.is_float32 = is_float32(module)
        return code

    def _read(self, largest: Extents, varying: Varying, count: int) -> ir.Module:
        """The module for `count` entries less."""
        with LATE_IMPORTS:
            from qdialect.frontends.model_files import format_of
            from qdialect.lowering.ir.lowered import refuse_states
            from qdialect.lowering.qnn_to_linalg.to_linalg import main_function

        extents = {name: extent - count * (name in varying) for name, extent in largest.items()}
        module = format_of(self._path).read(self._path, replace(self._options.importing, batch=1, dims=extents))
        refuse_states(module, main_function(module))
        return module


def _most_padding(work: Mapping[int, int], factor: float) -> int:
    """The entries of padding with which a network computes at most `factor` times what one without does.

    `work` is by entries of padding: a polynomial, as scores have rows and columns.
    """
    counts = np.arange(max(work) + 1)
    needed = np.polyval(np.polyfit(list(work), list(work.values()), len(work) - 1), counts)
    return int(counts[work[0] <= factor * needed + _FREE_WORK].max())
