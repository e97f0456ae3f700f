"""Real networks, compiled: every element as TFLite's reference kernels have it; R7, R8 and N7 on whole networks."""

import re
import subprocess
import sys
import tracemalloc
from collections.abc import Callable, Mapping
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
from subprocesses import output_of
from tolerances import FLOATS, tolerance_of
from torch_models import NETWORKS, QUANTIZERS, Array
from torch_models import Array as FloatArray
from torch_models import network as quantized_network

import qdialect
from qdialect import targets
from qdialect.cli import compile as command
from qdialect.dialect import DequantizeOp
from qdialect.dialect.constants import constants_of
from qdialect.driver.torch_backend import compile_captured
from qdialect.frontends.onnx import import_onnx
from qdialect.frontends.tflite import TENSOR_ATTRIBUTE, import_tflite
from qdialect.frontends.torch import import_torch
from qdialect.ir._mlir import ir
from qdialect.lowering.pipeline.phases import Phase, lower
from qdialect.passes.pattern import producer
from qdialect.passes.pipeline import PassManager
from qdialect.reference import interpreter
from qdialect.reference.interpreter import run
from qdialect.runtime import compile_module
from qdialect.runtime.comparison import differing, random_inputs
from qdialect.runtime.phase_comparison import with_layers

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


def results(executable: Callable[..., Any], inputs: list[Array]) -> tuple[Array, ...]:
    found = executable(*inputs)
    return cast("tuple[Array, ...]", found) if isinstance(found, tuple) else (found,)


def check(executable: Callable[..., Any], recorded: Mapping[str, Array]) -> None:
    found = results(executable, arrays_of(recorded, "in"))
    wanted = arrays_of(recorded, "ref")
    assert [array.dtype for array in found] == [array.dtype for array in wanted]
    assert [differing(*pair) for pair in zip(wanted, found, strict=True)] == [0] * len(wanted)


@pytest.mark.parametrize("name", MODELS)
def test_outputs_equal_the_reference_kernels(
    name: str, require_model: Callable[[str], Path], require_reference: Reference
) -> None:
    recorded, path = require_reference(name), require_model(f"{name}.tflite")
    executable = qdialect.compile(path)
    check(executable, recorded)
    # A second call finds the working memory of the first.
    check(executable, recorded)
    check(lambda *inputs: tuple(run(import_tflite(path), list(inputs))), recorded)


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


# Real ONNX networks: imported, interpreted and compiled, every element as ONNX Runtime has it.

QDQ_MOBILENET = "mobilenet_v2_torch_qat_qdq"
RESIDUAL = "ort_qdq_with_multi_consumer_dq_nodes"
TRANSPOSED = "ort_conv_follow_convtrans_s8"
SIGMOID = "tract_qsigmoid_1"
TDNN = "tract_qtdnn_qlinearconv"
QDQ_MODELS = [QDQ_MOBILENET, RESIDUAL, TRANSPOSED, SIGMOID, TDNN]


@pytest.fixture
def network(require_model: Callable[[str], Path], require_reference: Reference) -> Callable[[str], Any]:
    """The module of a network, its input and what ONNX Runtime's default optimization gives for it."""

    def load(name: str) -> tuple[ir.Module, Array, list[Array]]:
        recorded = require_reference(f"onnx/{name}")
        image = recorded["in_0"]
        wanted = [recorded[f"opt_{k}"] for k in range(sum(key.startswith("opt_") for key in recorded))]
        return import_onnx(require_model(f"onnx/{name}.onnx"), batch=image.shape[0]), image, wanted

    return load


def different(wanted: list[Array], found: tuple[Array, ...]) -> list[int]:
    """How many elements of each output differ as float32; dequantized values are equal where quantized ones are."""
    assert [array.shape for array in found] == [array.shape for array in wanted]
    return [int(np.count_nonzero(a != b)) for a, b in zip(wanted, found, strict=True)]


