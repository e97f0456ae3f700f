"""Reading examples out of lit tests, so that no page shows what is not tested."""

import re
from collections.abc import Iterator
from pathlib import Path

_FUNCTION = re.compile(r"^func\.func .*?^\}\n", re.MULTILINE | re.DOTALL)
_HEXADECIMAL = re.compile(r'"0x([0-9A-F]{16})[0-9A-F]{16,}"')
_RUN = re.compile(r"^// RUN: %qopt %s (.*?)(?: \|.*)?$", re.MULTILINE)
_REMARK = re.compile(r"// expected-remark @[+-]\d+ \{\{\[[\w-]+\] (.*)\}\}")


def first_function(path: Path) -> str:
    """The first function of a test, without the comments in it."""
    found = _FUNCTION.search(path.read_text())
    if not found:
        raise ValueError(f"{path}: lit test must have a function that ends with '}}' on a line of its own")
    return "".join(line for line in found[0].splitlines(keepends=True) if not line.lstrip().startswith("//"))


def flags(path: Path) -> list[str]:
    """What the first RUN line of a test gives to ``qdialect-opt``."""
    found = _RUN.search(path.read_text())
    if not found:
        raise ValueError(f"{path}: lit test must begin with '// RUN: %qopt %s'")
    return found[1].split()


def failures(path: Path) -> list[str]:
    """The reasons that a test of refusals expects, each once, in order."""
    return list(dict.fromkeys(_REMARK.findall(path.read_text())))


def shortened(text: str) -> str:
    """`text` with the middle of long hexadecimal constants left out."""
    return _HEXADECIMAL.sub(r'"0x\1..."', text)


def op_lines(function: str, name: str) -> Iterator[str]:
    """The lines of the first op called `name` in a function."""
    inside = False
    for line in function.splitlines():
        inside = inside or f'"{name}"' in line
        if inside:
            yield line.removeprefix("  ")
        if inside and " -> " in line:
            return
