"""A compiled network as a list of kernel calls over planned memory.

`Program` collects kernels, constants and buffers while the ops of a network are lowered; then `render` gives every
buffer its offset in one arena and writes the module: each distinct kernel once, and a `main` that calls them.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qdialect.dialect.type_constraints import element_of
from qdialect.ir._mlir import ir
from qdialect.lowering.cost.register_tiles import sums_fit
from qdialect.lowering.cost.strategy import Strategy
from qdialect.lowering.ir.functions import CLOCK
from qdialect.lowering.qnn_to_linalg.program.kernel_text import PAIR_SUMS_FIT, SCRATCH, Buffer, KernelText, number_text
from qdialect.lowering.qnn_to_linalg.program.scalar_body import Value
from qdialect.support.interface import KernelCall, Tunable, kernel_names
from qdialect.support.large_constants import LARGE, append_table

# The layout of a tensor: a flat buffer, perhaps with padding around each image and padded channels.
#
# Inside a compiled network every 8-bit value is stored unsigned: an `i8` value c as the byte c + 128, its zero point
# and bounds shifted alike.  So every kernel reads u8, which is what the dot-product instruction takes, and a signed
# tensor costs a shifted zero point at compile time, nothing at run time.  An `i1` is a byte of 0 or 1, as in NumPy, and
# a float of 16 bits an i16 with its bits.
#
# A convolution's padding is part of its input's layout: the producer writes inside it, and the consumer reads it.  Only
# a user's array, or an image around which two consumers need different values, is copied to be padded.  Channels are
# rounded up to whole small vectors (the padding lanes), so that no kernel has a partial vector.

EXTRA_BYTES = 64
"""Bytes past the end of a buffer of the arena that a kernel may read: contiguous reductions are padded to K groups.