@pytest.mark.parametrize("name", QDQ_MODELS)
def test_outputs_equal_onnx_runtime(name: str, network: Callable[[str], Any]) -> None:
    module, image, wanted = network(name)
    found = qdialect.compile(module)(image)
    assert different(wanted, found if isinstance(found, tuple) else (found,)) == [0] * len(wanted)
    assert different(wanted, interpreter.run(module, [image])) == [0] * len(wanted)
    PassManager("fuse-qnn").run(module)
    assert different(wanted, interpreter.run(module, [image])) == [0] * len(wanted)


# Three networks that PT2E quantized, by two quantizers: against PyTorch itself, three ways round.

# Results are floats. An element may be away from PyTorch's by a step of its own quantization where it has one;
# without one, by the loss of float32 in a sum of a hundred numbers.
FLOAT_LOSS = FLOATS["network"].absolute
SUMS = tolerance_of(".pt2", "aten.conv2d.default")


@cache
def imported(name: str, quantizer: str) -> ir.Module:
    return import_torch(quantized_network(name, quantizer).exported())


def step_of(module: ir.Module) -> float:
    """The scale of the quantized values that the result stands for, 0 where it is computed in float32."""
    (function,) = module.body.operations
    *_, last = function.regions[0].blocks[0].operations
    source = producer(last.operation.operands[0])
    return source.scales[0] if isinstance(source, DequantizeOp) and len(source.scales) == 1 else 0.0


def assert_close(found: FloatArray, wanted: FloatArray, step: float) -> None:
    assert found.shape == wanted.shape
    differences = np.abs(found - wanted)
    loss = FLOAT_LOSS * float(np.abs(wanted).max())
    assert differences.max() <= SUMS.steps * step + loss
    assert np.count_nonzero(differences > loss) <= SUMS.share * wanted.size


@pytest.mark.parametrize("quantizer", QUANTIZERS)
@pytest.mark.parametrize("name", NETWORKS)
def test_interpreted_and_compiled(name: str, quantizer: str) -> None:
    """Compiled, the module gives the interpreter's bits."""
    model, module = quantized_network(name, quantizer), imported(name, quantizer)
    found, executable = [run(module, [image.numpy()])[0] for image in model.images], qdialect.compile(module)
    for image, wanted in zip(model.images, found, strict=True):
        assert np.array_equal(executable(image.numpy()), wanted)
    assert_close(np.stack(found), np.stack(model.results()), step_of(module))


@pytest.mark.parametrize("quantizer", QUANTIZERS)
@pytest.mark.parametrize("name", NETWORKS)
def test_every_tensor_of_values(name: str, quantizer: str) -> None:
    """Not only results: whatever the network quantizes on the way."""
    torch: Any = import_module("torch")
    model = quantized_network(name, quantizer)
    opened = model.opened()
    module = import_torch(torch.export.export(opened, (model.images[0],)))
    total = differing = 0
    for image in model.images[:2]:
        with torch.no_grad():
            wanted = [values.numpy().astype(np.int64) for values in opened(image)]
        for found, values in zip(run(module, [image.numpy()]), wanted, strict=True):
            steps = np.abs(found.astype(np.int64) - values)
            assert steps.max() <= SUMS.steps
            total += steps.size
            differing += np.count_nonzero(steps)
    assert differing <= SUMS.share * total


@pytest.mark.parametrize("quantizer", QUANTIZERS)
@pytest.mark.parametrize("name", NETWORKS)
def test_torch_compile(name: str, quantizer: str) -> None:
    """Through Dynamo a model is what it is through export."""
    model, module = quantized_network(name, quantizer), imported(name, quantizer)
    torch: Any = import_module("torch")
    fast = torch.compile(model.model, backend=compile_captured)
    for image in model.images[:2]:
        with torch.no_grad():
            found = fast(image).numpy()
        assert np.array_equal(found, run(module, [image.numpy()])[0])


