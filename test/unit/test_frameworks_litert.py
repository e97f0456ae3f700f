"""LiteRT as this project runs it: every call starts from zero states."""

import numpy as np
from recurrent_models import Lstm

from qdialect.frontends import frameworks


def test_states_are_zero_at_the_start_of_a_call() -> None:
    model = Lstm(data=np.float32, weights=np.float32)
    run, inputs = frameworks.load_litert(model.content(), 1, is_reference=True), model.inputs()
    first = run(inputs)[0]
    np.testing.assert_array_equal(run(inputs)[0], first)
