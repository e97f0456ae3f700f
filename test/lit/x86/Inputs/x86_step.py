"""Applies the x86 step alone to a module of phase `vector`, prints it, and checks the remarks that it must cause.

    python x86_step.py FILE [--target=NAME]

A remark says why a pattern left an op alone. Every one needs a comment ``expected-remark``; exits with 1 otherwise.
"""

import argparse
import sys
from pathlib import Path

from qdialect.cli import expected
from qdialect.ir.context import parse
from qdialect.lowering.vector_to_x86.to_x86 import to_x86
from qdialect.passes.pattern import explain_matches
from qdialect.targets import resolve


def main() -> int:
    """Run; the exit status."""
    parser = argparse.ArgumentParser()
    parser.add_argument("file", type=Path)
    parser.add_argument("--target", default="avx512vbmi")
    arguments = parser.parse_args()
    module = parse(arguments.file)
    with explain_matches() as remarks:
        to_x86(module, resolve(arguments.target))
    wrong = expected.problems(arguments.file.read_text(), str(arguments.file), remarks)
    sys.stderr.write("".join(f"{one}\n" for one in wrong))
    sys.stdout.write(f"{module}\n")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
