"""Parameters and buffers of a captured graph, which are constants of compiled code: whether they are as they were.

PyTorch tells of no write, so a call asks it of each of hundreds.  A loop of machine code does, on what Python's objects
and PyTorch's tensors are in memory: 20 nanoseconds for each, a fifth of what attributes take.  Where it does not find
there what the attributes say, which it compares once, or PyTorch's library lacks the functions, the attributes are
asked.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from functools import cache
from importlib import import_module
from operator import attrgetter, is_, itemgetter
from pathlib import Path
from typing import Any

from qdialect.ir.context import make_context, parse_generated
from qdialect.runtime.compiler import MachineCode
from qdialect.support.diagnostics import CompileError

_WORD = 8
"""In bytes."""
_UNCOUNTED = -1
"""The version of a tensor of inference mode."""


class ConstantState:
    """Constants as they were when a graph was compiled: the same tensors, their memory, and what was written there.

    Writes are those that PyTorch counts.  It counts none through ``tensor.data`` and arrays that share the memory, so
    the bytes in the middle of each tensor are compared too: they tell where all of it is new, and of others not.
    """

    def __init__(self, positions: Sequence[int], tensors: Sequence[Any]) -> None:
        """`tensors` are the arguments at `positions`."""
        # The first one twice, since one position alone gives no tuple.
        positions, tensors = (*positions, *positions[:1]), (*tensors, *tensors[:1])
        self._given: Callable[[Any], Any] | None = itemgetter(*positions) if positions else None
        self._tensors = tensors
        # Memory that is kept is not that of another tensor later, even if these are given other memory.
        self._memory = [one.detach() for one in tensors]
        self._address: Callable[[Any], int] = import_module("torch").Tensor.data_ptr
        self._counted = [one for one in tensors if not one.is_inference()]
        samples = [_sample(one) for one in tensors]
        self._words = [ctypes.c_uint64.from_address(address) for address, mask in samples if mask]
        self._masks = [mask for _, mask in samples if mask]
        self._found = self._addresses(), self._written()
        self._is_same = _machine_check(positions, tensors, samples) if positions else None

    def is_current(self, plain: list[Any]) -> bool:
        """Whether the constants among the arguments are as they were."""
        if self._given is None:
            return True
        if self._is_same:
            return bool(self._is_same(plain))
        addresses, written = self._found
        # A tensor at another address may have no memory.
        is_there = all(map(is_, self._given(plain), self._tensors)) and self._addresses() == addresses
        return is_there and self._written() == written

    def _addresses(self) -> list[int]:
        return list(map(self._address, self._tensors))

    def _written(self) -> tuple[list[int], list[int]]:
        words = [word.value & mask for word, mask in zip(self._words, self._masks, strict=True)]
        return list(map(attrgetter("_version"), self._counted)), words


def _sample(tensor: Any) -> tuple[int, int]:
    """The address of the word that has the middle of a tensor, and which bits of it are the tensor's; 0 for none."""
    if not tensor.numel():
        return 0, 0
    size, start = tensor.element_size(), tensor.data_ptr()
    middle = start + size * sum(extent // 2 * by for extent, by in zip(tensor.shape, tensor.stride(), strict=True))
    first, last = (start, start + size * tensor.numel()) if tensor.is_contiguous() else (middle, middle + size)
    word = middle - middle % _WORD
    first, last = max(first, word), min(last, word + _WORD)
    return word, (1 << 8 * (last - word)) - (1 << 8 * (first - word))


_VERSION = "_ZNK2at10TensorBase8_versionEv"
_FIELDS = ("position", "object", "implementation", "address", "version", "word", "mask", "value")

_LOOP = """
module {{
  llvm.func @PyList_GetItem(!llvm.ptr, i64) -> !llvm.ptr
  llvm.func @aoti_torch_get_data_ptr(!llvm.ptr, !llvm.ptr) -> i32
  llvm.func @{version}(!llvm.ptr) -> i64
  llvm.func @is_same(%list: !llvm.ptr, %rows: !llvm.ptr, %count: i64, %offset: i64) -> i32 {{
    %0 = llvm.mlir.constant(0 : i64) : i64
    %1 = llvm.mlir.constant(1 : i64) : i64
    %yes = llvm.mlir.constant(1 : i32) : i32
    %no = llvm.mlir.constant(0 : i32) : i32
    %out = llvm.alloca %1 x i64 : (i64) -> !llvm.ptr
    llvm.br ^head(%0 : i64)
  ^head(%row: i64):
    %more = llvm.icmp "slt" %row, %count : i64
    llvm.cond_br %more, ^object, ^end(%yes : i32)
  ^object:
    {fields}
    %object_ = llvm.call @PyList_GetItem(%list, %position) : (!llvm.ptr, i64) -> !llvm.ptr
    %object__ = llvm.ptrtoint %object_ : !llvm.ptr to i64
    %same_object = llvm.icmp "eq" %object__, %object : i64
    llvm.cond_br %same_object, ^tensor, ^end(%no : i32)
  ^tensor:
    %tensor = llvm.getelementptr %object_[%offset] : (!llvm.ptr, i64) -> !llvm.ptr, i8
    %implementation_ = llvm.load %tensor : !llvm.ptr -> i64
    %same_implementation = llvm.icmp "eq" %implementation_, %implementation : i64
    llvm.cond_br %same_implementation, ^memory, ^end(%no : i32)
  ^memory:
    %status = llvm.call @aoti_torch_get_data_ptr(%tensor, %out) : (!llvm.ptr, !llvm.ptr) -> i32
    %is_known = llvm.icmp "eq" %status, %no : i32
    %address_ = llvm.load %out : !llvm.ptr -> i64
    %is_there = llvm.icmp "eq" %address_, %address : i64
    %same_address = llvm.and %is_known, %is_there : i1
    llvm.cond_br %same_address, ^content, ^end(%no : i32)
  ^content:
    %at = llvm.inttoptr %word : i64 to !llvm.ptr
    %word_ = llvm.load %at : !llvm.ptr -> i64
    %value_ = llvm.and %word_, %mask : i64
    %same_value = llvm.icmp "eq" %value_, %value : i64
    llvm.cond_br %same_value, ^counted, ^end(%no : i32)
  ^counted:
    %next = llvm.add %row, %1 : i64
    %is_counted = llvm.icmp "sge" %version, %0 : i64
    llvm.cond_br %is_counted, ^writes, ^head(%next : i64)
  ^writes:
    %version_ = llvm.call @{version}(%tensor) : (!llvm.ptr) -> i64
    %same_version = llvm.icmp "eq" %version_, %version : i64
    llvm.cond_br %same_version, ^head(%next : i64), ^end(%no : i32)
  ^end(%result: i32):
    llvm.return %result : i32
  }}
  llvm.func @address(%out: !llvm.ptr) {{
    %function = llvm.mlir.addressof @is_same : !llvm.ptr
    llvm.store %function, %out : !llvm.ptr, !llvm.ptr
    llvm.return
  }}
}}
"""


def _text() -> str:
    lines = [
        f"%at_{name} = llvm.getelementptr %rows[%row, {index}] : "
        f"(!llvm.ptr, i64) -> !llvm.ptr, !llvm.array<{len(_FIELDS)} x i64>\n"
        f"    %{name} = llvm.load %at_{name} : !llvm.ptr -> i64"
        for index, name in enumerate(_FIELDS)
    ]
    return _LOOP.format(version=_VERSION, fields="\n    ".join(lines))


@cache
def machine_loop() -> tuple[Callable[..., int], object] | None:
    """The loop, called with the interpreter's lock held, and what keeps it alive; None where PyTorch is another one."""
    torch: Any = import_module("torch")
    path = Path(torch.__file__).parent / "lib" / "libtorch_cpu.so"
    try:
        library = ctypes.CDLL(str(path))
        found = [ctypes.pythonapi.PyList_GetItem, library.aoti_torch_get_data_ptr, library[_VERSION]]
        names = ("PyList_GetItem", "aoti_torch_get_data_ptr", _VERSION)
        symbols = {name: ctypes.cast(one, ctypes.c_void_p).value or 0 for name, one in zip(names, found, strict=True)}
        code = MachineCode(parse_generated(_text(), make_context(), "is_same"), symbols)
    except (OSError, AttributeError, CompileError):
        return None
    address = ctypes.c_size_t()
    code.bind("address", [ctypes.addressof(address)]).call()
    words = [ctypes.c_size_t] * 3
    return ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, *words)(address.value), code


