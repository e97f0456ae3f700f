"""A demonstration of the compiler on real layers and on a real network: ``python -m tools.demo``."""

import textwrap

from qdialect.ir._mlir import ir

# How the demonstration prints.


_WIDTH = 118
_LARGEST_PRINTED = 8


def heading(text: str) -> None:
    """A title."""
    print(f"\n{text}\n{'=' * len(text)}")


def say(text: str) -> None:
    """A paragraph; seen at once even where stdout is no terminal."""
    print(textwrap.fill(text, _WIDTH), flush=True)


def op_names(module: ir.Module) -> list[str]:
    """Names of the ops of the only function, without constants and the return."""
    operations = module.body.operations[0].operation.regions[0].blocks[0].operations
    names = [op.operation.name for op in operations]
    return [name for name in names if name not in ("qnn.constant", "arith.constant", "func.return")]


def show_ir(title: str, module: ir.Module) -> None:
    """The ops of a module, weights elided, long lines wrapped."""
    print(f"\n{title}")
    text = module.operation.get_asm(large_elements_limit=_LARGEST_PRINTED)
    for line in text.splitlines():
        # The module around the function is of no interest.
        if line.startswith("  ") and line.strip() != "}":
            indent = " " * (len(line) - len(line.lstrip()) + 2)
            print(textwrap.fill(line[2:], _WIDTH, initial_indent="  ", subsequent_indent=indent))
    print(flush=True)
