"""A table on its own: vector code on users' arrays as they are, whatever their size and the signs of both."""

import numpy as np
import pytest
from compiled_ops import EIGHT_BIT, TABLE, check, quantization
from graphs import graph

from qdialect.arithmetic import Table
from qdialect.dialect import LutOp, build
from qdialect.ir._mlir import ir
from qdialect.lowering.pipeline.phases import Phase, lower
from qdialect.targets import GENERIC, TARGETS

IDENTITY = np.arange(256).astype(np.uint8)
SIZES = (1, 3, 15, 16, 63, 64, 65, 127, 128, 200, 513)


def table(size: int, source: str, target: str, entries: Table) -> ir.Module:
    def body(x: ir.Value) -> ir.Value:
        return build(LutOp, x, element=target, table=entries, **quantization(source, target)).output

    return graph([f"tensor<{size}x{source}>"], body)


@pytest.mark.parametrize("target", EIGHT_BIT)
@pytest.mark.parametrize("source", EIGHT_BIT)
@pytest.mark.parametrize("size", [1, 17, 64, 130])
def test_every_pair_of_signs(size: int, source: str, target: str) -> None:
    check(table(size, source, target, TABLE))


@pytest.mark.parametrize("entries", [TABLE, IDENTITY], ids=["table", "identity"])
@pytest.mark.parametrize("size", SIZES)
def test_vector_code_for_every_size(size: int, entries: Table) -> None:
    module = table(size, "ui8", "ui8", entries)
    for target in (GENERIC, TARGETS["avx512vbmi"]):
        lowered = lower(module, target, Phase.VECTOR)
        text = str(lowered.module)
        assert lowered.kernels == 1
        assert ("vector.gather" if entries is TABLE else "vector.transfer_write") in text
        assert "memref.copy" not in text
        assert "memref.load" not in text
    permuted = str(lower(module, TARGETS["avx512vbmi"], Phase.X86).module)
    assert ("vpermi2var.qi.512" in permuted) == (entries is TABLE)
