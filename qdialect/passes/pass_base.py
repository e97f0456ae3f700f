"""The base class of passes: a name, typed options and one method that rewrites a module."""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, ClassVar, Self, get_type_hints

from qdialect.ir._mlir import ir
from qdialect.passes import options as option_text
from qdialect.support.diagnostics import PipelineError


@dataclass(frozen=True)
class Pass(ABC):
    """A rewrite of a whole module.

    A subclass is a frozen dataclass: its fields are the options (field `max_size`, option `max-size`; bool, int, float,
    str or a tuple of one of these, each with a default), its docstring is the description that users are shown, the
    first line the summary.  All passes work on modules: the bindings abort the process for a Python pass on a function
    below a module.
    """

    name: ClassVar[str]
    dependent_dialects: ClassVar[tuple[str, ...] | None] = None
    """The dialects that `run` builds something of, besides `qnn` and those of its input; None stands for all.

    A pass manager loads them before the pass runs. Those that every graph has, `arith`, `func`, `math` and `tensor`,
    need not be named.
    """

    @abstractmethod
    def run(self, module: ir.Module) -> None:
        """Rewrite `module` in place; raises `PassError`, with located diagnostics, where that is impossible."""

    @classmethod
    def option_kinds(cls) -> dict[str, Any]:
        """The type of each option, by the name that text pipelines use."""
        hints = get_type_hints(cls)
        return {field.name.replace("_", "-"): hints[field.name] for field in fields(cls)}

    @classmethod
    def from_options(cls, values: Mapping[str, str]) -> Self:
        """The pass with options as text; raises `PipelineError` for an option it lacks or a value it cannot take."""
        kinds = cls.option_kinds()
        typed: dict[str, Any] = {}
        for key, value in values.items():
            if key not in kinds:
                known = ", ".join(kinds) or "none"
                raise PipelineError(f"'{cls.name}' has no option '{key}', its options are: {known}")
            try:
                typed[key.replace("-", "_")] = option_text.value_of(value, kinds[key])
            except PipelineError as error:
                raise PipelineError(f"option '{key}' of '{cls.name}' {error}") from error
        return cls(**typed)

    @classmethod
    def description(cls) -> str:
        """The docstring, empty where the class has none of its own."""
        text = inspect.cleandoc(cls.__doc__ or "")
        # What dataclass writes itself.
        return "" if text.startswith(f"{cls.__name__}(") else text

    @classmethod
    def summary(cls) -> str:
        """The first line of the description."""
        return cls.description().partition("\n")[0]

    def __str__(self) -> str:
        values = {key: option_text.text_of(getattr(self, key.replace("-", "_"))) for key in self.option_kinds()}
        return f"{self.name}{{{option_text.joined(values)}}}" if values else self.name


class CompositePass(Pass):
    """A pass that is a list of others; a pass manager checks, prints and times each of them."""

    @abstractmethod
    def passes(self) -> Sequence[Pass]:
        """The passes in their order."""

    def run(self, module: ir.Module) -> None:
        for part in self.passes():
            part.run(module)
