"""Real networks, compiled: every element as TFLite's reference kernels have it; R7, R8 and N7 on whole networks."""

import re
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import qdialect
from qdialect import targets
from qdialect.frontends.tflite import TENSOR_ATTRIBUTE, import_tflite
from qdialect.frontends.tflite.seeded_mobilenet import write_mobilenet
from qdialect.lowering.pipeline.phases import Phase, lower
from qdialect.reference import interpreter
from qdialect.runtime import Executable, compile_module
from qdialect.runtime.comparison import differing
from qdialect.runtime.phase_comparison import with_layers

Array = NDArray[Any]
Reference = Callable[..., Mapping[str, Array]]

MODELS = [
    "mobilenet_v1_0.25_224_quant",
    "vww_96_int8",
    "kws_ref_model",
    "ad01_int8",
    "pretrainedResnet_quant",
    "tf2_mobilenet_v2_1.0_224_ptq",
    "bisonai_mobilenetv3_mnist",
    "dcgan_generator_int8",
    "derived_selfie_segmenter_a8w8",
    "deeplabv3_mnv2_dm05_pascal_quant",
]
SMALL = ["kws_ref_model", "ad01_int8", "pretrainedResnet_quant", "dcgan_generator_int8"]
MOBILENET = MODELS[0]


def arrays_of(recorded: Mapping[str, Array], kind: str) -> list[Array]:
    """Arrays ``<kind>_0``, ``<kind>_1``, ... of a recording."""
    names = sorted(
        (name for name in recorded if re.fullmatch(rf"{kind}_\d+", name)), key=lambda name: int(name.rpartition("_")[2])
    )
    return [recorded[name] for name in names]


def results(executable: Executable, inputs: list[Array]) -> tuple[Array, ...]:
    found = executable(*inputs)
    return found if isinstance(found, tuple) else (found,)


def check(executable: Executable, recorded: Mapping[str, Array]) -> None:
    found = results(executable, arrays_of(recorded, "in"))
    wanted = arrays_of(recorded, "ref")
    assert [array.dtype for array in found] == [array.dtype for array in wanted]
    assert [differing(*pair) for pair in zip(wanted, found, strict=True)] == [0] * len(wanted)


@pytest.mark.parametrize("name", MODELS)
def test_outputs_equal_the_reference_kernels(
    name: str, require_model: Callable[[str], Path], require_reference: Reference
) -> None:
    recorded = require_reference(name)
    executable = qdialect.compile(require_model(f"{name}.tflite"))
    check(executable, recorded)
    # A second call finds the working memory of the first.
    check(executable, recorded)


# Elements that differ from what the delegate gave. It leaves transposed convolutions whose output's size is computed to
# another of TFLite's kernels.
DELEGATED = dict.fromkeys(MODELS[:-1], 0) | {"dcgan_generator_int8": 1}


@pytest.mark.parametrize("name", DELEGATED)
def test_outputs_equal_the_xnnpack_delegate(
    name: str, require_model: Callable[[str], Path], require_reference: Reference
) -> None:
    recorded = require_reference(name)
    module = import_tflite(require_model(f"{name}.tflite"), profile="tflite-xnnpack")
    (found,) = interpreter.run(module, arrays_of(recorded, "in"))
    assert differing(recorded["xnn_0"], found) == DELEGATED[name]


@pytest.mark.parametrize("name", SMALL)
def test_the_portable_way_has_the_same_bits(
    name: str, require_model: Callable[[str], Path], require_reference: Reference
) -> None:
    check(qdialect.compile(require_model(f"{name}.tflite"), target="generic"), require_reference(name))


def test_every_layer_equals_the_reference_kernels(
    require_model: Callable[[str], Path], require_reference: Reference
) -> None:
    module, tensors = with_layers(import_tflite(require_model(MOBILENET)), TENSOR_ATTRIBUTE)
    layers = require_reference(MOBILENET, "layers")
    found = results(compile_module(module), arrays_of(require_reference(MOBILENET), "in"))
    assert len(tensors) == 31
    different = {t: differing(layers[f"t{t}"], array) for t, array in zip(tensors, found[1:], strict=True)}
    assert {t: count for t, count in different.items() if count} == {}


def test_a_seeded_network_equals_the_interpreter(tmp_path: Path) -> None:
    path = tmp_path / "seeded.tflite"
    write_mobilenet(path, seed=3, size=64)
    module = import_tflite(path)
    image = np.random.default_rng(4).integers(0, 256, (1, 64, 64, 3), dtype=np.uint8)
    (found,), (wanted,) = results(compile_module(module), [image]), interpreter.run(module, [image])
    assert differing(wanted, found) == 0


# The peak of this process alone: `ru_maxrss` begins with what its parent had when it forked.
COMPILE = """
import re, sys
from pathlib import Path
import qdialect
qdialect.compile(sys.argv[1])
print(re.search(r"VmHWM:\\s+(\\d+) kB", Path("/proc/self/status").read_text())[1])
"""


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere the unit of the memory is another")
def test_compiling_takes_less_than_a_gigabyte(require_model: Callable[[str], Path]) -> None:
    """In a process of its own, import of the bindings included."""
    command = [sys.executable, "-c", COMPILE, str(require_model(MOBILENET))]
    kilobytes = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert int(kilobytes) < 1_000_000


@pytest.mark.parametrize("name", ["amxint8", "avx512vbmi"])
def test_r7_r8_between_kernels_there_are_bytes_alone(require_model: Callable[[str], Path], name: str) -> None:
    """No buffer of i16, none of i32 but a softmax's and a block of tiles' sums, no padded copy, no image of sums."""
    chosen = targets.resolve(name)
    lowered = lower(import_tflite(require_model(MOBILENET)), chosen, Phase.LINALG)
    text = str(lowered.module)
    main = text[text.index("@main(") :]
    arena = main[: main.index(")")].count("memref") - 1
    views = re.findall(rf"memref\.view %arg{arena}\[.*to memref<(\d+)x(\w+)>", main)
    assert len(views) > 50
    assert {element for _, element in views} <= {"i8", "i32"}
    # A softmax has 1001 classes, a block of matrix tiles 32 x 32 sums; the smallest layer has 7 x 7 x 256 accumulators.
    most = 1024 if "amx-tile" in chosen.features else 1008
    assert max((int(length) for length, element in views if element == "i32"), default=0) <= most
    # The largest activation is 112 x 112 x 16 bytes, with the border that its reader wants 114 x 114 x 16.
    assert max(int(length) for length, element in views if element == "i8") <= 114 * 114 * 16
    # Two of the largest layers live at a time, and what is read beyond a row's end.
    assert lowered.arena_bytes <= (114 * 114 + 112 * 112) * 16 + 1024
