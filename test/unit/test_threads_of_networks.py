"""Whole networks on several threads, divided where the compiler finds it worth it: the same bits for every number."""

import re

import numpy as np
import pytest
from threaded_networks import network

from qdialect import targets
from qdialect.lowering.ir.lowered import Phase
from qdialect.lowering.pipeline.phases import lower
from qdialect.runtime import compile_module
from qdialect.runtime.comparison import random_inputs

COUNTS = (2, 3, 8)


@pytest.mark.parametrize("kind", ["convolutional", "transformer"])
def test_the_same_bits_for_every_number_of_threads(kind: str) -> None:
    module = network(kind)
    text = str(lower(module, targets.host(), Phase.VECTOR, threads=2).module)
    divided = set(re.findall(r"memref.global \"private\" constant @(kernel_\d+)\w*_parts", text))
    assert len(divided) >= 5
    assert "omp.barrier" in text
    # Not everything is worth it.
    assert len(divided) < len(set(re.findall(r"func.func private @(kernel_\d+)", text)))
    inputs = random_inputs(lower(module, targets.host(), Phase.QNN).inputs, 3)
    wanted = compile_module(module)(*inputs)
    assert len(np.unique(wanted)) > 5
    for threads in COUNTS:
        executable = compile_module(module, threads=threads)
        assert executable.threads == threads
        for _ in range(3):
            np.testing.assert_array_equal(executable(*inputs), wanted, strict=True)
