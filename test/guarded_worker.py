"""Compiles and runs modules with forbidden pages around every buffer, in a process of its own: it may crash.

Says `READY` on stdout, then reads requests from stdin and answers them, each a pickle: ``(module text, target, seed,
threads)`` is answered by a list of differences from the reference interpreter, one line each.
"""

import ctypes
import mmap
import pickle
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast
from unittest.mock import patch

import numpy as np
from drawn_graphs import random_inputs
from numpy.typing import NDArray

from qdialect.ir._mlir import ir
from qdialect.ir.context import make_context, parse
from qdialect.lowering.pipeline.phases import lower
from qdialect.reference import interpreter
from qdialect.runtime import compiler as executables
from qdialect.runtime.compiler import CompiledExecutable, MachineCode
from qdialect.support.diagnostics import QDialectError
from qdialect.targets import resolve

Array = NDArray[Any]
Allocate = Callable[[int], NDArray[np.uint8]]

READY = "ready"
# Making one takes a tenth of the time of a request.
CONTEXT = make_context()
PAGE = mmap.PAGESIZE
_FORBIDDEN = 0
_libc = ctypes.CDLL(None, use_errno=True)
_libc.mprotect.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)


def guarded(size: int, *, at_end: bool) -> NDArray[np.uint8]:
    """So many bytes with a page on either side that ends the process when it is read or written.

    The bytes end where the upper page begins, or begin where the lower one ends.
    """
    pages = max(-(-size // PAGE), 1)
    mapping = mmap.mmap(-1, (pages + 2) * PAGE)
    whole = np.frombuffer(mapping, dtype=np.uint8)
    first = whole.ctypes.data
    for address in (first, first + (pages + 1) * PAGE):
        if _libc.mprotect(address, PAGE, _FORBIDDEN):
            raise OSError(ctypes.get_errno(), "mprotect")
    start = PAGE + (pages * PAGE - size if at_end else 0)
    return whole[start : start + size]


def guarded_copy(array: Array, *, at_end: bool) -> Array:
    block = guarded(array.nbytes, at_end=at_end)
    block[:] = np.frombuffer(array.tobytes(), dtype=np.uint8)
    return block.view(array.dtype).reshape(array.shape)


def _unlike(array: Array) -> Array:
    """Another value in every element."""
    return (np.frombuffer(array.tobytes(), dtype=np.uint8) ^ 255).view(array.dtype).reshape(array.shape)


def differences(text: str, target: str, seed: int, threads: int) -> list[str]:
    """Where compiled code and the interpreter disagree, for two inputs and both ways to lie between guards."""
    module = parse(text, CONTEXT)
    lowered = lower(module, resolve(target), threads=threads, min_cycles=0)
    rounds = [random_inputs(module, seed + number) for number in range(2)]
    expected = [interpreter.run(module, inputs) for inputs in rounds]
    found: list[str] = []
    with patch.object(executables, "MachineCode", _compiled_once()):
        for at_end in (True, False):
            rng = np.random.default_rng(seed)

            def garbage(size: int, at_end: bool = at_end, rng: np.random.Generator = rng) -> NDArray[np.uint8]:
                # The first content of working memory must not matter.
                return guarded_copy(rng.integers(0, 256, size, dtype=np.uint8), at_end=at_end)

            executable = CompiledExecutable(lowered, garbage)
            for inputs, wanted in zip(rounds, expected, strict=True):
                found += _compare(executable, inputs, wanted, at_end=at_end)
    return found


def _compiled_once() -> Callable[[ir.Module, Mapping[str, int]], MachineCode]:
    """A builder of the machine code of one module: the buffers are arguments of it, so executables can share it."""
    made: list[MachineCode] = []

    def compiled(module: ir.Module, symbols: Mapping[str, int]) -> MachineCode:
        if not made:
            made.append(MachineCode(module, symbols))
        return made[0]

    return compiled


def _compare(
    executable: CompiledExecutable, inputs: Sequence[Array], expected: Sequence[Array], *, at_end: bool
) -> list[str]:
    held = [guarded_copy(array, at_end=at_end) for array in inputs]
    # Every element must be written: what is there before is never the result.
    outputs = [guarded_copy(_unlike(wanted), at_end=at_end) for wanted in expected]
    executable.run(held, outputs)
    found = [f"input {i} was written" for i, pair in enumerate(zip(held, inputs, strict=True)) if _differs(*pair).any()]
    for index, (wanted, got) in enumerate(zip(expected, outputs, strict=True)):
        different = _differs(wanted, got)
        if different.any():
            at = tuple(int(i) for i in np.argwhere(different)[0])
            count = f"{np.count_nonzero(different)} of {wanted.size} elements"
            found.append(f"output {index}: {count} differ, first at {at}: must be {wanted[at]}, but got {got[at]}")
    return found


def _differs(wanted: Array, got: Array) -> NDArray[np.bool_]:
    if wanted.dtype.kind == "f" or wanted.dtype.name == "bfloat16":
        # Bit for bit, but any NaN is NaN.
        bits = f"i{wanted.itemsize}"
        return (wanted.view(bits) != got.view(bits)) & ~(np.isnan(wanted) & np.isnan(got))
    if wanted.dtype.kind == "b":
        # Bytes of 0 and 1: any other that stands for a true value is wrong.
        return np.asarray(wanted.view(np.uint8) != got.view(np.uint8))
    return np.asarray(wanted != got)


class GuardedRunner:
    """Talks to a process of this file, and starts another where one has crashed."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None

    def check(self, text: str, target: str, seed: int, threads: int = 1) -> list[str]:
        """Faults of the compiled module `text`: differences from the reference, or a crash.

        With more than one of `threads` every kernel is divided, however small.
        """
        process = self._process = self._process or _start()
        try:
            _tell(process, (text, target, seed, threads))
            return cast("list[str]", _hear(process))
        except (EOFError, BrokenPipeError):
            self.close()
            return [f"compiled code ended the process with status {process.returncode}"]

    def kill(self) -> None:
        """End the process as a crash would."""
        if self._process:
            self._process.kill()
            self._process.wait()

    def close(self) -> None:
        if self._process is None:
            return
        process, self._process = self._process, None
        process.communicate()


def _start() -> subprocess.Popen[bytes]:
    process = subprocess.Popen([sys.executable, __file__], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    _hear(process)
    return process


def _tell(process: subprocess.Popen[bytes], what: object) -> None:
    assert process.stdin
    pickle.dump(what, process.stdin)
    process.stdin.flush()


def _hear(process: subprocess.Popen[bytes]) -> object:
    assert process.stdout
    return pickle.load(process.stdout)


def main() -> None:
    _answer(READY)
    while True:
        try:
            request = pickle.load(sys.stdin.buffer)
        except EOFError:
            return
        try:
            _answer(differences(*request))
        except QDialectError as error:
            _answer([error.render()])


def _answer(answer: object) -> None:
    pickle.dump(answer, sys.stdout.buffer)
    sys.stdout.buffer.flush()


if __name__ == "__main__":
    main()
