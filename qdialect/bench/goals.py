"""Goals for the speed of compiled networks, and whether a run meets them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from qdialect.bench.engines import OURS
from qdialect.bench.results import Measurement, Results, Row
from qdialect.bench.sources import SMALLEST_CALL as CALL

SHARES: Mapping[str, Mapping[str, float]] = {
    "vpdpbusd": {
        "W1": 0.94,
        "W2": 0.92,
        "W3": 0.92,
        "W4": 0.97,
        "W5": 0.90,
        "W7b": 0.95,
        "W4x8": 0.97,
        "resnet18": 0.95,
        "T1": 0.60,
    },
    # Sums go through memory to the epilogue, and a product of tiles is eight times as fast.
    "tdpbusd": dict.fromkeys(("W1", "W2", "W4", "W5", "W7b"), 0.75),
}
"""Share of the peak, at least, by the bare instruction whose rate that is."""

TIMES = {"W6": 8e-6, "W7a": 23e-6, "W6x32": 250e-6, "mobilenet_v1_025": 360e-6}
"""Seconds of a call, at most."""

AHEAD = 1.25
"""The fastest engine's time on a real network or a transformer over ours, at least."""
LEADS = {"T2": 1.5, **dict.fromkeys(("T5_prefill", "T5_prefill512", "T6_prefill"), 1.0)}
"""The same where it is another number. Of first tokens with f32 rows it is 1: there the fastest engine has 83 to 85 %
of the 133 GMAC/s of bare multiply-adds of floats, on one core of a Zen 5.
"""
LAYERS_AHEAD = {"tdpbusd": 1.0}
"""The same of a layer, by the instruction of the peak; if this CPU lacks it, shares of the peak are compared."""
_AHEAD_KINDS = ("transformer", "model")

SCALING = 1.85
"""One thread's time over two threads', at least, where one takes longer than `SCALED_FROM` seconds."""
SCALED_FROM = 1e-3
READ = 0.9
"""Or else the share of what two cores read together from DRAM, for a network whose weights no cache holds."""

CALL_SECONDS = 2e-6
"""The smallest call, at most."""

COMPILED = "mobilenet_v1_025"
COMPILE_SECONDS = 3.0
COMPILE_BYTES = 1 << 30
"""Limits for compiling that network for the first time."""

ARENA = 1.1
"""Working memory over what lives at once, at most."""

WEIGHTS = 1.15
"""Packed weights over the model's, at most."""


@dataclass(frozen=True)
class Verdict:
    """A goal and the measurement."""

    what: str
    goal: str
    figure: str
    best_peer: str
    """The best of the other engines, if it is comparable."""
    is_met: bool


def judge(results: Results) -> list[Verdict]:
    """Every goal that the run has a figure for."""
    judges = (_shares, _times, _ahead, _scaling, _call, _compilation, _memory)
    return [verdict for one in judges for verdict in one(results)]


def _shares(results: Results) -> Iterator[Verdict]:
    for name, minimum in SHARES.get(results.loop, {}).items():
        measurement = results.find(name)
        ours = measurement and measurement.best(OURS, exact=False)
        share = measurement.share(ours) if measurement and ours else None
        if measurement and share is not None:
            goal = f"at least {_percent(minimum)} of bare {results.loop}"
            figure = _percent(share) + ("" if ours and ours.is_exact else ", inexact")
            peers = _peers(measurement, lambda one, row: _percent(one.share(row) or 0))
            yield Verdict(name, goal, figure, peers, share >= minimum)


def _times(results: Results) -> Iterator[Verdict]:
    for name, maximum in TIMES.items():
        yield from _at_most(name, results.find(name), maximum, exact=False)


def _at_most(what: str, measurement: Measurement | None, maximum: float, *, exact: bool) -> Iterator[Verdict]:
    ours = measurement and measurement.best(OURS, exact=exact)
    if measurement and ours:
        peer = measurement.fastest_peer(OURS, exact=exact)
        best = f"{duration(peer.seconds)} ({peer.engine})" if peer else ""
        yield Verdict(what, f"at most {duration(maximum)}", duration(ours.seconds), best, ours.seconds <= maximum)


