"""Tables that modules fill while they are imported: an entry for each name, and never two.

A second entry under a name would win or lose by the order of imports, and nobody would hear of it; so it is an error::

    EVALUATORS = Registry[Evaluator]("evaluator")
    EVALUATORS.add(["qnn.clip"], clip)
    EVALUATORS.add(["qnn.clip"], other)  # RegistrationError

A table may belong to a package of many modules: they are imported when the first entry is asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from importlib import import_module
from pkgutil import walk_packages
from typing import Generic, TypeVar

from qdialect.support.diagnostics import RegistrationError
from qdialect.support.late_imports import LATE_IMPORTS

V = TypeVar("V")

_PROJECT = __name__.partition(".")[0]
_FOREIGN: set[str] = set()


class Registry(Mapping[str, V], Generic[V]):
    """A mapping from names to what was registered for them; `subject` names it in errors.

    The modules of `package` register entries too, and are imported when these are asked for; never do so in a module.
    """

    def __init__(self, subject: str, package: str = "") -> None:
        self.subject = subject
        self._entries: dict[str, V] = {}
        self._package = package
        self._is_filling = False

    def add(self, names: Iterable[str], entry: V) -> None:
        """Register `entry` under each of `names`.

        Raises `RegistrationError` where a name is taken already.  The same definition may come again: a notebook or
        `importlib.reload` executes a module twice.
        """
        names = tuple(names)
        is_foreign = _module(entry).partition(".")[0] != _PROJECT
        entries = self._filled() if is_foreign else self._entries
        for name in names:
            known = entries.get(name)
            if known is not None and not _is_same_definition(known, entry):
                found = f"{_title(known)} and {_title(entry)}"
                raise RegistrationError(f"{self.subject} of '{name}' must be registered once, but got {found}")
        entries.update(dict.fromkeys(names, entry))
        note_foreign(entry)

    def register(self, *names: str) -> Callable[[V], V]:
        """A decorator that adds what it decorates under each of `names`, as `add` does, and returns it."""

        def registered(entry: V) -> V:
            self.add(names, entry)
            return entry

        return registered

    def _filled(self) -> dict[str, V]:
        """The entries, those of the package's modules too."""
        if not self._package:
            return self._entries
        # Another thread that imports them holds the lock: what it has registered so far is not all.
        with LATE_IMPORTS:
            if self._package and not self._is_filling:
                self._is_filling = True
                try:
                    import_modules(self._package, import_module(self._package).__path__)
                finally:
                    self._is_filling = False
                self._package = ""
        return self._entries

    def __getitem__(self, name: str) -> V:
        return self._filled()[name]

    def __contains__(self, name: object) -> bool:
        return name in self._filled()

    def __iter__(self) -> Iterator[str]:
        return iter(self._filled())

    def __len__(self) -> int:
        return len(self._filled())


def note_foreign(entry: object) -> None:
    """Record the module of a definition, if it is from outside of the project."""
    if _module(entry).partition(".")[0] != _PROJECT:
        _FOREIGN.add(_module(entry))


def foreign_modules() -> frozenset[str]:
    """The modules from outside of the project that have registered something, as those of a plugin do."""
    return frozenset(_FOREIGN)


def import_modules(package: str, path: Iterable[str], ending: str = "") -> None:
    """Import the modules of a package whose names have this ending, for what they register, in the order of names.

    A package does so in its ``__init__.py``, ``import_modules(__name__, __path__)``; a new file of it is found by that.
    """
    names = sorted(module.name for module in walk_packages(path, f"{package}."))
    for name in names:
        if name.endswith(ending):
            import_module(name)


def _is_same_definition(one: object, other: object) -> bool:
    """Whether both are one object, or what one definition of a module made when it was executed twice."""
    return one is other or (_title(one) == _title(other) and "<" not in _title(one))


def _module(entry: object) -> str:
    return str(getattr(entry, "__module__", ""))


def _title(entry: object) -> str:
    return f"{_module(entry)}.{getattr(entry, '__qualname__', repr(entry))}"
