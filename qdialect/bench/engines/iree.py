"""IREE for this CPU, compiled and run in the calling thread."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from typing import Any

import numpy as np

from qdialect.bench.cases import Case
from qdialect.bench.engines.base import Array, EngineError, foreign
from qdialect.bench.engines.iree_text import layer_text

_OPTIONS = ("--iree-llvmcpu-target-cpu=host", "--iree-opt-level=O3")
_TILED = (
    "--iree-opt-data-tiling=true",
    "--iree-llvmcpu-enable-ukernels=all",
    "--iree-global-opt-use-im2col-for-convs=true",
)
# Variant: its options, and the form of its model and data. That of TFLite is signed and NHWC, as the text wants it.
_VARIANTS: Mapping[str, tuple[Sequence[str], str]] = {
    "linalg": (_OPTIONS, "tflite"),
    "linalg_tiled": ((*_OPTIONS, *_TILED), "tflite"),
    "onnx_tiled": ((*_OPTIONS, *_TILED), "qdq"),
}


class IreeSession:
    """A module of the virtual machine with its argument."""

    def __init__(self, runtime: Any, code: bytes, argument: Array, wanted: Array) -> None:
        self._runtime = runtime
        self._dtype = wanted.dtype
        self._configuration = runtime.Config("local-sync")
        instance, device = self._configuration.vm_instance, self._configuration.device
        # The module refers to the code's bytes.
        self._code = runtime.VmModule.copy_buffer(instance, code)
        self._context = runtime.VmContext(instance, modules=[runtime.create_hal_module(instance, device), self._code])
        self._function = self._code.lookup_function("network")
        view = device.allocator.allocate_buffer_copy(
            memory_type=runtime.MemoryType.DEVICE_LOCAL,
            allowed_usage=runtime.BufferUsage.DEFAULT,
            device=device,
            buffer=argument.view(np.int8),
            element_type=runtime.HalElementType.SINT_8,
        )
        self._arguments = runtime.VmVariantList(1)
        self._arguments.push_ref(view)
        self._results: Any = None

    def call(self) -> None:
        results = self._runtime.VmVariantList(1)
        self._context.invoke(self._function, self._arguments, results)
        self._results = results

    def outputs(self) -> Sequence[Array]:
        view = self._results.get_as_object(0, self._runtime.HalBufferView)
        dtype = self._runtime.HalElementType.map_to_dtype(view.element_type)
        # Quantized values have no sign in the virtual machine.
        return [np.array(view.map().asarray(view.shape, dtype)).view(self._dtype)]


class Iree:
    """The packages `iree-base-compiler` and `iree-base-runtime`."""

    def __init__(self) -> None:
        self._compiler = foreign("iree.compiler")
        self._runtime = foreign("iree.runtime")

    def version(self) -> str:
        return version("iree-base-compiler")

    def variants(self, case: Case) -> Mapping[str, str]:
        return {variant: form for variant, (_, form) in _VARIANTS.items()} if case.parameters else {}

    def load(self, case: Case, variant: str, threads: int) -> IreeSession:
        if threads != 1:
            raise EngineError("measured on one thread alone")
        options, name = _VARIANTS[variant]
        form = case.forms[name]
        (data,), (wanted,) = form.inputs(), form.outputs()
        if name == "tflite":
            with np.load(case.parameters, allow_pickle=False) as archive:
                numbers = {key: archive[key] for key in archive.files}
            text = layer_text(numbers, data.shape, wanted.shape)
        else:
            text = _imported(form.model)
        code = self._compiler.compile_str(text, target_backends=["llvm-cpu"], extra_args=list(options))
        return IreeSession(self._runtime, code, data, wanted)


def _imported(model: str) -> str:
    """An ONNX file as a module; the function has the name of the graph, as in every model that is written here."""
    command = [sys.executable, "-m", "iree.compiler.tools.import_onnx", model]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout
