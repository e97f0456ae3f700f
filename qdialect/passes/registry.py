"""What a pass is, a name, typed options and one method that rewrites a module; and all passes by name.

A pass registers itself when its module is imported.  `lookup` finds that module by the name of the pass (``qnn-fold-x``
is in ``passes/fold_x.py``; a phase of the lowering has its passes in its own folder, and so has a front end), so that
using one pass imports no other.
"""

from __future__ import annotations

import inspect
import pkgutil
import re
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from types import MappingProxyType
from typing import Any, ClassVar, Self, TypeVar, get_type_hints

from qdialect.ir._mlir import ir
from qdialect.passes import options
from qdialect.support.diagnostics import PipelineError
from qdialect.support.late_imports import LATE_IMPORTS


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
                typed[key.replace("-", "_")] = options.value_of(value, kinds[key])
            except PipelineError as error:
                raise PipelineError(f"option '{key}' of '{cls.name}' {error}") from error
        return cls(**typed)

    @classmethod
    def description(cls) -> str:
        """The docstring, empty where the class has none of its own."""
        text = inspect.cleandoc(cls.__doc__ or "")
        # The docstring that dataclass generates.
        return "" if text.startswith(f"{cls.__name__}(") else text

    @classmethod
    def summary(cls) -> str:
        """The first line of the description."""
        return cls.description().partition("\n")[0]

    def __str__(self) -> str:
        values = {key: options.text_of(getattr(self, key.replace("-", "_"))) for key in self.option_kinds()}
        return f"{self.name}{{{options.joined(values)}}}" if values else self.name


class CompositePass(Pass):
    """A pass that is a list of others; a pass manager checks, prints and times each of them."""

    @abstractmethod
    def passes(self) -> Sequence[Pass]:
        """The passes in their order."""

    def run(self, module: ir.Module) -> None:
        for part in self.passes():
            part.run(module)


PassClass = TypeVar("PassClass", bound=type[Pass])

_PACKAGE = "qdialect.passes"
_ELSEWHERE = {
    name: f"qdialect.{folder}.{name}"
    for name, folder in {
        "import_tosa": "frontends.tosa",
        "pair_channels": "lowering.qnn_to_linalg",
        "to_linalg": "lowering.qnn_to_linalg",
        "to_vector": "lowering.linalg_to_vector",
        "to_threads": "lowering.threads",
        "to_x86": "lowering.vector_to_x86",
        "to_llvm": "lowering.x86_to_llvm",
    }.items()
}
"""Modules of the passes that stand with what they belong to: a front end, or a step of the lowering."""
_FUSIONS = "fuse_"
_NAME = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")

_registered: dict[str, type[Pass]] = {}


def register(pass_class: PassClass) -> PassClass:
    """Class decorator: make a pass known to text pipelines and to ``qdialect-opt``::

        @qdialect.register_pass
        @dataclass(frozen=True)
        class CountOpsPass(qdialect.Pass):
            name: ClassVar[str] = "count-ops"

            def run(self, module):
                print(len(module.body.operations[0].regions[0].blocks[0].operations))

    Raises `PipelineError` for a malformed name, a name that another pass has, an option without a default and an
    option of a type that has no text form.
    """
    name: str = getattr(pass_class, "name", "")
    if not _NAME.fullmatch(name):
        raise PipelineError(f"name of a pass must be lower-case words joined by '-', but got '{name}'")
    other = _registered.get(name)
    # The same class again is a module that was loaded twice, in a notebook for one.
    if other and (other.__module__, other.__qualname__) != (pass_class.__module__, pass_class.__qualname__):
        raise PipelineError(f"pass '{name}' is registered already, by {other.__module__}.{other.__qualname__}")
    for option, kind in pass_class.option_kinds().items():
        if not options.is_supported(kind):
            raise PipelineError(
                f"option '{option}' of '{name}' must be bool, int, float, str or a tuple, but got {kind}"
            )
    try:
        pass_class()
    except TypeError as error:
        names = ", ".join(field.name for field in fields(pass_class))
        raise PipelineError(f"pass '{name}' must have defaults for its options {names}: {error}") from error
    _registered[name] = pass_class
    return pass_class


def lookup(name: str) -> type[Pass] | None:
    """The pass called `name`, or None where it is not one of ours."""
    if name not in _registered and _NAME.fullmatch(name):
        module = name.removeprefix("qnn-").replace("-", "_")
        found = _ELSEWHERE.get(module, f"{_PACKAGE}.{module}")
        with LATE_IMPORTS:
            if find_spec(found):
                import_module(found)
    return _registered.get(name)


def all_passes() -> Mapping[str, type[Pass]]:
    """Every pass by name, in the order of the names."""
    _import_all()
    return MappingProxyType(dict(sorted(_registered.items())))


def fusions() -> Mapping[str, type[Pass]]:
    """The passes of modules called ``fuse_x``, and all others that are registered, in the order of the names."""
    _import_all(_FUSIONS)
    return MappingProxyType(dict(sorted(_registered.items())))


@cache
def _import_all(beginning: str = "") -> None:
    """Import the modules of all passes whose names begin so; once, for every compilation asks for them."""
    names = [f"{_PACKAGE}.{module.name}" for module in pkgutil.iter_modules(import_module(_PACKAGE).__path__)]
    with LATE_IMPORTS:
        for name in (*names, *_ELSEWHERE.values()):
            if name.rpartition(".")[2].startswith(beginning):
                import_module(name)
