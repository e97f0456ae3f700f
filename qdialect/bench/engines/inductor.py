"""PyTorch's inductor: programs compiled ahead by a process of their own, which may take long or fail.

``python -m qdialect.bench.engines.inductor MODEL PACKAGE`` compiles a ``.pt2`` archive, or an ONNX graph as a program
of PyTorch, with ``weights_f32`` behind it weights of few bits as f32 numbers.  The program is frozen, so that weights
are packed and quantized patterns become oneDNN's operators; max-autotune takes products of inductor's own templates
where they are faster; the wrapper is C++.  ``fixed`` behind them compiles without max-autotune.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from qdialect.bench import process
from qdialect.bench.cases import Array, Case, EngineError, Session, foreign, known_forms, session_of
from qdialect.bench.transformers import LANGUAGE_LAYERS

LIMITS = process.Limits(900.0, 20.0)
"""Of a compilation."""

_FORMS = ("onnx", "function_onnx")
_FOLDED, _FIXED = "weights_f32", "fixed"
_MIDDLE = 128
_LONGEST = 300


def package_of(model: Path) -> Path:
    """The path of a model's package, which lies in the model's folder."""
    return model.with_name(f"{model.stem}.inductor.pt2")


def session(torch: Any, package: Path, inputs: Sequence[Array]) -> Session:
    """A package on tensors that are in place."""
    # The function behind the public one, without its trees of arguments and results.
    run = torch._inductor.aoti_load_package(str(package)).loader.run
    arguments = [torch.from_numpy(array) for array in inputs]
    return session_of(partial(run, arguments), lambda found: [one.numpy() for one in found])


class Inductor:
    """The package `torch`, for transformers and float functions."""

    def __init__(self) -> None:
        self._torch = foreign("torch")
        foreign("torch._inductor")

    def variants(self, case: Case) -> Mapping[str, str]:
        if case.kind not in ("transformer", "function"):
            return {}
        found = known_forms(case, _FORMS)
        return found | ({_FOLDED: "onnx"} if case.name in LANGUAGE_LAYERS else {})

    def load(self, case: Case, variant: str, threads: int) -> Session:
        self._torch.set_num_threads(threads)
        form = case.forms[self.variants(case)[variant]]
        with tempfile.TemporaryDirectory(prefix="qdialect-inductor-") as folder:
            package = Path(folder) / "package.pt2"
            # On the cores and with the number of threads of this process.
            compiles = partial(process.run, limits=LIMITS, settings={})
            failure = failure_of(compiles, Path(form.model), package, *[variant] * (variant == _FOLDED))
            if failure:
                raise EngineError(f"compiling {failure}")
            # Its code is mapped: the files may go.
            return session(self._torch, package, form.inputs())


def failure_of(run: Callable[[str, list[str]], process.Ended], model: Path, package: Path, *options: str) -> str:
    """Why no package was written by a process that `run` starts; empty where there is one.

    Max-autotune ends the process for some programs, which are then compiled without.
    """
    for more in ((), (_FIXED,)):
        ended = run(__name__, [str(model), str(package), *options, *more])
        if not ended.failure or ended.is_late:
            break
    return ended.failure


def compile_package(model: Path, package: Path, *, is_folded: bool = False, is_tuned: bool = True) -> None:
    """Write the package of a model; raises whatever PyTorch raises for it."""
    torch = foreign("torch")
    if model.suffix == ".pt2":
        program = foreign("qdialect.bench.frameworks.pytorch").program(str(model))
        make_unsigned(torch, program)
    else:
        program = foreign("qdialect.bench.torch_program").exported(model, is_folded=is_folded)
    options = {"freezing": True, "max_autotune": is_tuned, "cpp_wrapper": True}
    with torch.no_grad():
        torch._inductor.aoti_compile_and_package(program, package_path=str(package), inductor_configs=options)


def make_unsigned(torch: Any, program: Any) -> None:
    """The same numbers by unsigned bytes where activations are signed: oneDNN's quantized operators take no others."""
    kinds = torch.ops.quantized_decomposed
    quantize, dequantize = kinds.quantize_per_tensor.default, kinds.dequantize_per_tensor.default
    for node in program.graph.nodes:
        readers = list(node.users)
        if node.target is not quantize or any(one.target is not dequantize for one in readers):
            continue
        for one in (node, *readers):
            data, scale, zero, low, high, dtype = one.args
            if dtype is torch.int8:
                one.args = data, scale, zero + _MIDDLE, low + _MIDDLE, high + _MIDDLE, torch.uint8


def main(arguments: Sequence[str]) -> str | None:
    """Compile a package; the reason in a line where PyTorch cannot."""
    try:
        compile_package(
            Path(arguments[0]), Path(arguments[1]), is_folded=_FOLDED in arguments, is_tuned=_FIXED not in arguments
        )
    # Whatever PyTorch raises; the reader of the results is told.
    except Exception as error:
        return f"{type(error).__name__}: {' '.join(str(error).split())[:_LONGEST]}"
    return None


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
