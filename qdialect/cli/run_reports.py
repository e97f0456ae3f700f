"""Measurements and comparisons of ``qdialect-run``, which need MLIR even if a network was compiled before."""

from __future__ import annotations

import time
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path

from qdialect.bench import throughput
from qdialect.bench.core_model.profile import CallProfile, Profile, profile_ops, trace, trace_library
from qdialect.cli import terminal
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
from qdialect.support.interface import Array, KernelCall, kernel_names

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
    rows = [_row(f"{number}", names[number], one, profile) for number, one in enumerate(profile.calls)]
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


def _row(number: str, kernel: str, one: CallProfile, profile: Profile) -> tuple[str, ...]:
    """A kernel call that the clock does not see has no rates."""
    call, seconds = one.call, one.seconds
    cycles = (_NONE, _NONE)
    if profile.frequency is not None and one.predicted is not None:
        cycles = tuple(f"{time * profile.frequency:.0f}" for time in (seconds, one.predicted))
    return (
        *(number, call.label, f"{seconds * 1e6:.2f}"),
        f"{100 * seconds / profile.seconds:.1f} %" if profile.seconds else _NONE,
        f"{call.macs * 1e-6:.3f}" if call.macs else _NONE,
        f"{one.rate * 1e-9:.1f}" if call.macs and seconds else _NONE,
        *(_percent(share if seconds else None) for share in (one.share_of_peak, one.share_of_bound)),
        *(*cycles, f"{call.bytes_moved}"),
        f"{one.bandwidth * 1e-9:.1f}" if seconds else _NONE,
        *(one.limit or _NONE, kernel, ", ".join(call.names)),
    )


def _percent(share: float | None) -> str:
    return _NONE if share is None else f"{100 * share:.1f} %"


def _total(profile: Profile) -> tuple[str, ...]:
    known = [one.predicted for one in profile.calls if one.predicted is not None]
    call = KernelCall("total", 0, (), profile.macs, profile.bytes_moved)
    whole = CallProfile(call, profile.seconds, profile.peak, profile.bound, sum(known) if known else None)
    # It has no one limit.
    return (*_row("", "", whole, profile)[:-3], "", "", "")


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
        """Measure every kernel call, and print a table."""
        found = profile_ops(
            self._module, inputs, target=target_name(self._options), externals=dict(self._options.externals)
        )
        print(f"\n{profile_table(found)}")

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
