"""Executables: arrays in and out, what is refused, and targets."""

import array
import gc
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from drawn_graphs import graph, random_inputs
from numpy.typing import NDArray
from quantized_layers import add, fused

import qdialect
from qdialect import targets
from qdialect.ir._mlir import arith, ir
from qdialect.ir.context import parse
from qdialect.reference import interpreter
from qdialect.runtime import Executable, compile_module, memory
from qdialect.runtime.compiler import CompiledExecutable
from qdialect.support.diagnostics import InputError, VerificationError

IMAGE = "tensor<1x5x6x3xui8>"
NAMES = """
module {
  func.func @main(%x: tensor<2x3xi8> {qnn.name = "image", qnn.scale = 0.5 : f64, qnn.zero_point = -3 : i64})
      -> (tensor<2x3xi8> {qnn.name = "scores"}) {
    %y = "qnn.clip"(%x) {min = -5 : i64, max = 9 : i64} : (tensor<2x3xi8>) -> tensor<2x3xi8>
    func.return %y : tensor<2x3xi8>
  }
}
"""


def one_layer() -> ir.Module:
    return graph([IMAGE], fused)


def two_layers() -> ir.Module:
    """Two inputs and two results, the second signed."""
    return graph([IMAGE, IMAGE], lambda x, y: [fused(x), fused(add(x, y), "i8")])


@pytest.fixture(scope="module")
def layer() -> CompiledExecutable:
    return compile_module(one_layer())


@pytest.fixture(scope="module")
def image() -> NDArray[Any]:
    return random_inputs(one_layer())[0]


@pytest.fixture(scope="module")
def expected(image: NDArray[Any]) -> NDArray[Any]:
    return interpreter.run(one_layer(), [image])[0]


def test_one_result_is_an_array(layer: CompiledExecutable, image: NDArray[Any], expected: NDArray[Any]) -> None:
    found = layer(image)
    assert isinstance(found, np.ndarray)
    assert found.dtype == expected.dtype
    np.testing.assert_array_equal(found, expected)


def test_several_results_are_a_tuple() -> None:
    module = two_layers()
    inputs = random_inputs(module)
    found, wanted = compile_module(module)(*inputs), interpreter.run(module, inputs)
    assert isinstance(found, tuple)
    assert [array.dtype.name for array in found] == ["uint8", "int8"]
    for one, other in zip(found, wanted, strict=True):
        np.testing.assert_array_equal(one, other)


def test_ports_say_what_a_network_takes_and_gives() -> None:
    executable = compile_module(parse(NAMES))
    (taken,), (given,) = executable.inputs, executable.outputs
    assert (taken.name, taken.shape, taken.dtype) == ("image", (2, 3), np.dtype(np.int8))
    assert (taken.scale, taken.zero_point) == (0.5, -3)
    assert (given.name, given.scale, given.zero_point) == ("scores", None, None)


def test_memory_comes_from_the_allocator(image: NDArray[Any], expected: NDArray[Any]) -> None:
    sizes: list[int] = []

    def allocate(size: int) -> NDArray[np.uint8]:
        sizes.append(size)
        return memory.allocate(size)

    executable = compile_module(one_layer(), allocate=allocate)
    np.testing.assert_array_equal(executable(image), expected)
    assert all(size % memory.ALIGNMENT == 0 for size in sizes)
    assert sizes[0] >= executable.constants_bytes
    assert sizes[1] >= executable.working_memory


def test_large_blocks_start_at_a_huge_page_and_can_be_written() -> None:
    huge = 1 << 21
    for size in (huge - 1, huge, 3 * huge + 17):
        block = memory.allocate(size)
        assert block.shape == (size,)
        assert block.ctypes.data % (huge if size >= huge else memory.ALIGNMENT) == 0
        block[:] = 7
        assert block.min() == 7


def views(image: NDArray[Any]) -> dict[str, NDArray[Any]]:
    """The same values with other strides."""
    return {
        "fortran": np.asfortranarray(image),
        "strided": np.repeat(image, 2, axis=2)[:, :, ::2],
        "reversed": image[:, ::-1].copy()[:, ::-1],
    }


@pytest.mark.parametrize("name", ["fortran", "strided", "reversed"])
def test_an_input_may_have_any_strides(
    layer: CompiledExecutable, image: NDArray[Any], expected: NDArray[Any], name: str
) -> None:
    np.testing.assert_array_equal(layer(views(image)[name]), expected)


