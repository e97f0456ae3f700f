"""Unit by unit: each is computed from the framework's own tensors, so that no difference is carried on.

A unit ends where the network quantizes: a QDQ group, or a quantized operator.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import qdialect
from tools.zoo import frameworks
from tools.zoo.flows.samples import Sample
from tools.zoo.frameworks.runner import Array
from tools.zoo.packages import imported
from tools.zoo.units.agreement import Agreement, agreement
from tools.zoo.units.onnx_units import cut, exposed, quantized_tensors

Both = tuple[Agreement | None, Agreement | None]


def measured_units(path: Path, samples: Sequence[Sample]) -> Both:
    """The agreement of units of integers, and of those with floats inside; None where there are no such units.

    Models that are no .onnx file have no units here.  Raises whatever the framework raises for a part of the model.
    """
    if path.suffix != ".onnx":
        return None, None
    onnx = imported("onnx")
    model = onnx.load(str(path))
    names = quantized_tensors(model)
    if not names:
        return None, None
    with TemporaryDirectory() as folder:
        whole, parts = Path(folder) / "exposed.onnx", Path(folder) / "units.onnx"
        onnx.save(exposed(model), str(whole))
        run = frameworks.load(frameworks.OWN[path.suffix], str(whole))
        own = [value.name for value in exposed(model).graph.output]
        inputs = [value.name for value in model.graph.input]
        runs = [{**dict(zip(inputs, one, strict=False)), **dict(zip(own, run(one), strict=True))} for one in samples]
        units = cut(model, runs[0])
        onnx.save(units.model, str(parts))
        given = [units.inputs(tensors) for tensors in runs]
        framework = frameworks.load(frameworks.OWN[path.suffix], str(parts))
        wanted = [_named(names, framework(one)) for one in given]
        executable = qdialect.compile(parts, fallback="framework", cache=False)
        found = [_named(names, _as_list(executable(*one))) for one in given]
    integer, floating = (_agreement(found, wanted, which) for which in (units.integer, units.floating))
    return integer, floating


def _named(names: Sequence[str], arrays: Sequence[Array]) -> dict[str, Array]:
    return dict(zip(names, arrays, strict=True))


def _as_list(found: Array | tuple[Array, ...]) -> list[Array]:
    return list(found) if isinstance(found, tuple) else [found]


def _agreement(
    found: Sequence[Mapping[str, Array]], wanted: Sequence[Mapping[str, Array]], names: Sequence[str]
) -> Agreement | None:
    if not names:
        return None
    return agreement(found, [{name: one[name] for name in names} for one in wanted])
