"""tools/zoo/truth/tflite_lstm.py: long short-term memory in float64, compared with LiteRT's reference kernels."""

import numpy as np
import pytest
from litert import reference
from recurrent_models import BidirectionalLstm, Lstm

from qdialect.frontends.tflite.flatbuffer.reader import read_graph
from tools.zoo.truth.tflite_truth import in_double

FLOAT = Lstm(data=np.float32, weights=np.float32)
HYBRID = FLOAT.but(weights=np.int8)
ALL = {"has_peepholes": True, "has_norms": True, "width": 5, "batch": 2}
FLOATS: dict[str, Lstm | BidirectionalLstm] = {
    "plain": FLOAT,
    "time major": FLOAT.but(batch=2, is_time_major=True, seed=2),
    "relu": FLOAT.but(activation=1, cell_clip=0.4, seed=7),
    "projection": FLOAT.but(width=4, projection_clip=0.3, seed=5),
    "all": FLOAT.but(is_coupled=True, seed=8, **ALL),
    "hybrid": HYBRID.but(batch=3, seed=1),
    "hybrid all": HYBRID.but(is_asymmetric=True, seed=4, **ALL),
    "both": BidirectionalLstm(FLOAT),
    "apart": BidirectionalLstm(FLOAT.but(seed=9), is_merged=False),
    "auxiliary": BidirectionalLstm(FLOAT.but(batch=2, is_time_major=True), has_auxiliary=True),
}
BASE = Lstm()
INTEGERS = {
    "plain": BASE,
    "time major": BASE.but(batch=3, is_time_major=True, seed=2),
    "coupled peepholes": BASE.but(has_peepholes=True, is_coupled=True, seed=5),
    "projection": BASE.but(width=4, seed=6),
    "cell clip": BASE.but(cell_clip=0.75, seed=8),
}


@pytest.mark.parametrize("model", FLOATS.values(), ids=FLOATS)
def test_floats_are_those_of_litert(model: Lstm | BidirectionalLstm) -> None:
    content, inputs = model.content(), model.inputs()
    found, wanted = in_double(read_graph(content))(inputs), reference(content, inputs)
    for one, other in zip(found, wanted, strict=True):
        assert one.dtype == np.float64
        np.testing.assert_allclose(one, other, atol=2e-5)


@pytest.mark.parametrize("model", INTEGERS.values(), ids=INTEGERS)
def test_integers_are_near_those_of_litert(model: Lstm) -> None:
    content, inputs = model.content(), model.inputs()
    (found,), (wanted,) = in_double(read_graph(content))(inputs), reference(content, inputs)
    assert set(np.unique(found % 1)) == {0.0}
    assert len(np.unique(found)) > 10
    # The kernel rounds each gate to 16 bits, and looks its functions up.
    assert np.abs(found - wanted).max() <= 2
