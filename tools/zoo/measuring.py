"""One model beside its framework: compiled, run, compared, and both held against the truth."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

import qdialect
from qdialect.bench import frameworks, truth
from qdialect.bench.frameworks import Array, Runner
from qdialect.support.diagnostics import QDialectError
from qdialect.support.interface import Port
from tools.zoo import units
from tools.zoo.agreement import difference, distance
from tools.zoo.flows.samples import Sample
from tools.zoo.results import Result, Status
from tools.zoo.verdict import is_further

_LONGEST_NOTE = 400

Outputs = list[list[Array]]


def measured(start: Result, path: Path, samples: Sequence[Sample]) -> Result:
    """`start` with all but the times of the model at `path`; other engines' failures become notes.

    The compile cache keeps the network for those who time it.
    """
    # The time of the process: others may compute on the machine.
    begin = time.process_time()
    try:
        executable = qdialect.compile(path, profile=frameworks.PROFILES.get(path.suffix, ""), fallback="framework")
    except QDialectError as error:
        return _refused(start, path, error)
    found = _described(replace(start, compile_seconds=time.process_time() - begin), executable)
    inputs = [fitting(sample, executable.inputs) for sample in samples]
    try:
        outputs = [as_list(executable(*one)) for one in inputs]
    # What a part raises that the framework runs is a fault of the file, if the framework raises it for the whole.
    except Exception:
        framework = frameworks.OWN[path.suffix]
        theirs, notes = _outputs_of(framework, lambda: frameworks.load(framework, str(path)), inputs)
        if theirs:
            raise
        return replace(found, status="not made", reasons=(*notes, *found.reasons))
    found = _with_units(_compared(found, path, inputs, outputs), path, inputs)
    return _explained(found, path, inputs, outputs)


def _refused(start: Result, path: Path, error: QDialectError) -> Result:
    """Nothing was made where the model's own framework refuses the file too; one that is absent refuses nothing."""
    reasons, framework = tuple(error.render().splitlines()), frameworks.OWN[path.suffix]
    try:
        frameworks.load(framework, str(path))
    except ImportError:
        return replace(start, status="refused", reasons=reasons)
    # Whatever a framework raises for a file is its reason.
    except Exception as refusal:
        reason = failure(framework, refusal).replace(str(path), path.name)
        return replace(start, status="not made", reasons=(reason, *reasons))
    return replace(start, status="refused", reasons=reasons)


def _described(start: Result, executable: qdialect.Executable) -> Result:
    left = [region for region in executable.regions if not region.is_compiled]
    status: Status = "fallback" if left else "native"
    reasons = tuple(f"{node}: {reason}" for region in left for node, reason in region.reasons.items())
    total = sum(region.products for region in executable.regions)
    compiled = sum(region.products for region in executable.regions if region.is_compiled)
    share = compiled / total if total else float(not left)
    return replace(start, status=status, reasons=reasons, native_share=share)


def fitting(sample: Sample, ports: Sequence[Port]) -> Sample:
    """A sample of f32 numbers as the network takes it: quantized where an input is an integer with a scale."""
    return tuple(_fitting(array, port) for array, port in zip(sample, ports, strict=True))


def _fitting(array: Array, port: Port) -> Array:
    if array.dtype == port.dtype or port.scale is None:
        return array
    bounds = np.iinfo(port.dtype.name)
    rounded = np.rint(array / port.scale) + (port.zero_point or 0)
    return np.clip(rounded, bounds.min, bounds.max).astype(port.dtype)


def as_list(found: Array | tuple[Array, ...]) -> list[Array]:
    """The outputs of a call of an executable."""
    return list(found) if isinstance(found, tuple) else [found]


def _compared(start: Result, path: Path, inputs: Sequence[Sample], outputs: Outputs) -> Result:
    framework = frameworks.OWN[path.suffix]
    theirs, notes = _outputs_of(framework, lambda: frameworks.load(framework, str(path)), inputs)
    exact, more = _outputs_of("truth", lambda: truth.load(str(path), path.suffix), inputs)
    plain, others = _outputs_of("without optimizations", lambda: frameworks.load_plain(str(path), path.suffix), inputs)
    return replace(
        start,
        notes=(*start.notes, *notes, *more, *others),
        difference=difference(outputs, theirs) if theirs else None,
        ours=distance(outputs, exact) if exact else None,
        framework=distance(theirs, exact) if theirs and exact else None,
        plain=distance(plain, exact) if plain and exact else None,
    )


def _with_units(start: Result, path: Path, inputs: Sequence[Sample]) -> Result:
    try:
        found = units.measured_units(path, inputs)
    # Whatever a framework raises for a part of a model is told in the report.
    except Exception as error:
        return replace(start, notes=(*start.notes, failure("units", error)))
    return replace(
        start,
        integer_units=found.integer,
        float_units=found.floating,
        our_units=found.ours,
        framework_units=found.framework,
        causes=found.causes,
    )


def _explained(start: Result, path: Path, inputs: Sequence[Sample], outputs: Outputs) -> Result:
    """With what makes our results differ from the truth, where they are further from it than the framework's."""
    if not is_further(start):
        return start
    try:
        return replace(start, flipped=units.flipped_ties(path, inputs, outputs))
    # As above.
    except Exception as error:
        return replace(start, notes=(*start.notes, failure("ties", error)))


def _outputs_of(
    name: str, load: Callable[[], Runner | None], inputs: Sequence[Sample]
) -> tuple[Outputs, tuple[str, ...]]:
    """The outputs of each sample, or none and the reason, if there is one."""
    try:
        runner = load()
        return ([runner(one) for one in inputs] if runner else []), ()
    # Whatever a framework raises is told in the report.
    except Exception as error:
        return [], (failure(name, error),)


def failure(name: str, error: Exception) -> str:
    """One line about what `name` raised."""
    text = " ".join(str(error).split())
    return f"{name}: {type(error).__name__}: {text[:_LONGEST_NOTE]}"