def _ahead(results: Results) -> Iterator[Verdict]:
    for measurement in results.measurements:
        ours = measurement.best(OURS, exact=False)
        # Rows rounded to 8 bits are another function than float ones.
        is_same = measurement.kind == "transformer"
        peer = measurement.fastest_peer(OURS, exact=is_same)
        minimum = _lead(measurement, results.loop)
        if minimum and measurement.threads == 1 and ours and peer:
            ratio = peer.seconds / ours.seconds
            best = _peers(measurement, lambda _, row: duration(row.seconds))
            engine = "engine that computes the same" if is_same else "engine"
            goal = f"{minimum:g} times as fast as every {engine}" if minimum > 1 else f"as fast as every {engine}"
            yield Verdict(measurement.name, goal, f"{ratio:.2f} times", best, ratio >= minimum)


def _lead(measurement: Measurement, loop: str) -> float:
    """The fastest engine's time over ours, at least; 0 where there is no such goal."""
    if measurement.kind == "layer":
        return LAYERS_AHEAD.get(loop, 0.0)
    return LEADS.get(measurement.name, AHEAD) if measurement.kind in _AHEAD_KINDS else 0.0


def _scaling(results: Results) -> Iterator[Verdict]:
    for measurement in results.measurements:
        two = results.find(measurement.name, 2)
        if measurement.threads != 1 or measurement.kind not in ("network", *_AHEAD_KINDS) or two is None:
            continue
        first, second = measurement.best(OURS, exact=False), two.best(OURS, exact=False)
        if first and second and first.seconds > SCALED_FROM:
            ratio, read = first.seconds / second.seconds, _share_of_memory(results, two, second)
            goal, figure = f"{SCALING:g} times as fast on two threads", f"{ratio:.2f} times"
            if read:
                goal += f", or {_percent(READ)} of what both cores read from DRAM"
                figure += f", {_percent(read)}"
            yield Verdict(measurement.name, goal, figure, "", ratio >= SCALING or read >= READ)


def _share_of_memory(results: Results, measurement: Measurement, row: Row) -> float:
    """Bytes a second over the rate at which the cores read DRAM together; 0 where a cache may hold them."""
    rate = results.limits.get(f"DRAM, {measurement.threads} cores together", 0.0)
    cache = results.machine.get("L3 cache", "")
    is_held = not cache.endswith("K") or measurement.bytes_moved <= int(cache[:-1]) << 10
    return 0.0 if is_held or not rate else measurement.bytes_moved / row.seconds / rate


def _call(results: Results) -> Iterator[Verdict]:
    return _at_most("smallest call", results.find(CALL), CALL_SECONDS, exact=True)


def _compilation(results: Results) -> Iterator[Verdict]:
    for one in results.footprints:
        if one.name == COMPILED:
            met = one.seconds <= COMPILE_SECONDS and one.process < COMPILE_BYTES
            goal = f"at most {COMPILE_SECONDS:g} s, less than 1 GiB"
            figure = f"{one.seconds:.2f} s, {one.process / 2**20:.0f} MiB"
            yield Verdict(f"compiling {one.name}", goal, figure, "", met)


def _memory(results: Results) -> Iterator[Verdict]:
    for one in results.footprints:
        parts = (
            ("working memory", "what lives at once", one.arena, one.live, ARENA),
            ("packed weights", "the model's", one.packed, one.eight_bit, WEIGHTS),
        )
        for what, over, size, minimum, maximum in parts:
            if minimum:
                goal = f"{what} at most {maximum:g} times {over}"
                yield Verdict(
                    f"memory of {one.name}", goal, f"{size / minimum:.2f} times", "", size <= maximum * minimum
                )


def _peers(measurement: Measurement, figure: Callable[[Measurement, Row], str]) -> str:
    """The fastest exact engine, and the fastest one if it is another."""
    exact = measurement.fastest_peer(OURS)
    fastest = measurement.fastest_peer(OURS, exact=False)
    texts = [
        f"{figure(measurement, peer)} ({peer.engine}{'' if peer.is_exact else ', inexact'})"
        for peer in dict.fromkeys((exact, fastest))
        if peer
    ]
    return "; ".join(texts)


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %"


def duration(seconds: float) -> str:
    """A time with a unit that suits it."""
    if seconds < 1e-3:
        return f"{seconds * 1e6:.4g} us"
    return f"{seconds * 1e3:.4g} ms" if seconds < 1 else f"{seconds:.4g} s"
