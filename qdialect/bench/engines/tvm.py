"""Apache TVM's Relax, untuned; it runs QDQ models in float32."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from qdialect.bench.cases import Array, Case, EngineError, foreign

# A network in float32 takes minutes to compile and seconds to run.
_KINDS = ("layer",)


class TvmSession:
    """A function of the virtual machine and its argument."""

    def __init__(self, function: Any, argument: Any) -> None:
        self._function = function
        self._argument = argument
        self._result: Any = None

    def call(self) -> None:
        self._result = self._function(self._argument)

    def outputs(self) -> Sequence[Array]:
        return [self._result.numpy()]


class Tvm:
    """The package `apache-tvm`."""

    def __init__(self) -> None:
        self._tvm = foreign("tvm")
        self._relax = foreign("tvm.relax")

    def version(self) -> str:
        return str(self._tvm.__version__)

    def variants(self, case: Case) -> Mapping[str, str]:
        return {"relax": "qdq"} if case.kind in _KINDS else {}

    def load(self, case: Case, variant: str, threads: int) -> TvmSession:
        if threads != 1:
            raise EngineError("measured on one thread alone")
        form = case.forms["qdq"]
        module = foreign("tvm.relax.frontend.onnx").from_onnx(foreign("onnx").load(form.model))
        target = self._tvm.target.Target({"kind": "llvm", "mcpu": "znver4", "num-cores": threads})
        machine = self._relax.VirtualMachine(self._relax.build(module, target), self._tvm.cpu())
        return TvmSession(machine["main"], self._tvm.runtime.tensor(form.inputs()[0]))
