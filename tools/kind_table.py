"""The table of docs/status.md that says of each op what its code consists of on each kind of target."""

from collections.abc import Iterator, Mapping, Sequence

from qdialect.ir._mlir import ir
from qdialect.ir.context import parse
from qdialect.lowering.pipeline.phases import Phase, lower
from qdialect.support.diagnostics import QDialectError
from qdialect.targets import GENERIC, TARGETS

INTRODUCTION = """\
# Kinds of code

The code of the example on an op's page at the phase `x86`, for each kind of target ([targets](targets.md)):

- **instructions**: vector code with intrinsics of the target.
- **vectors**: vector code without intrinsics, which LLVM legalizes.
- **loops**: loops over scalars.
"""
KINDS = tuple(TARGETS)


def table(networks: Mapping[str, str], context: ir.Context) -> Iterator[str]:
    """The lines of the table: a row for each op whose network compiles, by the op's title."""
    yield INTRODUCTION
    yield f"| op | {' | '.join(f'`{kind}`' for kind in KINDS)} |"
    yield "|---" * (len(KINDS) + 1) + "|"
    for title, text in networks.items():
        cells = _cells(text, context)
        if cells:
            yield f"| {title} | {' | '.join(cells)} |"


def _cells(text: str, context: ir.Context) -> Sequence[str]:
    """What the network is on each kind; nothing where it does not compile."""
    try:
        # Fusion asks for no target.
        module = lower(parse(text, context), GENERIC, Phase.FUSED).module
        return [_code(str(lower(module, TARGETS[kind], Phase.X86).module)) for kind in KINDS]
    except QDialectError:
        return []


def _code(module: str) -> str:
    if "llvm.x86" in module:
        return "instructions"
    return "vectors" if "vector." in module else "loops"