def test_run_writes_into_the_callers_arrays(
    layer: CompiledExecutable, image: NDArray[Any], expected: NDArray[Any]
) -> None:
    output = np.zeros_like(expected)
    layer.run([image], [output])
    np.testing.assert_array_equal(output, expected)


def test_an_output_may_be_part_of_an_array(
    layer: CompiledExecutable, image: NDArray[Any], expected: NDArray[Any]
) -> None:
    batch = np.zeros((3, *expected.shape), expected.dtype)
    layer.run([image], [batch[1]])
    np.testing.assert_array_equal(batch[1], expected)
    assert not batch[[0, 2]].any()


def test_arrays_of_a_call_must_not_overlap() -> None:
    executable = compile_module(graph([IMAGE, IMAGE], lambda x, y: [fused(x), fused(y)]))
    # 90 bytes an input, 150 a result.
    block = np.zeros(1000, np.uint8)
    inputs = [block[:90].reshape(1, 5, 6, 3), block[100:190].reshape(1, 5, 6, 3)]
    first = block[400:550].reshape(1, 5, 6, 5)
    with pytest.raises(InputError, match="output 'res1' must not share memory with input 'arg1'"):
        executable.run(inputs, [first, block[189:339].reshape(1, 5, 6, 5)])
    with pytest.raises(InputError, match="output 'res1' must not share memory with output 'res0'"):
        executable.run(inputs, [first, block[549:699].reshape(1, 5, 6, 5)])
    executable.run(inputs, [first, block[550:700].reshape(1, 5, 6, 5)])


def doubled(*values: ir.Value) -> list[ir.Value]:
    return [arith.addf(value, value) for value in values]


def test_many_arrays_of_a_call_must_not_overlap() -> None:
    """Inputs may, and one may lie inside another."""
    types = ["tensor<4xf32>", "tensor<40xf32>"] + ["tensor<4xf32>"] * 4
    executable = compile_module(graph(types, doubled))
    block = np.arange(400, dtype=np.float32)
    inputs = [block[10:14], block[:40], *(block[8:12] for _ in range(4))]
    outputs = [block[50:54], block[100:140], *(block[200 + 4 * i :][:4] for i in range(4))]
    for number, start, other in ((0, 39, "input 'arg1'"), (0, 37, "input 'arg1'"), (5, 136, "output 'res1'")):
        wrong = [block[start:][:4] if i == number else output for i, output in enumerate(outputs)]
        with pytest.raises(InputError, match=f"output 'res{number}' must not share memory with {other}"):
            executable.run(inputs, wrong)
    executable.run(inputs, outputs)
    np.testing.assert_array_equal(outputs[1], 2 * np.arange(40))


def test_a_binding_reads_its_inputs_at_each_call(layer: CompiledExecutable, image: NDArray[Any]) -> None:
    bound_image, output = np.zeros_like(image), np.zeros((1, 5, 6, 5), np.uint8)
    call = layer.bind([bound_image], [output])
    assert not output.any()
    for seed in range(3):
        bound_image[...] = random_inputs(one_layer(), seed)[0]
        call()
        np.testing.assert_array_equal(output, interpreter.run(one_layer(), [bound_image])[0])
    assert call.inputs[0] is bound_image
    assert call.outputs[0] is output


def test_bindings_and_calls_take_turns(layer: CompiledExecutable, image: NDArray[Any], expected: NDArray[Any]) -> None:
    other = random_inputs(one_layer(), 5)[0]
    first, second = np.zeros_like(expected), np.zeros_like(expected)
    bound = [layer.bind([image], [first]), layer.bind([other], [second])]
    for call in (*bound, *reversed(bound)):
        call()
    found = layer(other)
    np.testing.assert_array_equal(first, expected)
    np.testing.assert_array_equal(second, found)
    np.testing.assert_array_equal(found, interpreter.run(one_layer(), [other])[0])


def test_a_binding_needs_neither_executable_nor_callers_arrays(image: NDArray[Any], expected: NDArray[Any]) -> None:
    call = compile_module(one_layer()).bind([image.copy()], [np.zeros_like(expected)])
    gc.collect()
    for _ in range(3):
        call()
    np.testing.assert_array_equal(call.outputs[0], expected)


@pytest.mark.parametrize("name", ["fortran", "strided", "reversed"])
def test_an_input_that_would_be_copied_cannot_be_bound(
    layer: CompiledExecutable, image: NDArray[Any], name: str
) -> None:
    with pytest.raises(InputError, match="input 'arg0' must be a contiguous and aligned array to be bound"):
        layer.bind([views(image)[name]], [np.zeros((1, 5, 6, 5), np.uint8)])


