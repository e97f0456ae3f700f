"""How thoroughly LLVM optimizes a module depends on the target that it was lowered for."""

from __future__ import annotations

import pytest

from qdialect import targets
from qdialect.aot.artifact import artifact_of
from qdialect.ir._mlir import ir
from qdialect.ir.context import make_context, parse
from qdialect.lowering.pipeline.phases import Phase, lower
from qdialect.lowering.x86_to_llvm.code_attributes import optimization_level

COPY = "func.func @main(%x: tensor<1x8xui8>) -> tensor<1x8xui8> {\n  return %x : tensor<1x8xui8>\n}"


@pytest.mark.parametrize(
    ("target", "level"), [("avx512vnni", 0), ("avx2", 0), ("x86-64", 0), ("generic", 3), ("avx2,portable", 3)]
)
def test_level_of_a_target(target: str, level: int) -> None:
    with make_context():
        module = ir.Module.parse(f'module attributes {{qnn.target = "{target}"}} {{}}')
    assert optimization_level(module) == level


def test_a_module_from_elsewhere_gets_all_optimizations() -> None:
    with make_context():
        assert optimization_level(ir.Module.parse("module {}")) == 3


@pytest.mark.parametrize(("names", "level"), [(["avx512vnni", "avx2"], 0), (["avx2", "generic"], 3)])
def test_a_library_is_compiled_as_its_plainest_version(names: list[str], level: int) -> None:
    module = parse(COPY)
    chosen = [targets.resolve(name) for name in names]
    versions = [lower(module, target, Phase.LLVM) for target in chosen]
    assert optimization_level(artifact_of("copy", chosen, versions).module) == level
