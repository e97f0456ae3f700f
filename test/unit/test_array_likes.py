"""Arrays of other packages: read where they lie, written where they lie, or refused by name."""

from __future__ import annotations

import array
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

import qdialect
from qdialect.ir.context import parse
from qdialect.runtime import Executable
from qdialect.support.diagnostics import InputError

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
    """What has an ``__array_interface__`` and nothing else."""

    def __init__(self, values: NDArray[Any]) -> None:
        self.values = values
        self.__array_interface__ = values.__array_interface__


class Exporter:
    """What has DLPack and nothing else, on some device."""

    def __init__(self, values: NDArray[Any], device: int = 1) -> None:
        self.values, self.device = values, device

    def __dlpack__(self, **options: Any) -> object:
        return self.values.__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.device, 0


class Broken:
    """What raises an error of its own when it is asked for its memory."""

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
def test_what_fits_is_read_where_it_lies(executable: Executable, name: str) -> None:
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
    with pytest.raises(InputError, match="returns must be numpy or torch, but got 'jax'"):
        executable(VALUES, returns="jax")


WANTED = r"input 'x' must be an array float32\[6\]"
REFUSED: dict[str, tuple[Any, str]] = {
    "list": (VALUES.tolist(), f"{WANTED}, but got list"),
    "bytes of another shape": (VALUES.tobytes(), r"input 'x' must be float32\[6\], but got uint8\[24\]"),
    "dtype": (torch.zeros(6, dtype=torch.float64), r"input 'x' must be float32\[6\], but got float64\[6\]"),
    "byte order": (VALUES.astype(">f4"), r"input 'x' must be float32\[6\], but got >f4\[6\]"),
    "shape": (torch.zeros(2, 3), r"input 'x' must be float32\[6\], but got float32\[2, 3\]"),
    "bfloat16": (
        torch.zeros(6, dtype=torch.bfloat16),
        f"{WANTED}, but got a tensor of torch.bfloat16 and ",
    ),
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
def test_what_does_not_fit_is_refused_by_name(executable: Executable, name: str) -> None:
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
def test_outputs_that_do_not_fit(executable: Executable, output: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        executable(VALUES, out=output)


def test_arrays_of_different_packages_that_overlap(executable: Executable) -> None:
    tensor = torch.zeros(9)
    with pytest.raises(InputError, match="output 'y' must not share memory with input 'x'"):
        executable.run([tensor[:6].numpy()], [tensor[3:]])