def _machine_check(
    positions: Sequence[int], tensors: Sequence[Any], samples: Sequence[tuple[int, int]]
) -> Callable[[list[Any]], int] | None:
    """`ConstantState.is_current` as machine code; None where tensors are not as it expects them."""
    loop, offset = machine_loop(), _offset(tensors)
    if loop is None or offset is None:
        return None
    is_same, code = loop
    own = ctypes.c_uint64()
    rows: list[int] = []
    for position, tensor, (word, mask) in zip(positions, tensors, samples, strict=True):
        version = _UNCOUNTED if tensor.is_inference() else tensor._version
        at = word or ctypes.addressof(own)
        value = ctypes.c_uint64.from_address(at).value & mask
        rows += [position, id(tensor), tensor._cdata, tensor.data_ptr(), version, at, mask, value]
    table = (ctypes.c_uint64 * len(rows))(*(one % (1 << 64) for one in rows))
    start, count = ctypes.addressof(table), len(positions)

    def call(plain: list[Any], _keep: object = (own, table, code)) -> int:
        return is_same(plain, start, count, offset)

    given: list[Any] = [None] * (max(positions) + 1)
    for position, tensor in zip(positions, tensors, strict=True):
        given[position] = tensor
    return call if call(given) else None


def _offset(tensors: Sequence[Any]) -> int | None:
    """Where the object of a tensor has the pointer to what PyTorch knows of it."""
    sizes = {type(one).__basicsize__ for one in tensors}
    for offset in range(object.__basicsize__, min(sizes), _WORD):
        if all(ctypes.c_size_t.from_address(id(one) + offset).value == one._cdata for one in tensors):
            return offset
    return None
