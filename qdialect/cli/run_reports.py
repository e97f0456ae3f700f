"""Measurements and comparisons of ``qdialect-run``, which need MLIR even if a network was compiled before."""

from __future__ import annotations

import time
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path

from qdialect.bench import throughput
from qdialect.bench.core_model.profile import CallProfile, Profile, profile_ops
from qdialect.bench.core_model.trace import trace, trace_library
from qdialect.cli import profile_chart, terminal
from qdialect.cli.arguments import import_options, target_name
from qdialect.cli.run_arguments import Arguments
from qdialect.frontends.model_files import read_model
from qdialect.ir._mlir import ir
from qdialect.lowering.ir.lowered import Phase, phase_of
from qdialect.reference import interpreter
from qdialect.runtime import Executable
from qdialect.runtime.batched import BatchedExecutable
from qdialect.runtime.comparison import differing
from qdialect.support.diagnostics import InputError, printable
from qdialect.support.interface import Array, kernel_names

_LEFT = 0.1
"""Share of a core from which on it is told that other programs had it."""

# The profile of a network as a table: a row for each kernel call, and one for all.

_HEADER = (
    *("#", "op", "time us", "of call", "MMAC", "GMAC/s", "of peak", "of bound", "cycles", "predicted"),
    *("bytes", "GB/s", "limit", "kernel", "nodes"),
)
_NUMBERS = (0, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11)
_NONE = "-"


def profile_table(profile: Profile) -> str:
    """The table, and lines that explain its columns."""
    names = kernel_names([one.call for one in profile.calls])
    rows = [_row(number, names[number], one, profile) for number, one in enumerate(profile.calls)]
    lines = [terminal.render_table(_HEADER, [*rows, _total(profile)], right=_NUMBERS)]
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
        lines.append("limit: by the cost model, the busiest port, latency between iterations, or memory behind L1")
    if profile.beyond_bound:
        lines.append(f"up to {100 * profile.beyond_bound:.1f} % faster than the bound, which is then the time itself")
    if profile.model_error is not None:
        median, weighted = (100 * share for share in (profile.model_error.median, profile.model_error.weighted))
        lines.append(
            f"predicted: the cost model's cycles, off by {median:.1f} % (median of the calls), "
            f"{weighted:.1f} % (weighted by time)"
        )
    return "\n".join(lines)


def _row(number: int, kernel: str, one: CallProfile, profile: Profile) -> tuple[str, ...]:
    call = one.call
    cycles = _cycles(one.seconds, one.predicted, profile.frequency)
    figures = _figures(one.seconds, profile.seconds, call.macs, call.bytes_moved, one.peak, one.bound, cycles)
    return f"{number}", call.label, *figures, one.limit or _NONE, kernel, ", ".join(call.names)


def _total(profile: Profile) -> tuple[str, ...]:
    known = [one.predicted for one in profile.calls if one.predicted is not None]
    cycles = _cycles(profile.seconds, sum(known) if known else None, profile.frequency)
    moved, peak, bound = profile.bytes_moved, profile.peak, profile.bound
    figures = _figures(profile.seconds, profile.seconds, profile.macs, moved, peak, bound, cycles)
    return "", "total", *figures, "", "", ""


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
        f"{100 * min(rate / peak, 1.0):.1f} %" if macs and seconds and peak else _NONE,
        f"{100 * min(bound / seconds, 1.0):.1f} %" if bound is not None and seconds else _NONE,
        *cycles,
        f"{moved}",
        f"{bandwidth * 1e-9:.1f}" if seconds else _NONE,
    )


class Reports:
    """Reports on a network in addition to its results; its module is read only if a report needs it."""

    def __init__(self, options: Arguments, executable: Executable) -> None:
        """Raises `InputError` where the reference is asked for and does not run the module."""
        self._options, self._executable = options, executable
        if options.reference:
            phase = phase_of(self._module)
            if phase is not Phase.QNN:
                raise InputError(f"module must be at phase qnn or fused to be run by the reference, but is at {phase}")

    @cached_property
    def _module(self) -> ir.Module:
        return read_model(self._options.model, import_options(self._options))

    def speed(self, inputs: Sequence[Array]) -> dict[str, object]:
        """Measure calls: seconds, multiply-accumulates and what the bare dot-product loop does of these in a second."""
        speed, macs = self._speed(inputs)
        return {"seconds": speed.seconds, "macs": macs, "peak": speed.peak, "loop": speed.loop}

    def _speed(self, inputs: Sequence[Array]) -> tuple[throughput.Speed, int]:
        executable = self._executable
        entries = executable.batch_of(inputs) if isinstance(executable, BatchedExecutable) else 1
        macs = entries * sum(region.products for region in executable.regions)
        return throughput.measure(executable, inputs, target=target_name(self._options)), macs

    def print_speed(self, inputs: Sequence[Array]) -> None:
        start, used = time.perf_counter(), time.process_time()
        speed, macs = self._speed(inputs)
        left = 1 - (time.process_time() - used) / (time.perf_counter() - start)
        print(f"\n{speed.seconds * 1e3:.4g} ms a call (median), {macs / 1e6:.4g} million multiply-accumulates", end="")
        print(f": {speed.rate(macs) * 1e-9:.4g} GMAC/s")
        share = speed.share(macs)
        if speed.peak is not None and share is not None:
            bare = f"the bare {speed.loop} loop's {speed.peak * 1e-9:.4g} GMAC/s"
            print(f"{100 * share:.1f} % of {bare}, measured in between")
        if left > _LEFT:
            print(f"other programs took {100 * left:.0f} % of the core meanwhile: alone, a call takes less")

    def profile(self, inputs: Sequence[Array]) -> None:
        """Measure every kernel call, and print a table and draw the chart that is asked for."""
        found = profile_ops(
            self._module, inputs, target=target_name(self._options), externals=dict(self._options.externals)
        )
        print(f"\n{profile_table(found)}")
        path = self._options.profile_chart
        if path is not None:
            content = profile_chart.file_content(found, path, Path(self._options.model).name)
            terminal.write_file(path, content.encode(errors="replace"))
            print(f"wrote {path}")

    def trace(self, inputs: Sequence[Array]) -> None:
        """Write the trace that is asked for."""
        path = self._options.trace or ""
        if self._options.is_library:
            found = trace_library(self._executable, inputs)
        else:
            found = trace(
                self._module,
                inputs,
                target=target_name(self._options),
                threads=self._options.threads,
                externals=dict(self._options.externals),
            )
        terminal.write_file(path, found.text(Path(self._options.model).name).encode(errors="replace"))
        print(f"wrote {path}: the call of median length of {found.repetitions}")

    def compare(self, inputs: Sequence[Array], outputs: Sequence[Array]) -> int:
        """Run the reference and print how many elements differ; the exit status."""
        expected = interpreter.run(self._module, inputs)
        total = 0
        print()
        for port, wanted, found in zip(self._executable.outputs, expected, outputs, strict=True):
            count = differing(wanted, found)
            print(f"{printable(port.name)}: {count} of {found.size} elements differ from the reference")
            total += count
        return 1 if total else 0
