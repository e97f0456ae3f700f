"""What ``qdialect-run`` measures and compares: all that needs MLIR when a network was compiled before."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from qdialect._mlir import ir
from qdialect.cli import profile_chart, terminal
from qdialect.cli.import_arguments import import_options
from qdialect.cli.profile_table import profile_table
from qdialect.cli.run_arguments import Arguments
from qdialect.cli.target_arguments import target_name
from qdialect.diagnostics import InputError, printable
from qdialect.lowering.lowered import phase_of
from qdialect.lowering.phase import Phase
from qdialect.model_files import read_model
from qdialect.reference import interpreter
from qdialect.runtime import Executable, workload
from qdialect.runtime.batched import BatchedExecutable
from qdialect.runtime.comparison import differing
from qdialect.runtime.profile import profile_ops

Array = NDArray[Any]


class Reports:
    """What is told of a network beside its results; its module is read where that needs it."""

    def __init__(self, options: Arguments, executable: Executable) -> None:
        """Raises `InputError` where the reference is asked for and does not run the module."""
        self._options, self._executable = options, executable
        if options.reference:
            _check_reference(self._module)

    @cached_property
    def _module(self) -> ir.Module:
        return read_model(self._options.model, import_options(self._options))

    def print_speed(self, inputs: Sequence[Array]) -> None:
        """Measure calls and print their time and rate."""
        executable = self._executable
        entries = executable.batch_of(inputs) if isinstance(executable, BatchedExecutable) else 1
        macs = entries * sum(region.products for region in executable.regions)
        speed = workload.measure(executable, inputs, target=target_name(self._options))
        print(f"\n{speed.seconds * 1e3:.4g} ms a call (median), {macs / 1e6:.4g} million multiply-accumulates", end="")
        print(f": {speed.rate(macs) * 1e-9:.4g} GMAC/s")
        share = speed.share(macs)
        if speed.peak is not None and share is not None:
            bare = f"the bare {speed.loop} loop's {speed.peak * 1e-9:.4g} GMAC/s"
            print(f"{100 * share:.1f} % of {bare}, measured in between")

    def profile(self, inputs: Sequence[Array]) -> None:
        """Measure every kernel call, and print a table and draw the chart that is asked for."""
        found = profile_ops(self._module, inputs, target=target_name(self._options))
        print(f"\n{profile_table(found)}")
        path = self._options.profile_chart
        if path is not None:
            content = profile_chart.file_content(found, path, Path(self._options.model).name)
            terminal.write_file(path, content.encode(errors="replace"))
            print(f"wrote {path}")

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


def _check_reference(module: ir.Module) -> None:
    phase = phase_of(module)
    if phase is not Phase.QNN:
        raise InputError(f"module must be at phase qnn or fused to be run by the reference, but is at {phase}")
