"""All passes by name.

A pass registers itself when its module is imported.  `lookup` finds that module by the name of the pass (``qnn-fold-x``
is in ``passes/fold_x.py``; a phase of the lowering has its passes in its own folder, and so has a front end), so that
using one pass imports no other.
"""

from __future__ import annotations

import pkgutil
import re
from collections.abc import Mapping
from dataclasses import fields
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from types import MappingProxyType
from typing import TypeVar

from qdialect.passes import options
from qdialect.passes.pass_base import Pass
from qdialect.support.diagnostics import PipelineError
from qdialect.support.late_imports import LATE_IMPORTS

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
