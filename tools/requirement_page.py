"""docs/requirements.md: what the project must do, and the tests that name each row."""

import re
from collections.abc import Iterator
from pathlib import Path

INTRODUCTION = """\
# What the project must do

Each row has a test that names it; the last column lists the tests that contain the name of the row. A row without a
test is not done.
"""

ROWS = {
    "R1": "An 8-bit function after a convolution is a table inside the convolution's kernel, read in its tile loop.",
    "R2": "A table's order, index rule, rounding of entries and stand-in for NaN are written down, for every pair of "
    "signednesses: the value -1 reads entry 255.",
    "R3": "A fixed-point leaky_relu fuses into the convolution, with the bits of the unfused ops and an 8-bit result.",
    "R4": "One option chooses between the known arithmetics of leaky_relu; a float region around it is recognised.",
    "R5": "Element-wise ops do not care about layout: no transpose stands between a convolution and its activation.",
    "R6": "What a fused kernel reads and writes is 8-bit; the verifier refuses anything wider.",
    "R7": "Between the kernels of a network every tensor is 8-bit; zero points are folded, not subtracted beforehand.",
    "R8": "Padding and accumulators never become full-size buffers; padding represents zero, whatever the zero point.",
    "R9": "Depthwise convolutions have a vectorized kernel of their own.",
    "R10": "The target decides which instructions are used; every choice gives the same bits, and none widens the "
    "tensors between kernels.",
    "R11": "Scales and zero points stay on the ops until code is generated: a fused op is decomposed into the separate "
    "ones without loss.",
    "R12": "Fusion is passes that run alone; each optional part (padding, bias, requantize, clamp, table, residual) "
    "has a test that it fuses and one that it refuses; a second use of an intermediate blocks it.",
    "R13": "A fused op can be handed to another code generator as a function with its parameters as attributes.",
    "R14": "A target without the fused op gets the separate ops, with the same bits.",
    "R15": "The arithmetic of each source framework is a choice of attributes, and known disagreements between them "
    "are reproduced.",
    "R16": "The order of passes is documented; a requantization that was expanded before is recognised.",
    "N1": "A requantization whose multiplier is exactly one.",
    "N2": "Zero points per channel.",
    "N3": "Dilation and groups together with signed data.",
    "N4": "Channel counts that fill no vector.",
    "N5": "16-bit activations with 8-bit weights.",
    "N6": "A residual addition inside the kernel of the convolution before it.",
    "N7": "The same bits in a vector and in the tail that fills none.",
}
_SUFFIXES = (".py", ".mlir")


def page(root: Path) -> str:
    """The text of the page."""
    found = _tests_by_row(root / "test")
    rows = [f"| {row} | {text} | {_links(found[row], root)} |" for row, text in ROWS.items()]
    return "\n".join([INTRODUCTION, "| row | the project must | tests |", "|---|---|---|", *rows, ""])


def _tests_by_row(folder: Path) -> dict[str, list[Path]]:
    found: dict[str, list[Path]] = {row: [] for row in ROWS}
    for path in _tests(folder):
        text = path.read_text(encoding="utf-8")
        for row in ROWS:
            if re.search(rf"\b{row}\b", text):
                found[row].append(path)
    return found


def _tests(folder: Path) -> Iterator[Path]:
    """Every test, but for what tests read or built."""
    for path in sorted(folder.rglob("*")):
        if path.suffix in _SUFFIXES and not {"Inputs", "Output", "__pycache__"} & set(path.parts):
            yield path


def _links(paths: list[Path], root: Path) -> str:
    links = (
        f"[{path.relative_to(root / 'test').as_posix()}](../{path.relative_to(root).as_posix()})" for path in paths
    )
    return ", ".join(links)
