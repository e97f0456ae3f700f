"""Tables that modules fill while they are imported: an entry for each name, and never two.

A second entry under a name would win or lose by the order of imports, and nobody would hear of it; so it is an error::

    EVALUATORS = Registry[Evaluator]("evaluator")
    EVALUATORS.add(["qnn.clip"], clip)
    EVALUATORS.add(["qnn.clip"], other)  # RegistrationError

A table may belong to a package of many modules, of which a network needs few: then a module is imported when one of its
names is asked for. Which names are whose stands in `registered_names.py`, which ``make docs`` writes. A name that
is not there is new, and all modules of the package are imported for it.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache
from importlib import import_module
from pkgutil import iter_modules
from typing import Generic, TypeVar

from qdialect.diagnostics import RegistrationError
from qdialect.late_imports import LATE_IMPORTS
from qdialect.registered_names import REGISTERED

V = TypeVar("V")

_PROJECT = __name__.partition(".")[0]
_FOREIGN: set[str] = set()


class Registry(Mapping[str, V], Generic[V]):
    """A mapping from names to what was registered for them; `subject` says in errors what that is.

    The modules of `package` register entries too, and are imported when these are asked for; never do so in a module.
    """

    def __init__(self, subject: str, package: str = "") -> None:
        self.subject = subject
        self._entries: dict[str, V] = {}
        self._package = package
        self._late = dict(_modules_of(package, REGISTERED.get(f"{package} {subject}", "")))

    def add(self, names: Iterable[str], entry: V) -> None:
        """Register `entry` under each of `names`.

        Raises `RegistrationError` where a name is taken already.  The same definition may come again: a notebook or
        `importlib.reload` executes a module twice.
        """
        names = tuple(names)
        for name in names:
            known = self._known(name)
            if known is not None and not _is_same_definition(known, entry):
                found = f"{_title(known)} and {_title(entry)}"
                raise RegistrationError(f"{self.subject} of '{name}' must be registered once, but got {found}")
        self._entries.update(dict.fromkeys(names, entry))
        module = str(getattr(entry, "__module__", ""))
        if module.partition(".")[0] != _PROJECT:
            _FOREIGN.add(module)

    def register(self, *names: str) -> Callable[[V], V]:
        """A decorator that adds what it decorates under each of `names`, as `add` does, and returns it."""

        def registered(entry: V) -> V:
            self.add(names, entry)
            return entry

        return registered

    def _known(self, name: str) -> V | None:
        """What is registered for `name`, which the module that is imported right now may register itself."""
        module = self._late.get(name)
        return self.get(name) if module is not None and module not in sys.modules else self._entries.get(name)

    def __getitem__(self, name: str) -> V:
        if name not in self:
            raise KeyError(name)
        module = self._late.get(name)
        if module is not None:
            # Another thread may be importing it: what it has registered already could call what is not there yet.
            with LATE_IMPORTS:
                import_module(module)
            self._late.pop(name, None)
        return self._entries[name]

    def __contains__(self, name: object) -> bool:
        if name in self._entries or name in self._late:
            return True
        if self._package and name not in _noted_names(self._package):
            _import_all(self._package)
        return name in self._entries

    def __iter__(self) -> Iterator[str]:
        return iter({**self._entries, **self._late})

    def __len__(self) -> int:
        return len({**self._entries, **self._late})


def foreign_modules() -> frozenset[str]:
    """The modules from outside of the project that have registered something, as those of a plugin do."""
    return frozenset(_FOREIGN)


def import_modules(package: str, path: Iterable[str], ending: str = "") -> None:
    """Import the modules of a package whose names have this ending, for what they register, in the order of names.

    A package does so in its ``__init__.py``, ``import_modules(__name__, __path__)``; a new file of it is found by that.
    """
    for name in sorted(module.name for module in iter_modules(path)):
        if name.endswith(ending):
            import_module(f"{package}.{name}")


@cache
def _noted_names(package: str) -> frozenset[str]:
    """All names that modules of a package register, whatever they are names of."""
    texts = [text for key, text in REGISTERED.items() if key.startswith(f"{package} ")]
    return frozenset(name for text in texts for name, _ in _modules_of(package, text))


@cache
def _import_all(package: str) -> None:
    with LATE_IMPORTS:
        import_modules(package, import_module(package).__path__)


def _modules_of(package: str, text: str) -> Iterator[tuple[str, str]]:
    """Each name of a text of ``module: names``, and its module."""
    module = ""
    for word in text.split():
        if word.endswith(":"):
            module = f"{package}.{word[:-1]}"
        else:
            yield word, module


def _is_same_definition(one: object, other: object) -> bool:
    """Whether both are one object, or what one definition of a module made when it was executed twice."""
    return one is other or (_title(one) == _title(other) and "<" not in _title(one))


def _title(entry: object) -> str:
    return f"{getattr(entry, '__module__', '')}.{getattr(entry, '__qualname__', repr(entry))}"