# Of each network: its contractions, all but those whose float results somebody reads fused into one kernel each, and
# the other ops once it is fused.
FUSED_PROGRAMS = {
    ("resnet", "x86"): (6, {"max_pool2d", "mean", "dynamic_dense"}),
    ("resnet", "xnnpack"): (7, {"max_pool2d", "mean"}),
    ("mobilenet", "x86"): (8, {"mean", "dynamic_conv2d", "dynamic_dense"}),
    ("mobilenet", "xnnpack"): (13, {"mean", "mul"}),
    ("perceptron", "x86"): (2, {"dynamic_dense"}),
    ("perceptron", "xnnpack"): (3, set[str]()),
}
EDGES = {"quantize", "dequantize", "transpose", "reshape", "constant", "broadcast"}


@pytest.mark.parametrize("quantizer", QUANTIZERS)
@pytest.mark.parametrize("name", NETWORKS)
def test_fused(name: str, quantizer: str) -> None:
    module = import_torch(quantized_network(name, quantizer).exported())
    qdialect.PassManager("fuse-qnn").run(module)
    (function,) = module.body.operations
    names = [op.operation.name for op in function.regions[0].blocks[0].operations]
    kernels = [op.removeprefix("qnn.") for op in names if op.startswith("qnn.")]
    count, others = FUSED_PROGRAMS[name, quantizer]
    assert sum(kernel.startswith("fused_") for kernel in kernels) == count
    assert {kernel for kernel in kernels if not kernel.startswith("fused_")} - EDGES == others
    # The image comes with its channels first; nothing else is turned.
    assert kernels.count("transpose") == (name != "perceptron")
    if quantizer == "xnnpack":
        # Everything between quantize and dequantize is 8 bits wide.
        assert kernels.count("quantize") == kernels.count("dequantize") == 1
        assert not any(op.startswith(("arith.", "math.")) for op in names)


# Real networks from files: the numbers that were recorded of TFLite, in a process without the compiler.

SAVED = ["mobilenet_v1_0.25_224_quant", "kws_ref_model", "ad01_int8", "pretrainedResnet_quant", "dcgan_generator_int8"]
PROGRAM = """
import sys
import numpy as np
import qdialect

executable = qdialect.load(sys.argv[1])
found = executable(*(np.load(f"{sys.argv[2]}/in_{i}.npy") for i in range(len(executable.inputs))))
for i, array in enumerate(found if isinstance(found, tuple) else (found,)):
    wanted = np.load(f"{sys.argv[2]}/ref_{i}.npy")
    assert array.dtype == wanted.dtype
    print(int((array != wanted).sum()), "torch_mlir" in sys.modules)
"""


@pytest.mark.parametrize(("name", "cpu"), [*((name, "host") for name in SAVED), (SAVED[1], "x86-64")])
def test_loaded_networks_give_the_recorded_numbers(
    name: str,
    cpu: str,
    tmp_path: Path,
    require_model: Callable[[str], Path],
    require_reference: Callable[..., Mapping[str, Array]],
) -> None:
    path, recorded = tmp_path / "network.so", require_reference(name)
    assert command.main([str(require_model(name)), "-o", str(path), "--mcpu", cpu]) == 0
    for title, array in recorded.items():
        if re.fullmatch(r"(in|ref)_\d+", title):
            np.save(tmp_path / f"{title}.npy", array)
    printed = output_of(PROGRAM, str(path), str(tmp_path)).splitlines()
    assert printed
    assert set(printed) == {"0 False"}


# How much memory networks need: an arena near what lives at once, constants near the model's, nothing for a call.

