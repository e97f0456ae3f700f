"""The profile of a network as a table: a row for each kernel call, and one for all."""

from __future__ import annotations

from qdialect.cli import table
from qdialect.runtime.profile import CallProfile, Profile

_HEADER = (
    *("#", "kernel", "op", "time us", "of call", "MMAC", "GMAC/s", "of peak", "of bound", "cycles", "predicted"),
    *("bytes", "GB/s", "nodes"),
)
_NUMBERS = (0, 1, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12)
_NONE = "-"


def profile_table(profile: Profile) -> str:
    """The table, and lines that say what its columns are."""
    rows = [_row(number, one, profile) for number, one in enumerate(profile.calls)]
    lines = [table.render(_HEADER, [*rows, _total(profile)], right=_NUMBERS)]
    lines.append(
        f"time: middle half of {profile.repetitions} calls, in place; bytes: read and written, constants included"
    )
    if profile.peak is not None:
        lines.append(f"peak: the bare {profile.loop} loop's {profile.peak * 1e-9:.4g} GMAC/s, measured in between")
    for loop, rate in profile.other_loops.items():
        lines.append(f"peak of kernels that multiply by {loop}: that bare loop's {rate * 1e-9:.4g} GMAC/s")
    if profile.bound is not None:
        lines.append(
            "bound: what the instructions need at least on the core's busiest port, at the clock of bare dot products"
        )
    if profile.model_error is not None:
        median, weighted = (100 * share for share in (profile.model_error.median, profile.model_error.weighted))
        lines.append(
            f"predicted: the cost model's cycles, off by {median:.1f} % (median of the calls), "
            f"{weighted:.1f} % (weighted by time)"
        )
    return "\n".join(lines)


def _row(number: int, one: CallProfile, profile: Profile) -> tuple[str, ...]:
    call = one.call
    cycles = _cycles(one.seconds, one.predicted, profile.frequency)
    figures = _figures(one.seconds, profile.seconds, call.macs, call.bytes_moved, one.peak, one.bound, cycles)
    return f"{number}", f"{call.kernel}", call.label, *figures, ", ".join(call.names)


def _total(profile: Profile) -> tuple[str, ...]:
    known = [one.predicted for one in profile.calls if one.predicted is not None]
    cycles = _cycles(profile.seconds, sum(known) if known else None, profile.frequency)
    moved, peak, bound = profile.bytes_moved, profile.peak, profile.bound
    figures = _figures(profile.seconds, profile.seconds, profile.macs, moved, peak, bound, cycles)
    return "", "", "total", *figures, ""


def _cycles(seconds: float, predicted: float | None, frequency: float | None) -> tuple[str, str]:
    """Those that a call takes, and those that are predicted."""
    if frequency is None or predicted is None:
        return _NONE, _NONE
    return f"{seconds * frequency:.0f}", f"{predicted * frequency:.0f}"


def _figures(
    seconds: float,
    whole: float,
    macs: int,
    moved: int,
    peak: float | None,
    bound: float | None,
    cycles: tuple[str, str],
) -> tuple[str, ...]:
    """The numbers of a row; a kernel call that the clock does not see has no rates."""
    rate, bandwidth = (macs / seconds, moved / seconds) if seconds else (0.0, 0.0)
    return (
        f"{seconds * 1e6:.2f}",
        f"{100 * seconds / whole:.1f} %" if whole else _NONE,
        f"{macs * 1e-6:.3f}" if macs else _NONE,
        f"{rate * 1e-9:.1f}" if macs and seconds else _NONE,
        f"{100 * rate / peak:.1f} %" if macs and seconds and peak else _NONE,
        f"{100 * bound / seconds:.1f} %" if bound is not None and seconds else _NONE,
        *cycles,
        f"{moved}",
        f"{bandwidth * 1e-9:.1f}" if seconds else _NONE,
    )
