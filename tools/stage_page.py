"""docs/ops/stages.md: the stages of an epilogue, from the classes that define them."""

import inspect
from collections.abc import Iterator

from op_pages import cell_text, constraint_lines, default_text

from qdialect.dialect.stages.stage_base import STAGES, QuantizedStage, Stage, attributes_of

INTRODUCTION = """\
# Stages

The `epilogue` of a fused op lists the stages that its accumulators pass through, in order. A stage is
`{name = {attributes}}`, or `{name}` if every attribute has its default.
"""


def page() -> str:
    """The text of the page."""
    order = ("requantize", "dequantize", "sum", "activation", "quantize", "clamp", "add", "lut")
    rest = sorted(set(STAGES) - set(order))
    return "\n".join([INTRODUCTION, *(_section(name, STAGES[name]) for name in (*order, *rest))])


def _section(name: str, stage: type[Stage]) -> str:
    text, _, constraints = inspect.cleandoc(stage.__doc__ or "").partition("Constraints:")
    parts = [f"## `{name}`", text.strip(), f"Input: {stage.takes}. Output: {stage.leaves}.", *_attributes(stage)]
    lines = [*_shared(stage), *constraint_lines(constraints)]
    return "\n\n".join([*parts, *(["Constraints:", "\n".join(lines)] if lines else [])]) + "\n"


def _attributes(stage: type[Stage]) -> list[str]:
    declared = attributes_of(stage)
    if not declared:
        return []
    rows = ["| attribute | kind | default |", "|---|---|---|"]
    of_output = {"scale", "zero_point", "element"}
    for name, attribute in declared.items():
        default = (
            "the result's" if name in of_output else default_text(None if attribute.is_required else attribute.default)
        )
        rows.append(f"| `{name}` | {cell_text(attribute.kind.description)} | {default} |")
    return ["\n".join(rows)]


def _shared(stage: type[Stage]) -> Iterator[str]:
    if issubclass(stage, QuantizedStage):
        yield from constraint_lines(inspect.cleandoc(QuantizedStage.__doc__ or "").partition("Constraints:")[2])