def test_words_must_be_aligned() -> None:
    executable = compile_module(graph(["tensor<4xi16>"], lambda x: [x]))
    block = np.zeros(9, np.uint8)
    odd = block[1:].view(np.int16)
    assert not odd.flags.aligned
    np.testing.assert_array_equal(executable(odd), odd)
    with pytest.raises(InputError, match="output 'res0' must be a contiguous, aligned and writable array"):
        executable.run([np.zeros(4, np.int16)], [odd])
    with pytest.raises(InputError, match="must be a contiguous and aligned array to be bound"):
        executable.bind([odd], [np.zeros(4, np.int16)])


def test_compile_takes_a_path_or_a_module(tmp_path: Path, image: NDArray[Any], expected: NDArray[Any]) -> None:
    module = one_layer()
    before = str(module)
    path = tmp_path / "layer.mlir"
    path.write_text(before)
    for model in (path, str(path), module):
        np.testing.assert_array_equal(qdialect.compile(model)(image), expected)
    assert str(module) == before


def test_compile_refuses_a_module_that_breaks_a_constraint() -> None:
    module = one_layer()
    op = module.body.operations[0].regions[0].blocks[0].operations[2]
    with module.context:
        op.operation.attributes["groups"] = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), 2)
    with pytest.raises(VerificationError, match="groups"):
        compile_module(module)


