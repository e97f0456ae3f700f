"""Counts instructions in the hot loop of a compiled model, on any x86-64 machine: nothing is executed.

    python tools/hot_loop.py MODEL [--target avx512vbmi] [--instruction vpdpbusd] [--at-least SHARE]

The model is compiled for the target and disassembled by binutils' objdump. The hot loop is the innermost loop with the
most instructions of the kind in question; its count, its share of all instructions of the loop and its text are
printed. With ``--at-least`` a smaller share is said and the exit status is 1.
"""

import argparse
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from qdialect import targets
from qdialect.aot.object_file import object_code
from qdialect.cli import terminal
from qdialect.cli.explorer.data import Loop, bodies_of_functions, innermost_loops
from qdialect.frontends.model_files import read_model
from qdialect.lowering.pipeline.phases import lower
from qdialect.support.diagnostics import QDialectError
from qdialect.targets import TARGETS, Target


def hot_loop(disassembly: str, mnemonic: str) -> Loop:
    """The innermost loop with the most instructions of this kind, the shortest of such; raises `QDialectError`."""
    loops = [loop for name, body in bodies_of_functions(disassembly) for loop in innermost_loops(name, body)]
    hot = [loop for loop in loops if loop.count(mnemonic)]
    if not hot:
        raise QDialectError(f"no loop has {mnemonic}")
    return max(hot, key=lambda loop: (loop.count(mnemonic), -len(loop.body)))


def disassembled(code: bytes) -> str:
    """What objdump says of an object file; raises `QDialectError` where it does not run."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "module.o"
        path.write_bytes(code)
        try:
            ran = subprocess.run(
                ["objdump", "-d", "--no-show-raw-insn", str(path)], capture_output=True, text=True, check=True
            )
        except (OSError, subprocess.CalledProcessError) as error:
            raise QDialectError(f"cannot run objdump: {error}") from error
    return ran.stdout


def report(model: str, target: Target, mnemonic: str, minimum: float) -> int:
    """Print the hot loop of a model; the exit status."""
    code = object_code(lower(read_model(model), target).module, target)
    loop = hot_loop(disassembled(code), mnemonic)
    share = loop.count(mnemonic) / len(loop.body)
    print(f"{loop.function}: {mnemonic} {loop.count(mnemonic)} of {len(loop.body)} instructions, share {share:.3f}")
    print(f"share >= {minimum}: {'yes' if share >= minimum else 'no'}")
    for instruction in loop.body:
        print(f"  {instruction.mnemonic:16} {instruction.operands}".rstrip())
    return 0 if share >= minimum else 1


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; the exit status."""
    parser = argparse.ArgumentParser(description="Count instructions in the hot loop of a compiled model.")
    parser.add_argument("model")
    parser.add_argument("--target", choices=tuple(TARGETS), default="avx512vbmi")
    parser.add_argument("--instruction", default="vpdpbusd")
    parser.add_argument("--at-least", type=float, default=0.0, metavar="SHARE")
    options = parser.parse_args(arguments)
    return terminal.run(
        "hot_loop",
        lambda: report(options.model, targets.resolve(options.target), options.instruction, options.at_least),
    )


if __name__ == "__main__":
    sys.exit(main())
