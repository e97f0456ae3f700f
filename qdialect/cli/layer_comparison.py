"""``qdialect-run --compare-layers``: quantized tensors compared with the framework's and with the truth, as a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from qdialect.bench import frameworks, truth
from qdialect.bench.units import Unit, compared_units
from qdialect.cli import terminal
from qdialect.runtime import Executable
from qdialect.support.diagnostics import InputError, QDialectError, printable
from qdialect.support.interface import Array, kernel_names

_HEADER = ("unit", "elements", "differ", "steps", "ours from truth", "framework's", "kernel")
_LONGEST = 60
_TITLES = {"litert": "LiteRT", "onnx_runtime": "ONNX Runtime", "pytorch": "PyTorch"}


def compare_layers(path: Path, executable: Executable, inputs: Sequence[Array], target: str) -> int:
    """Print the table and where the first difference begins; the exit status, 1 where an element differs.

    Raises `InputError` where the framework is not installed or does not run the model.
    """
    framework = _TITLES[frameworks.OWN[path.suffix.lower()]]
    try:
        found = compared_units(path, tuple(inputs), target)
    except ImportError as error:
        raise InputError(f"--compare-layers runs '{path}' in {framework}, which is not installed: {error}") from error
    except QDialectError:
        raise
    # Whatever a framework raises for a model is its reason.
    except Exception as error:
        raise InputError(f"--compare-layers cannot run '{path}' in {framework}: {error}") from error
    print(f"\n{layer_table(found, _kernels(executable), framework, _reason(path))}")
    return int(any(unit.different for unit in found))


def _reason(path: Path) -> str:
    """Why a model has no truth."""
    try:
        truth.load(str(path), path.suffix.lower())
    except truth.NoTruthError as error:
        return str(error)
    return "its graph in float64 has other tensors"


def layer_table(found: Sequence[Unit], kernels: Mapping[str, str], framework: str, reason: str) -> str:
    """A row for each unit; `kernels` are those that compute them, by the names of tensors.

    `reason` is why there is no truth, where there is none.
    """
    if not found:
        return "the model has no quantized tensors that are computed from its inputs"
    rows = [_row(unit, kernels) for unit in found]
    lines = [terminal.render_table(_HEADER, rows, right=(1, 2, 3, 4, 5))]
    lines.append(f"each unit is computed from the tensors of {framework}, and once more from those of the truth")
    if found[0].from_truth is None:
        lines.append(f"truth: none, {reason}")
    different = [unit for unit in found if unit.different]
    if not different:
        return "\n".join([*lines, f"all {len(found)} units are those of {framework}"])
    first = different[0]
    lines.append(
        f"{len(different)} of {len(found)} units differ from {framework}; the first is {printable(_tensor(first))}"
    )
    if first.first:
        where, ours, theirs = first.first
        lines.append(f"there element [{', '.join(map(str, where))}] is {ours}, and {theirs} in {framework}")
    return "\n".join(lines)


def _row(unit: Unit, kernels: Mapping[str, str]) -> tuple[str, ...]:
    truths = ("-" if count is None else str(count) for count in (unit.from_truth, unit.framework_from_truth))
    name = printable(_tensor(unit).split(";")[0])
    shown = name if len(name) <= _LONGEST else f"{name[: _LONGEST - 3]}..."
    kernel = kernels.get(_tensor(unit).split(";")[0], "-")
    return shown, str(unit.elements), str(unit.different), str(unit.steps), *truths, kernel


def _tensor(unit: Unit) -> str:
    """The name of its tensor, which a .tflite file may have twice: there its number stands before it."""
    number, colon, name = unit.name.partition(":")
    return name if colon and number.isdigit() else unit.name


def _kernels(executable: Executable) -> dict[str, str]:
    """The last kernel that computes each tensor."""
    names = kernel_names(executable.calls)
    pairs = zip(names, executable.calls, strict=True)
    return {node.split(";")[0]: name for name, call in pairs for node in call.names}
