"""Covers R16: drawn element-wise graphs, compiled, against the same ops in plain NumPy.

From 8 bits any graph is one table; from accumulators one that rounds as some requantization does is one kernel.
"""

import numpy as np
import pytest
from drawn_graphs import drawn_epilogue, drawn_graph
from graphs import op_names

from qdialect import compile, parse
from qdialect.passes.fuse_qnn import FuseQnnPass


@pytest.mark.parametrize("seed", range(24))
def test_a_graph_between_bytes_is_a_table(seed: int) -> None:
    rng = np.random.default_rng(seed)
    source, element = (str(rng.choice(["i8", "ui8"])) for _ in range(2))
    text, image, wanted = drawn_graph(rng, source, element)
    wanted = np.broadcast_to(wanted, image.shape)
    module = parse(text)
    np.testing.assert_array_equal(compile(module)(image), wanted)
    FuseQnnPass().run(module)
    assert op_names(module) in (["qnn.lut"], ["qnn.clip"], []), text


@pytest.mark.parametrize("seed", range(24))
def test_a_requantization_written_out_is_one_kernel(seed: int) -> None:
    rng = np.random.default_rng(seed)
    element = str(rng.choice(["i8", "ui8"]))
    text, image, wanted = drawn_epilogue(rng, element)
    module = parse(text)
    FuseQnnPass().run(module)
    assert op_names(module) == ["qnn.fused_dense"], text
    np.testing.assert_array_equal(compile(module)(image), wanted)
