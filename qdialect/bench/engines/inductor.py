"""PyTorch's inductor: programs compiled ahead by a process of their own, which may take long or fail.

``python -m qdialect.bench.engines.inductor MODEL PACKAGE`` compiles a ``.pt2`` archive, or an ONNX graph as a program
of PyTorch, with ``weights_f32`` behind it weights of few bits as f32 numbers.  The program is frozen, so that weights
are packed and quantized patterns become oneDNN's operators; max-autotune takes products of inductor's own templates
where they are faster; the wrapper is C++.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from qdialect.bench import child
from qdialect.bench.cases import Array, Case, EngineError, foreign, known_forms
from qdialect.bench.transformers import LANGUAGE_LAYERS

LIMITS = child.Limits(900.0, 20.0)
"""Of a compilation."""

_FORMS = ("onnx", "function_onnx")
_FOLDED = "weights_f32"
_OPTIONS = {"freezing": True, "max_autotune": True, "cpp_wrapper": True}
_LONGEST = 300


def package_of(model: Path) -> Path:
    """Where the package of a model is kept that is beside it."""
    return model.with_name(f"{model.stem}.inductor.pt2")


class InductorSession:
    """A package on tensors that are in place; its results are new tensors."""

    def __init__(self, torch: Any, package: Path, inputs: Sequence[Array]) -> None:
        self._inputs = [torch.from_numpy(array) for array in inputs]
        # The function behind the public one, without its trees of arguments and results.
        self._run = torch._inductor.aoti_load_package(str(package)).loader.run
        self._results: list[Any] = []

    def call(self) -> None:
        self._results = self._run(self._inputs)

    def outputs(self) -> Sequence[Array]:
        return [one.numpy() for one in self._results]


class Inductor:
    """The package `torch`, for transformers and float functions."""

    def __init__(self) -> None:
        self._torch = foreign("torch")
        foreign("torch._inductor")

    def version(self) -> str:
        return str(self._torch.__version__)

    def variants(self, case: Case) -> Mapping[str, str]:
        if case.kind not in ("transformer", "function"):
            return {}
        found = known_forms(case, _FORMS)
        has_few_bits = case.name.startswith(tuple(LANGUAGE_LAYERS))
        return found | ({_FOLDED: "onnx"} if has_few_bits else {})

    def load(self, case: Case, variant: str, threads: int) -> InductorSession:
        self._torch.set_num_threads(threads)
        form = case.forms[self.variants(case)[variant]]
        with tempfile.TemporaryDirectory(prefix="qdialect-inductor-") as folder:
            package = Path(folder) / "package.pt2"
            # On the cores and with the number of threads of this process.
            ended = child.run(__name__, [form.model, str(package), *[variant] * (variant == _FOLDED)], LIMITS, {})
            if ended.failure:
                raise EngineError(f"compiling {ended.failure}")
            # Its code is mapped: the files may go.
            return InductorSession(self._torch, package, form.inputs())


def compile_package(model: Path, package: Path, *, is_folded: bool = False) -> None:
    """Write the package of a model; raises whatever PyTorch raises for it."""
    torch = foreign("torch")
    if model.suffix == ".pt2":
        program = foreign("qdialect.bench.frameworks.pytorch").program(str(model))
    else:
        program = foreign("qdialect.bench.torch_program").exported(model, is_folded=is_folded)
    with torch.no_grad():
        torch._inductor.aoti_compile_and_package(program, package_path=str(package), inductor_configs=_OPTIONS)


def main(arguments: Sequence[str]) -> str | None:
    """Compile a package; the reason in a line where PyTorch cannot."""
    try:
        compile_package(Path(arguments[0]), Path(arguments[1]), is_folded=_FOLDED in arguments[2:])
    # Whatever PyTorch raises; the reader of the results is told.
    except Exception as error:
        return f"{type(error).__name__}: {' '.join(str(error).split())[:_LONGEST]}"
    return None


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
