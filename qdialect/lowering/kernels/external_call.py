"""The kernel that calls a C function of another library.

The working memory begins with a few words that all of these kernels use, so that they run one after the other however
many threads there are: the status of the first call that failed, 0 before; the number of the last call; then the
addresses of the arrays. After a failure no other external function is called, and what is computed is of no use.
"""

from __future__ import annotations

from collections.abc import Sequence

from qdialect.externals.calls import FIRST_ADDRESS, NUMBER, STATUS, WORD_BYTES
from qdialect.lowering.memory.storage import Storage
from qdialect.lowering.program import BufferSlot, Data, Kernel, Program
from qdialect.lowering.text.kernel_text import Buffer


def emit_clear(program: Program) -> None:
    """Append the kernel call that says that no call has failed."""
    kernel = Kernel(program)
    words = _words(kernel, FIRST_ADDRESS)
    for index in (STATUS, NUMBER):
        kernel.put(words, index, kernel.constant(0, "i64"))
    program.call(kernel, "external calls")


def emit_external_call(
    program: Program, symbol: str, record: Data, inputs: Sequence[BufferSlot], outputs: Sequence[BufferSlot]
) -> None:
    """Append the kernel call that calls `symbol` with its `record` and arrays that lie as those of users do."""
    kernel = Kernel(program)
    words = _words(kernel, FIRST_ADDRESS + len(inputs) + len(outputs))
    kernel.actuals.append(record)
    described = kernel.buffer("record", record.element, record.length)
    arrays = [kernel.slot(f"in{i}", slot) for i, slot in enumerate(inputs)]
    arrays += [kernel.slot(f"out{i}", slot) for i, slot in enumerate(outputs)]
    number = kernel.number("number", len(program.externals), "i64")
    status = kernel.entry(words, kernel.constant(STATUS, "index"))
    with kernel.when_zero(status):
        kernel.put(words, NUMBER, number)
        for index, array in enumerate(arrays):
            kernel.put(words, FIRST_ADDRESS + index, kernel.address(array))
        start = kernel.address(words)
        lists = [kernel.offset(start, WORD_BYTES * (FIRST_ADDRESS + count)) for count in (0, len(inputs))]
        kernel.put(words, STATUS, kernel.external_call(symbol, [kernel.address(described), *lists]))
    program.externals.append(record)
    program.call(kernel, symbol)


def _words(kernel: Kernel, count: int) -> Buffer:
    kernel.program.words = max(kernel.program.words, count)
    return kernel.slot("words", BufferSlot("words", 0, Storage((1, 1, 1, count), "i64", count)))