def without_vnni(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(targets, "host_features", lambda: frozenset({"avx512f"}))


def test_a_cpu_without_vnni_takes_the_portable_way(
    monkeypatch: pytest.MonkeyPatch, image: NDArray[Any], expected: NDArray[Any]
) -> None:
    without_vnni(monkeypatch)
    assert targets.resolve("host").kind.name == "x86-64"
    np.testing.assert_array_equal(compile_module(one_layer())(image), expected)


# Arrays of other packages: read where they lie, written where they lie, or refused by name.

ADD = """func.func @main(%x: tensor<6xf32> {qnn.name = "x"}) -> (tensor<6xf32> {qnn.name = "y"}) {
  %0 = arith.addf %x, %x : tensor<6xf32>
  return %0 : tensor<6xf32>
}"""
VALUES: Any = np.arange(6, dtype=np.float32)
FROM_NUMPY: Any = vars(torch)["from_numpy"]


@pytest.fixture(scope="module")
def executable() -> Executable:
    return qdialect.compile(parse(ADD))


class Interface:
    """An object with an ``__array_interface__`` and nothing else."""

    def __init__(self, values: NDArray[Any]) -> None:
        self.values = values
        self.__array_interface__ = values.__array_interface__


class Exporter:
    """An object with DLPack and nothing else, on some device."""

    def __init__(self, values: NDArray[Any], device: int = 1) -> None:
        self.values, self.device = values, device

    def __dlpack__(self, **options: Any) -> object:
        return self.values.__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.device, 0


class Broken:
    """An object that raises an error of its own when it is asked for its memory."""

    @property
    def __array_interface__(self) -> dict[str, Any]:
        raise RuntimeError("the memory is gone")


class BrokenExporter(Exporter):
    def __dlpack_device__(self) -> tuple[int, int]:
        raise BufferError("the device is gone")


def released() -> memoryview:
    view = memoryview(VALUES)
    view.release()
    return view


def forms() -> Iterator[tuple[str, Any]]:
    values = VALUES.copy()
    yield "interface", Interface(values)
    yield "dlpack", Exporter(values)
    yield "array", array.array("f", values)
    yield "memoryview", memoryview(values)
    yield "read-only memoryview", memoryview(values).toreadonly()
    yield "tensor", FROM_NUMPY(values)
    yield "tensor with gradient", FROM_NUMPY(values).requires_grad_()
    yield "strided tensor", FROM_NUMPY(np.repeat(values, 2))[::2]
    yield "strided array", np.repeat(values, 2)[::2]
    yield "unaligned array", np.frombuffer(b"\0" + values.tobytes(), np.uint8)[1:].view(np.float32)


FORMS = dict(forms())
ONE_COPY = ("strided tensor", "strided array", "unaligned array")


@pytest.mark.parametrize("name", FORMS)
def test_inputs_of_every_form(executable: Executable, name: str) -> None:
    np.testing.assert_array_equal(executable(FORMS[name]), 2 * VALUES)


@pytest.mark.parametrize("name", [name for name in FORMS if name not in ONE_COPY])
def test_an_array_that_fits_is_read_where_it_lies(executable: Executable, name: str) -> None:
    # A bound call reads what is there then, so that a copy would show.
    found = FORMS[name]
    output = np.empty(6, np.float32)
    call = executable.bind([found], [output])
    source = call.inputs[0]
    call()
    np.testing.assert_array_equal(output, 2 * VALUES)
    if isinstance(found, torch.Tensor):
        start = found.data_ptr()
    else:
        held = found.values if isinstance(found, Interface | Exporter) else np.asarray(memoryview(found))
        start = held.ctypes.data
    assert source.ctypes.data == start


def test_outputs_of_other_packages(executable: Executable) -> None:
    tensor: Any = torch.empty(6)
    view = array.array("f", bytes(24))
    assert executable(VALUES, out=tensor) is tensor
    assert tensor.tolist() == (2 * VALUES).tolist()
    executable.run([VALUES], [view])
    assert view.tolist() == (2 * VALUES).tolist()


def test_tensors_are_returned_when_asked_for(executable: Executable) -> None:
    found = executable(FROM_NUMPY(VALUES), returns="torch")
    assert type(found) is torch.Tensor
    np.testing.assert_array_equal(found, 2 * VALUES)
    assert isinstance(executable(FROM_NUMPY(VALUES)), np.ndarray)
    with pytest.raises(InputError, match="returns must be numpy, torch or dict, but got 'jax'"):
        executable(VALUES, returns="jax")


WANTED = r"input 'x' must be an array float32\[6\]"
REFUSED: dict[str, tuple[Any, str]] = {
    "list": (VALUES.tolist(), f"{WANTED}, but got list"),
    "bytes of another shape": (VALUES.tobytes(), r"input 'x' must be float32\[6\], but got uint8\[24\]"),
    "dtype": (torch.zeros(6, dtype=torch.float64), r"input 'x' must be float32\[6\], but got float64\[6\]"),
    "byte order": (VALUES.astype(">f4"), r"input 'x' must be float32\[6\], but got >f4\[6\]"),
    "shape": (torch.zeros(2, 3), r"input 'x' must be float32\[6\], but got float32\[2, 3\]"),
    "bfloat16": (torch.zeros(6, dtype=torch.bfloat16), r"input 'x' must be float32\[6\], but got bfloat16\[6\]"),
    "complex": (torch.zeros(6, dtype=torch.complex32), f"{WANTED}, but got a tensor of torch.complex32 and "),
    "sparse": (torch.zeros(6).to_sparse(), f"{WANTED}, but got a tensor of torch.float32 and torch.sparse_coo"),
    "meta": (torch.zeros(6, device="meta"), f"{WANTED} on the CPU, but got a tensor on meta"),
    "device": (Exporter(VALUES, 2), f"{WANTED} on the CPU, but got an object of Exporter on CUDA:0"),
    "unknown device": (Exporter(VALUES, 99), f"{WANTED} on the CPU, but got an object of Exporter on device type 99"),
    "object": (object(), f"{WANTED}, but got object"),
    "none": (None, f"{WANTED}, but got NoneType"),
    "type": (Interface, WANTED),
    "broken": (Broken(), f"{WANTED}, but got an object of Broken that NumPy cannot read: the memory is gone"),
    "broken exporter": (BrokenExporter(VALUES), f"{WANTED}, but got .* that NumPy cannot read: the device is gone"),
    "released": (released(), f"{WANTED}, but got an object of memoryview that NumPy cannot read: operation forbidden"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_an_array_that_does_not_fit_is_refused_by_name(executable: Executable, name: str) -> None:
    found, message = REFUSED[name]
    for call in (lambda: executable(found), lambda: executable.bind([found], [np.empty(6, np.float32)])):
        with pytest.raises(InputError, match=message):
            call()


@pytest.mark.parametrize(
    ("output", "message"),
    [
        (memoryview(VALUES).toreadonly(), "output 'y' must be a contiguous, .* but got one that is read-only"),
        (torch.empty(12)[::2], "output 'y' must be a contiguous, .* but got one that is not contiguous"),
        (torch.empty(6, dtype=torch.int32), r"output 'y' must be float32\[6\], but got int32\[6\]"),
        ([0.0] * 6, r"output 'y' must be an array float32\[6\], but got list"),
    ],
)
def test_array_likes_that_do_not_fit(executable: Executable, output: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        executable(VALUES, out=output)


def test_arrays_of_different_packages_that_overlap(executable: Executable) -> None:
    tensor = torch.zeros(9)
    with pytest.raises(InputError, match="output 'y' must not share memory with input 'x'"):
        executable.run([tensor[:6].numpy()], [tensor[3:]])
