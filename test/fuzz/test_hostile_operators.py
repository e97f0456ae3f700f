"""Every operator of .onnx and .tflite files with inputs and attributes of any kind: a module, or an error of our own.

No error may be one that no check has foreseen, and no model of a few hundred bytes may take long or much memory.
"""

import zlib
from collections.abc import Callable

import hostile_models
import pytest
from bounds import deadline, memory_at_most

from qdialect.frontends.building.checks import CONVERSION_FAILED
from qdialect.frontends.onnx import import_onnx
from qdialect.frontends.onnx import supported_operators as onnx_operators
from qdialect.frontends.tflite import PROFILES, import_tflite
from qdialect.frontends.tflite import supported_operators as tflite_operators
from qdialect.ir._mlir import ir
from qdialect.ir.context import make_context
from qdialect.passes.pipeline import PassManager
from qdialect.support.diagnostics import QDialectError

_MODELS = 12
_MAX_MEMORY = 4 << 30


@pytest.fixture(scope="module")
def context() -> ir.Context:
    """One for all models: making it takes longer than loading most of them."""
    return make_context()


def check(load: Callable[[], ir.Module], what: str) -> None:
    """Load a model, and fuse it where it can be loaded."""
    with deadline(what), memory_at_most(_MAX_MEMORY, what):
        said = message_of(lambda: PassManager("fuse-qnn").run(load()))
    assert CONVERSION_FAILED not in said, f"{what}: {said}"


def message_of(work: Callable[[], object]) -> str:
    try:
        work()
    except QDialectError as error:
        return error.render()
    return ""


def seeds(kind: str) -> range:
    first = zlib.crc32(kind.encode())
    return range(first, first + _MODELS)


@pytest.mark.parametrize("kind", onnx_operators())
def test_an_onnx_operator(kind: str, context: ir.Context) -> None:
    for seed in seeds(kind):
        content = hostile_models.Drawing(seed).model(kind)
        check(lambda content=content: import_onnx(content, context), f"{kind}, seed {seed}")


@pytest.mark.parametrize("kind", tflite_operators())
def test_a_tflite_operator(kind: str, context: ir.Context) -> None:
    for seed in seeds(kind):
        content = hostile_models.TfliteDrawing(seed).model(kind, hostile_models.options_of(kind))
        profile = PROFILES[seed % len(PROFILES)]
        check(
            lambda content=content, profile=profile: import_tflite(content, context, profile=profile),
            f"{kind}, seed {seed}",
        )
