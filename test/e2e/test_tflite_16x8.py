"""A whole network of 16-bit activations and 8-bit weights (N5): compiled, it is LiteRT's reference, bit for bit."""

import numpy as np
import pytest
from litert import reference
from networks_16x8 import classifier

from qdialect import targets
from qdialect.frontends.tflite import import_tflite
from qdialect.reference import interpreter
from qdialect.runtime import compile_module
from qdialect.runtime.phase_comparison import compare_phases


@pytest.mark.parametrize("seed", [0, 1])
def test_a_network_equals_the_reference_kernels(seed: int) -> None:
    content = classifier(seed)
    image = np.random.default_rng(seed).normal(size=(1, 33, 31, 3)).astype(np.float32)
    (wanted,) = reference(content, [image])
    assert np.unique(wanted).size > 3
    module = import_tflite(content)
    np.testing.assert_array_equal(interpreter.run(module, [image])[0], wanted)
    for name in dict.fromkeys((targets.host().name, "generic")):
        np.testing.assert_array_equal(compile_module(module, target=name)(image), wanted)
    np.testing.assert_array_equal(compile_module(module, threads=2)(image), wanted)


def test_all_phases_of_the_network_agree() -> None:
    image = np.random.default_rng(0).normal(size=(1, 33, 31, 3)).astype(np.float32)
    results = compare_phases(import_tflite(classifier(0)), [image])
    assert not any(result.differing for result in results)
