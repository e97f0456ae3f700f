"""Runs the demonstration."""

from __future__ import annotations

import os
import sys

from qdialect import targets
from qdialect.cli import terminal
from tools.demo import heading, layers, network, say


def main() -> int:
    """Show layers, a network and its file; the exit status is 0 where every element is as in the reference."""
    if sys.platform == "linux":
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    host = targets.host()
    heading("qdialect: quantized networks through MLIR to machine code, bit for bit")
    say(
        "Three convolutions and a MobileNet are compiled, measured, and compared with a reference, element by element; "
        "then the network runs in a program in C. It takes a minute or two, most of it in the reference."
    )
    say(f"This CPU takes target '{host.name}'. Everything runs on one core; times are medians.")
    if not host.has_vnni:
        say("It has no AVX-512 VNNI: there is no dot-product instruction to compare with, and code is portable.")
    different = layers.show()
    case = network.find_case()
    of_network, result = network.show(case)
    different += of_network + network.show_program(case, result)
    heading("Result")
    say(f"{different} elements differ from the reference.")
    return 1 if different else 0


if __name__ == "__main__":
    sys.exit(terminal.run("tools.demo", main))