# The arena as a multiple of what lives at once; packed weights, and all constants, as multiples of the model's. Beyond
# 1.1 are arenas with borders around small images; beyond 1.15 weights with rows of 3 or 5 taps that are packed as 4 and
# 8, and what requantization needs for each channel of networks that have few weights a channel.
MEMORY = {
    "tflite/mobilenet_v1_0.25_224_quant.tflite": (1.02, 1.06, 1.18),
    "tflite/vww_96_int8.tflite": (1.04, 1.04, 1.11),
    "tflite/kws_ref_model.tflite": (1.27, 1.06, 1.21),
    "tflite/ad01_int8.tflite": (1.1, 1.01, 1.08),
    "tflite/pretrainedResnet_quant.tflite": (1.12, 1.02, 1.08),
    "tflite/tf2_mobilenet_v2_1.0_224_ptq.tflite": (1.02, 1.02, 1.05),
    "tflite/bisonai_mobilenetv3_mnist.tflite": (1.04, 1.15, 1.29),
    "tflite/dcgan_generator_int8.tflite": (1.75, 1.03, 1.1),
    "tflite/derived_selfie_segmenter_a8w8.tflite": (1.02, 1.3, 1.82),
    "tflite/deeplabv3_mnv2_dm05_pascal_quant.tflite": (1.03, 1.16, 1.37),
    "onnx/mobilenet_v2_torch_qat_qdq.onnx": (1.04, 1.02, 1.04),
}


def operations(module: ir.Module) -> list[ir.Operation]:
    (function,) = module.body.operations
    return [op.operation for op in function.operation.regions[0].blocks[0].operations]


def model_weights(module: ir.Module) -> int:
    """Bytes of the model's 8-bit constants."""
    return sum(array.nbytes for array in constants_of(module) if array.itemsize == 1)


def model_constants(module: ir.Module) -> int:
    """Bytes of its constants, and 4 for each scale of an output channel."""
    scales = [op.attributes["weight_scales"] for op in operations(module) if "weight_scales" in op.attributes]
    return sum(array.nbytes for array in constants_of(module)) + sum(4 * len(ir.DenseF64ArrayAttr(s)) for s in scales)


@pytest.mark.parametrize("name", MEMORY)
def test_memory_is_near_what_the_network_needs(require_model: Callable[[str], Path], name: str) -> None:
    module = qdialect.read_model(require_model(name))
    lowered = lower(module, targets.TARGETS["avx512vbmi"], Phase.LINALG)
    max_arena, max_weights, max_constants = MEMORY[name]
    assert lowered.live_bytes <= lowered.arena_bytes <= max_arena * lowered.live_bytes
    assert model_weights(module) <= lowered.weights_bytes <= max_weights * model_weights(module)
    assert lowered.constants.size <= max_constants * model_constants(module)


@pytest.mark.parametrize("name", ["amxint8", "avx512vbmi", "avx2"])
def test_generated_code_calls_nothing_but_itself(require_model: Callable[[str], Path], name: str) -> None:
    """So it cannot allocate either: a function of somebody else's would be declared."""
    module = qdialect.read_model(require_model("tflite/kws_ref_model.tflite"))
    lowered = lower(module, targets.resolve(name))
    found = [op.operation for op in lowered.module.body.operations]
    functions = [op for op in found if op.name == "llvm.func"]
    assert functions
    assert all(len(op.regions[0].blocks) for op in functions)
    # There are also constants of the code, such as the shapes of matrix tiles.
    others = [op for op in found if op.name != "llvm.func"]
    assert all(op.name == "llvm.mlir.global" and "constant" in op.attributes for op in others)


def test_a_call_allocates_nothing(require_model: Callable[[str], Path]) -> None:
    executable = compile_module(qdialect.read_model(require_model("tflite/kws_ref_model.tflite")))
    outputs = [np.empty(port.shape, port.dtype) for port in executable.outputs]
    call = executable.bind(random_inputs(executable.inputs, 0), outputs)
    call()
    # Other threads of the process may allocate meanwhile; what the call does, it does each time.
    maximum = min(traced(call) for _ in range(5))
    # As much as Python needs for a call of a function.
    assert maximum < 1000


def traced(call: Callable[[], object]) -> int:
    """The most bytes that Python's allocator had given out at a time during 100 calls."""
    tracemalloc.start()
    try:
        for _ in range(100):
            call()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