A K group is the 4 bytes along the reduction that one lane of a dot product reads (kr = 4 in XNNPACK, K padded to 4 in
oneDNN's VNNI layouts); of 16-bit data it is 2 values."""

STORAGE_ELEMENTS = {
    "i1": "i8",
    "i8": "i8",
    "ui8": "i8",
    "i16": "i16",
    "ui16": "i16",
    "i32": "i32",
    "i64": "i64",
    "f32": "f32",
    "f16": "i16",
    "bf16": "i16",
}
_STORED_UNSIGNED = ("i8", "ui8", "ui16")
ELEMENT_BYTES = {"i8": 1, "i16": 2, "i32": 4, "i64": 8, "f32": 4}

Pads = tuple[int, int, int, int]
"""Padding of an image in pixels: top, left, bottom, right."""
NO_PADS: Pads = (0, 0, 0, 0)


def signed_shift(type_: ir.Type) -> int:
    """The number that is added to a value of this tensor type when it is stored: 128 for `i8`, else 0."""
    return 128 if element_of(type_) == "i8" else 0


def is_stored_unsigned(type_: ir.Type) -> bool:
    """Whether stored quantized values of this tensor type are unsigned integers; all those of 8 bits are."""
    return element_of(type_) in _STORED_UNSIGNED


def widening(type_: ir.Type) -> str:
    """The op that makes a stored value of this tensor type a wider integer."""
    return "arith.extui" if is_stored_unsigned(type_) else "arith.extsi"


def element_bytes(type_: ir.MemRefType) -> int | None:
    """Bytes of an element of a buffer; None for a type that no tensor is stored with."""
    element = type_.element_type
    is_number = isinstance(element, ir.IntegerType | ir.F32Type)
    return element.width // 8 if is_number and element.width in (8, 16, 32, 64) else None


def lanes_for(channels: int) -> int:
    """Channels rounded up to whole vectors: to 4 for up to 4, else to a multiple of 8."""
    return 4 if channels <= 4 else (channels + 7) // 8 * 8


@dataclass(frozen=True)
class Storage:
    """Layout of one tensor: [N, H, W, C] with `pads` around each image and `pitch` lanes for C channels.

    A tensor of another rank has its leading dimensions in N, and H = W = 1.
    """

    shape: tuple[int, int, int, int]
    element: str
    pitch: int
    pads: Pads = NO_PADS

    @property
    def padded(self) -> tuple[int, int]:
        """Height and width with the padding."""
        top, left, bottom, right = self.pads
        return self.shape[1] + top + bottom, self.shape[2] + left + right

    @property
    def strides(self) -> tuple[int, int, int, int]:
        """Elements between neighbours along N, H, W and C."""
        height, width = self.padded
        return height * width * self.pitch, width * self.pitch, self.pitch, 1

    @property
    def origin(self) -> int:
        """Offset of the first element inside the padding."""
        return self.pads[0] * self.strides[1] + self.pads[1] * self.pitch

    @property
    def length(self) -> int:
        """Elements of the buffer, padding included."""
        return self.shape[0] * self.strides[0]

    def bytes(self) -> int:
        return self.length * ELEMENT_BYTES[self.element]

    def live_bytes(self) -> int:
        """Size of the tensor's elements, without padding around images and padding lanes."""
        return math.prod(self.shape) * ELEMENT_BYTES[self.element]


def image_shape(shape: tuple[int, ...]) -> tuple[int, int, int, int]:
    """A shape of any rank as [N, H, W, C]."""
    if len(shape) == 4:
        return shape[0], shape[1], shape[2], shape[3]
    return math.prod(shape[:-1]), 1, 1, shape[-1] if shape else 1


def storage_of(type_: ir.Type, pads: Pads = NO_PADS) -> Storage:
    """Layout of a tensor inside the arena: unsigned bytes, channels rounded up to whole vectors."""
    tensor = ir.RankedTensorType(type_)
    shape = image_shape(tuple(tensor.shape))
    return Storage(shape, STORAGE_ELEMENTS[element_of(type_)], lanes_for(shape[3]), pads)


def dense_storage_of(type_: ir.Type) -> Storage:
    """Layout of a user's array."""
    tensor = ir.RankedTensorType(type_)
    shape = image_shape(tuple(tensor.shape))
    return Storage(shape, STORAGE_ELEMENTS[element_of(type_)], shape[3])


# Offsets of buffers in one block of memory: two that live at the same time never overlap.

# A plan takes a millisecond; most networks need one.
_MAX_PLANS = 50


@dataclass(frozen=True)
class Lifetime:
    """A buffer's size in bytes, and the first and last call that touches it."""

    size: int
    first: int
    last: int


def plan_arena(lifetimes: Sequence[Lifetime], alignment: int) -> tuple[list[int], int]:
    """An offset for each buffer and the size of the block.

    Buffers are placed one by one, each as low as it fits, at first the largest before the others. While a smaller block
    is not ruled out, the buffer that reaches highest goes before all that it meets, and all are placed anew; the best
    of these plans is taken.
    """
    minimum = _lower_bound(lifetimes, alignment)
    # For each buffer those that live during some call with it.
    met: list[set[int]] = [set() for _ in lifetimes]
    for *others, last in _living(lifetimes):
        met[last].update(others)
        for other in others:
            met[other].add(last)
    order = sorted(range(len(lifetimes)), key=lambda i: -lifetimes[i].size)
    tried: set[tuple[int, ...]] = set()
    offsets, size = _assign_offsets(lifetimes, met, order, alignment)
    best = offsets, size
    while best[1] > minimum and len(tried) < _MAX_PLANS and tuple(order) not in tried:
        tried.add(tuple(order))
        highest = max(order, key=lambda i: offsets[i] + lifetimes[i].size)
        order.remove(highest)
        order.insert(next((position for position, i in enumerate(order) if i in met[highest]), 0), highest)
        offsets, size = _assign_offsets(lifetimes, met, order, alignment)
        best = min(best, (offsets, size), key=lambda plan: plan[1])
    return best


def peak(lifetimes: Sequence[Lifetime]) -> int:
    """The largest number of bytes that live during one call."""
    return max((sum(lifetimes[i].size for i in living) for living in _living(lifetimes)), default=0)


def _lower_bound(lifetimes: Sequence[Lifetime], alignment: int) -> int:
    """A size that no plan is below.

    Buffers that live at once begin at multiples of the alignment, so each takes up its size rounded up to one; only the
    one that reaches highest may end before.
    """
    unused = [-own.size % alignment for own in lifetimes]
    sizes = (
        sum(lifetimes[i].size + unused[i] for i in living) - max(unused[i] for i in living)
        for living in _living(lifetimes)
    )
    return max(sizes, default=0)


def _living(lifetimes: Sequence[Lifetime]) -> Iterator[list[int]]:
    """For each buffer, in the order in which their lives begin: those that live then, itself at the end."""
    living: list[int] = []
    for index in sorted(range(len(lifetimes)), key=lambda i: lifetimes[i].first):
        living = [i for i in living if lifetimes[i].last >= lifetimes[index].first] + [index]
        yield living


def _assign_offsets(
    lifetimes: Sequence[Lifetime], met: Sequence[Set[int]], order: Sequence[int], alignment: int
) -> tuple[list[int], int]:
    """Place buffers in this order, each at the lowest offset where it overlaps none that was placed before."""
    offsets: dict[int, int] = {}
    for index in order:
        taken = sorted((offsets[i], offsets[i] + lifetimes[i].size) for i in met[index] if i in offsets)
        offsets[index] = _lowest_gap(taken, lifetimes[index].size, alignment)
    size = max((offsets[i] + lifetimes[i].size for i in order), default=0)
    return [offsets[i] for i in range(len(lifetimes))], size


def _lowest_gap(taken: Sequence[tuple[int, int]], size: int, alignment: int) -> int:
    start = 0
    for low, high in taken:
        if start + size <= low:
            return start
        start = max(start, -(-high // alignment) * alignment)
    return start


ALIGNMENT = 64
_DATA_ELEMENTS = {1: "i8", 2: "i16", 4: "i32", 8: "i64"}


@dataclass(frozen=True)
class BufferSlot:
    """Where a buffer is: in the arena, in a user's input or output array, or among the constants."""

    kind: str
    """``arena``, ``input``, ``output``, ``constant`` or ``words``, which the working memory begins with."""
    index: int
    """Its number, or its offset in the constants' block."""
    storage: Storage
    offset: int = 0
    """Elements of the buffer before it, in the arena or among the constants."""
    signed: bool = False
    """Whether it holds quantized values of `i8` as they are, in a user's array, not shifted."""

    @property
    def has_extra_bytes(self) -> bool:
        """Whether a kernel may read padding lanes and `EXTRA_BYTES` past the end."""
        return self.kind in ("arena", "constant")


@dataclass(frozen=True)
class Data:
    """A constant array at an offset of the constants' block."""

    offset: int
    element: str
    length: int


@dataclass(frozen=True)
class Scalar:
    """A number handed to a kernel."""

    value: float
    type: str


Actual = BufferSlot | Data | Scalar


@dataclass
class Call:
    """A kernel and its arguments.

    `names` are those of the model's nodes that it computes, `location` is where the op stands.
    """

    kernel: int
    actuals: list[Actual]
    label: str
    names: tuple[str, ...]
    macs: int
    bytes_moved: int
    location: ir.Location | None = None
    tunable: Tunable | None = None


class Kernel(KernelText):
    """A kernel under construction: declaring a parameter also sets the argument that this call passes for it."""

    def __init__(self, program: Program) -> None:
        super().__init__(program.whole)
        self.program = program
        self.actuals: list[Actual] = program.whole.actuals if program.whole else []

    def slot(self, name: str, slot: BufferSlot) -> Buffer:
        """A parameter for the buffer of `slot`, or the buffer that the enclosing kernel has for it."""
        known = self.program.known_buffer(slot)
        if known is None:
            return self.parameter(name, slot)
        element, length = slot.storage.element, slot.storage.length
        return known if known.element == element else self.as_numbers(known, element, length)

    def parameter(self, name: str, slot: BufferSlot, *, attribute: str = "") -> Buffer:
        """A parameter for the buffer of `slot`, with an argument attribute."""
        self.actuals.append(slot)
        return self.buffer(name, slot.storage.element, slot.storage.length, attribute=attribute)

    def scratch(self, name: str, storage: Storage) -> Buffer:
        """A parameter for memory that each iteration of a loop writes before it reads it; each thread has its own."""
        return self.scratch_slot(name, self.program.buffer(storage))

    def scratch_slot(self, name: str, slot: BufferSlot) -> Buffer:
        """The same for a buffer that has its slot already."""
        return self.program.known_buffer(slot) or self.parameter(name, slot, attribute=SCRATCH)

    def data(self, name: str, array: NDArray[Any], *, is_weight: bool = False, in_pairs: bool = False) -> Buffer:
        """A parameter for constant data; `is_weight` for packed weights and the parameters packed with them.

        `in_pairs` are multiplied in pairs, by `vpmaddubsw`; raises `ValueError` if a pair's sum may exceed 16 bits.
        """
        if in_pairs and not sums_fit(array):
            raise ValueError(f"{name} must have pairs of weights whose sums of products fit 16 bits")
        found = self.program.constant(array)
        if is_weight:
            self.program.packed_weights[found] = array.nbytes
        self.actuals.append(found)
        attribute = PAIR_SUMS_FIT if in_pairs else ""
        return self.buffer(name, found.element, found.length, attribute=attribute)

    def table_buffer(self, values: NDArray[np.float32]) -> Buffer:
        """A parameter for constants that all bodies of the function share."""
        return self.data("table", values)

    def number(self, name: str, value: float, type_: str) -> Value:
        """A parameter for a number; bytes, 0..255 too, are signless."""
        self.actuals.append(Scalar((value + 128) % 256 - 128 if type_ == "i8" else value, type_))
        return self.scalar(name, type_)

    def limits(
        self, bounds: tuple[float, float], type_: str, names: Sequence[str] = ("low", "high")
    ) -> tuple[Value, Value]:
        """Parameters for the ends of a range."""
        return self.number(names[0], bounds[0], type_), self.number(names[1], bounds[1], type_)


@dataclass
class Program:
    """Kernels, calls, constants and buffers of one network."""

    inputs: Sequence[Storage]
    outputs: Sequence[Storage]
    strategy: Strategy
    kernels: dict[str, int] = field(default_factory=dict[str, int])
    """The number of the first call of each distinct kernel by its text, which has ``@KERNEL`` for its name; ascending.
    """
    calls: list[Call] = field(default_factory=list[Call])
    names: tuple[str, ...] = ()
    """Names of the model's nodes that the next calls compute."""
    location: ir.Location | None = None
    """Where the op stands that the next calls compute."""
    packed_weights: dict[Data, int] = field(default_factory=dict[Data, int])
    """Where weights lie among the constants, and their bytes."""
    externals: list[Data] = field(default_factory=list[Data])
    """Where the records of functions of other libraries lie among the constants, a record for each call."""
    symbols: dict[str, str] = field(default_factory=dict[str, str])
    """The target of each function of another library."""
    words: int = 0
    """How many i64 the working memory begins with: those by which external functions are called."""
    variants: Mapping[str, str] | None = None
    """The variant of each kernel that is not as the cost model chose, by `Tunable.kernel`; None where none is tuned."""
    tunable: Tunable | None = None
    """How the kernels of the next calls can be written."""
    whole: Kernel | None = None
    """The kernel whose parts the kernels of this program are; None where each is one of its own."""
    _arena: list[Storage] = field(default_factory=list[Storage])
    _constants: bytearray = field(default_factory=bytearray)
    _known: dict[tuple[str, bytes], Data] = field(default_factory=dict[tuple[str, bytes], Data])
    _large: dict[int, tuple[int, bytes]] = field(default_factory=dict[int, tuple[int, bytes]])
    """Bytes and digest of constants that have a row in the table, by their offset."""

    def constant(self, array: NDArray[Any]) -> Data:
        """Put `array` into the constants' block, aligned; equal arrays are stored once."""
        element = "f32" if array.dtype.kind == "f" else _DATA_ELEMENTS[array.dtype.itemsize]
        raw = np.ascontiguousarray(array).reshape(-1).view(np.uint8).data
        # Not the bytes themselves: the key would keep a copy of them for as long as the program lives.
        key = element, sha256(raw).digest()
        if key not in self._known:
            self._constants.extend(bytes(-len(self._constants) % ALIGNMENT))
            self._known[key] = Data(len(self._constants), element, array.size)
            if len(raw) >= LARGE:
                self._large[len(self._constants)] = len(raw), key[1]
            self._constants.extend(raw)
        return self._known[key]

    def constant_tensor(self, elements: NDArray[Any], storage: Storage) -> BufferSlot:
        """The slot of a constant tensor whose `elements` are all those of its storage, in order."""
        extra = np.zeros(EXTRA_BYTES // elements.itemsize, elements.dtype)
        return BufferSlot("constant", self.constant(np.concatenate([elements.ravel(), extra])).offset, storage)

    def buffer(self, storage: Storage) -> BufferSlot:
        """A new buffer of the arena."""
        self._arena.append(storage)
        return BufferSlot("arena", len(self._arena) - 1, storage)

    def known_buffer(self, slot: BufferSlot) -> Buffer | None:
        """The enclosing kernel's buffer for `slot`, if kernels become parts of another."""
        return None

    def call(self, kernel: Kernel, label: str, macs: int = 0) -> None:
        """Append a call of `kernel`, which sums up `macs` products; one with the text of an earlier one is that one."""
        number = self.kernels.setdefault(kernel.render("KERNEL"), len(self.calls))
        moved = sum(count * ELEMENT_BYTES[buffer.element] for buffer, count in kernel.touched())
        self.calls.append(Call(number, kernel.actuals, label, self.names, macs, moved, self.location, self.tunable))

    @property
    def constants_bytes(self) -> int:
        return len(self._constants)

    def constants(self) -> NDArray[np.uint8]:
        """The constants' block, to which nothing can be added while this array is there."""
        return np.frombuffer(self._constants, dtype=np.uint8)

    def kernel_calls(self) -> tuple[KernelCall, ...]:
        """Its calls, without their arguments."""
        return tuple(
            KernelCall(one.label, one.kernel, one.names, one.macs, one.bytes_moved, one.tunable) for one in self.calls
        )

    def buffers(self) -> tuple[tuple[str, int], ...]:
        """Element type and bytes of each buffer of the arena that a call touches."""
        pairs = zip(self._arena, self._touches(), strict=True)
        return tuple((storage.element, storage.bytes()) for storage, calls in pairs if calls)

    def lifetimes(self) -> list[Lifetime]:
        """First and last call that touches each buffer of the arena; one that none touches has no size."""
        return self._lifetimes([storage.bytes() for storage in self._arena])

    def live_bytes(self) -> int:
        """Peak size of the values that are live at once, without padding."""
        return peak(self._lifetimes([storage.live_bytes() for storage in self._arena]))

    def _lifetimes(self, sizes: Sequence[int]) -> list[Lifetime]:
        pairs = zip(sizes, self._touches(), strict=True)
        return [Lifetime(size, calls[0], calls[-1]) if calls else Lifetime(0, 0, 0) for size, calls in pairs]

    def _touches(self) -> list[list[int]]:
        """The calls that touch each buffer of the arena."""
        touched: list[list[int]] = [[] for _ in self._arena]
        for number, call in enumerate(self.calls):
            for actual in call.actuals:
                if isinstance(actual, BufferSlot) and actual.kind == "arena":
                    touched[actual.index].append(number)
        return touched

    def render(self, clocked: bool = False) -> tuple[str, int]:
        """The module's text and the arena's size in bytes.

        With `clocked`, `main` has one more argument, where it writes the cycle counter before each call and at the end.
        Constants get the table of the large ones: nothing may follow.
        """
        append_table(self._constants, self._large)
        offsets, size = plan_arena(self.lifetimes(), ALIGNMENT)
        size += EXTRA_BYTES if size else 0
        words = -(-self.words * ELEMENT_BYTES["i64"] // ALIGNMENT) * ALIGNMENT
        offsets, size = [offset + words for offset in offsets], size + words
        names = kernel_names(self.kernel_calls())
        kernels = [text.replace("@KERNEL", f"@{names[number]}") for text, number in self.kernels.items()]
        main = _Main(self, offsets, size, clocked).text()
        declared = [f"func.func private @{symbol}(i64, i64, i64) -> i32" for symbol in self.symbols]
        return "\n".join(["module {", *kernels, main, *declared, "}"]), size


class _Main:
    """Writes the function that calls the kernels."""

    def __init__(self, program: Program, offsets: Sequence[int], arena: int, clocked: bool) -> None:
        self._program = program
        self._clocked = clocked
        self._offsets = offsets
        self._arena = arena
        self._names = kernel_names(program.kernel_calls())
        self._lines: list[str] = []
        self._count = 0

    def text(self) -> str:
        program = self._program
        arrays = [(f"in{i}", s) for i, s in enumerate(program.inputs)]
        arrays += [(f"out{i}", s) for i, s in enumerate(program.outputs)]
        typed = [(name, f"memref<{s.length}x{s.element}>") for name, s in arrays]
        constants = max(program.constants_bytes, 1)
        typed += [("ticks", self._ticks)] if self._clocked else []
        typed += [("constants", f"memref<{constants}xi8>"), ("arena", f"memref<{max(self._arena, 1)}xi8>")]
        arguments = [f'%{name}: {type_} loc("{name}")' for name, type_ in typed]
        for number, call in enumerate(program.calls):
            self._read_clock(number)
            operands = [self._operand(actual) for actual in call.actuals]
            names, types = zip(*operands, strict=True)
            callee = f"func.call @{self._names[number]}({', '.join(names)})"
            self._lines.append(f'{callee} {{qnn.label = "{call.label}"}} : ({", ".join(types)}) -> ()')
        self._read_clock(len(program.calls))
        body = "\n  ".join([*self._lines, "return"])
        return f"func.func @main({', '.join(arguments)}) {{\n  {body}\n}}"

    @property
    def _ticks(self) -> str:
        return f"memref<{len(self._program.calls) + 1}xi64>"

    def _read_clock(self, number: int) -> None:
        if self._clocked:
            slot = self._define(f"arith.constant {number} : index")
            now = self._define(f'llvm.call_intrinsic "{CLOCK}"() : () -> i64')
            self._lines.append(f"memref.store {now}, %ticks[{slot}] : {self._ticks}")

    def _operand(self, actual: Actual) -> tuple[str, str]:
        if isinstance(actual, Scalar):
            literal = number_text(actual.value, actual.type)
            return self._define(f"arith.constant {literal} : {actual.type}"), actual.type
        constants = f"%constants[%o][] : memref<{max(self._program.constants_bytes, 1)}xi8>"
        if isinstance(actual, Data):
            return self._view(constants, actual.offset, actual.element, actual.length)
        element, length = actual.storage.element, actual.storage.length
        if actual.kind in ("input", "output"):
            return f"%{actual.kind.removesuffix('put')}{actual.index}", f"memref<{length}x{element}>"
        if actual.kind == "constant":
            return self._view(constants, actual.index + actual.offset * ELEMENT_BYTES[element], element, length)
        source = f"%arena[%o][] : memref<{max(self._arena, 1)}xi8>"
        first = 0 if actual.kind == "words" else self._offsets[actual.index]
        start = first + actual.offset * ELEMENT_BYTES[element]
        return self._view(source, start, element, length)

    def _view(self, source: str, offset: int, element: str, length: int) -> tuple[str, str]:
        shift = self._define(f"arith.constant {offset} : index")
        type_ = f"memref<{length}x{element}>"
        return self._define(f"memref.view {source.replace('%o', shift)} to {type_}"), type_

    def _define(self, text: str) -> str:
        self._count += 1
        self._lines.append(f"%v{self._count} = {text}")
        return f"%v{self._count}"
