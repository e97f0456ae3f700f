"""A whole network: from its file to machine code, every layer compared with the reference."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qdialect.bench import models, throughput
from qdialect.cli import terminal
from qdialect.cli.demo.printing import heading, op_names, say
from qdialect.frontends.tflite import TENSOR_ATTRIBUTE, import_tflite
from qdialect.frontends.tflite.seeded_mobilenet import write_mobilenet
from qdialect.ir import context
from qdialect.ir._mlir import ir
from qdialect.passes.pipeline import PassManager
from qdialect.reference import interpreter
from qdialect.runtime import compile_module
from qdialect.runtime.comparison import differing
from qdialect.runtime.phase_comparison import with_layers

_NAME = "mobilenet_v1_0.25_224_quant"
_IMAGE = (1, 224, 224, 3)

Array = NDArray[Any]


@dataclass(frozen=True)
class Case:
    """A network, an input, and what every layer must be, by the number of its tensor."""

    title: str
    source: str
    module: ir.Module
    image: Array
    layers: Mapping[int, Array]


def show(case: Case) -> tuple[int, Array]:
    """Print what becomes of the network; the number of elements that differ from the reference, and its result."""
    heading(case.title)
    say(f"Every layer is compared with {case.source}.")
    start = time.perf_counter()
    executable = compile_module(case.module)
    compiled = time.perf_counter() - start
    speed, macs = throughput.measure(executable, [case.image]), throughput.multiply_accumulates(case.module)
    share = speed.share(macs)
    count, different, elements = _compare(case)
    of_peak = f", {100 * share:.0f} % of bare {speed.loop}" if share else ""
    result = np.asarray(executable(case.image))
    rows = [
        ("ops", f"{_ops(case.module)} as imported, {_ops(case.module, 'fuse-qnn')} after --fuse-qnn"),
        ("compiled in", f"{compiled:.1f} s: {executable.kernels} kernels in {len(executable.calls)} calls"),
        ("time per image", f"{speed.seconds * 1e3:.3f} ms ({speed.rate(macs) * 1e-9:.1f} GMAC/s{of_peak})"),
        ("working memory", f"{executable.working_memory} bytes, besides {executable.constants_bytes} of constants"),
        ("layers compared", f"{count}: {different} of {elements} elements differ"),
        ("answer", f"class {int(np.argmax(result))}"),
    ]
    print("\n" + terminal.render_table(("", ""), rows).lstrip())
    return different, result


def find_case() -> Case:
    """The real network where it and its recordings are here, else what can be made of it."""
    return _recorded() or _seeded()


def _recorded() -> Case | None:
    path, outputs = models.find(_NAME), models.find_reference(_NAME)
    recording = models.find_reference(_NAME, kind="layers")
    if not path or not outputs or not recording:
        return None
    with np.load(outputs) as arrays:
        image = arrays["in_0"]
    with np.load(recording) as arrays:
        layers = {int(name[1:]): array for name, array in arrays.items() if name[1:].isdigit()}
    source = "what TFLite's reference kernels computed, recorded in a file"
    return Case(f"{path.name}, a network that others made", source, import_tflite(path), image, layers)


def _seeded() -> Case:
    found = models.find(_NAME)
    with tempfile.TemporaryDirectory() as folder:
        path = found or Path(folder) / "mobilenet_v1_0.25_224_seeded.tflite"
        if not found:
            say(f"{_NAME}.tflite is not here ('make models' downloads it): writing its layers with random weights.")
            write_mobilenet(path)
        module = import_tflite(path)
    image = np.random.default_rng(0).integers(0, 256, _IMAGE, dtype=np.uint8)
    layers: dict[int, Array] = {}

    def observe(op: ir.Operation, value: Array) -> None:
        if TENSOR_ATTRIBUTE in op.attributes:
            layers[ir.IntegerAttr(op.attributes[TENSOR_ATTRIBUTE]).value] = value

    interpreter.run(module, [image], observe=observe)
    return Case(path.name, "the NumPy reference, run here", module, image, layers)


def _compare(case: Case) -> tuple[int, int, int]:
    """Layers compared, elements that differ, elements."""
    module, tensors = with_layers(case.module, TENSOR_ATTRIBUTE)
    found = compile_module(module)(case.image)
    pairs = [(case.layers[t], array) for t, array in zip(tensors, found[-len(tensors) :], strict=True)]
    return len(pairs), sum(differing(*pair) for pair in pairs), sum(wanted.size for wanted, _ in pairs)


def _ops(module: ir.Module, *passes: str) -> int:
    """Number of ops after `passes`, without constants and the return."""
    copy = context.copy(module)
    for name in passes:
        PassManager(name).run(copy)
    return len(op_names(copy))
