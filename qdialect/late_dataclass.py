"""Dataclasses whose methods are made when they are first used.

`dataclasses.dataclass` writes the methods of a class as text and compiles them one by one while the module is imported.
That is 0.2 to 0.4 ms for a class, and most of the classes that a command imports have no instance in it::

    from qdialect.late_dataclass import dataclass


    @dataclass(frozen=True)
    class Window:
        height: int
        width: int = 1

Type checkers see `dataclasses.dataclass`. `dataclasses.fields`, `replace` and `asdict` take these classes, and classes
of both kinds may inherit from each other. Positional class patterns, ``slots``, ``order`` and `dataclasses.InitVar` are
not supported.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from operator import attrgetter
from reprlib import recursive_repr
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

Fields = Mapping[str, "dataclasses.Field[Any]"]
Class = type[Any]
Method = Callable[..., Any]

_FIELDS, _PARAMS = "__dataclass_fields__", "__dataclass_params__"
# A docstring: `dataclasses` would write one, from a signature.
_DOCSTRING = "The fields of a class."


def _dataclass(
    decorated: Class | None = None, /, *, frozen: bool = False, eq: bool = True, kw_only: bool = False
) -> Class | Callable[[Class], Class]:
    """A class, or a decorator for it; the options are those of `dataclasses.dataclass`."""

    def prepared(one: Class) -> Class:
        _prepare(one, frozen, eq, kw_only)
        return one

    return prepared if decorated is None else prepared(decorated)


if TYPE_CHECKING:
    from dataclasses import dataclass as dataclass
else:
    dataclass = _dataclass


class _LateFields:
    """The attribute in which `dataclasses` keeps the fields of a class: at its first use they take its place."""

    def __init__(self, owner: Class, own: Mapping[str, object]) -> None:
        self._owner, self._own = owner, own

    def __get__(self, instance: object, owner: Class) -> Fields:
        found: dict[str, dataclasses.Field[Any]] = {}
        for base in self._owner.__mro__[:0:-1]:
            found.update(getattr(base, _FIELDS, {}))
        alone = type(self._owner.__name__, (), dict(self._own))
        kw_only = getattr(self._owner, _PARAMS).kw_only
        found.update(getattr(dataclasses.dataclass(init=False, repr=False, eq=False, kw_only=kw_only)(alone), _FIELDS))
        setattr(self._owner, _FIELDS, found)
        return found


def _prepare(one: Class, frozen: bool, eq: bool, kw_only: bool) -> None:
    defined = dict(vars(one))
    own = {name: getattr(one, name) for name in one.__annotations__ if hasattr(one, name)}
    described = {**own, "__annotations__": one.__annotations__, "__module__": one.__module__, "__doc__": _DOCSTRING}
    setattr(one, _FIELDS, _LateFields(one, described))
    setattr(one, _PARAMS, SimpleNamespace(frozen=frozen, eq=eq, kw_only=kw_only))
    for name, value in own.items():
        _leave_default(one, name, value)
    made = ["__init__", "__repr__"] + ["__eq__"] * eq + ["__hash__"] * (eq and frozen)
    methods: dict[str, object] = {name: _late(one, name) for name in made}
    if frozen:
        methods.update(__setattr__=_frozen_set(one), __delattr__=_frozen_delete(one))
    elif eq:
        methods["__hash__"] = None
    for name, method in methods.items():
        # A class that defines `__eq__` has None for its hash.
        if defined.get(name) is None:
            setattr(one, name, method)


def _leave_default(one: Class, name: str, value: object) -> None:
    """In place of what describes a field, leave its default as the attribute of the class, or nothing."""
    if not isinstance(value, dataclasses.Field):
        return
    default: object = cast("dataclasses.Field[object]", value).default
    if default is dataclasses.MISSING:
        delattr(one, name)
    else:
        setattr(one, name, default)


def _late(one: Class, name: str) -> Method:
    """A method that is made at its first call and takes the place of this one; two threads make the same."""

    def late(*arguments: Any, **keywords: Any) -> Any:
        made = _MAKERS[name](one)
        setattr(one, name, _named(made, one, name))
        return made(*arguments, **keywords)

    return _named(late, one, name)


def _named(method: Method, one: Class, name: str) -> Method:
    method.__name__, method.__qualname__ = name, f"{one.__qualname__}.{name}"
    return method


def _init(one: Class) -> Method:
    """``__init__``, from text as that of `dataclasses`: it is called more often than the others."""
    fields = dataclasses.fields(one)
    arguments = [field for field in fields if field.init]
    positional = [_argument(field) for field in arguments if not field.kw_only]
    named = [_argument(field) for field in arguments if field.kw_only]
    signature = ", ".join(["self", *positional, *(["*"] if named else []), *named])
    set_field = "_set(self, '{0}', {1})" if getattr(one, _PARAMS).frozen else "self.{0} = {1}"
    values = {field.name: _value(field) for field in fields if field.init or _has_factory(field)}
    lines = [set_field.format(name, value) for name, value in values.items()]
    lines += ["self.__post_init__()"] if hasattr(one, "__post_init__") else []
    known: dict[str, Any] = {"_set": object.__setattr__, "_MISSING": dataclasses.MISSING}
    known.update({f"_default_{field.name}": field.default for field in fields})
    known.update({f"_factory_{field.name}": field.default_factory for field in fields})
    exec(f"def __init__({signature}):\n    " + "\n    ".join(lines or ["pass"]), known)
    return known["__init__"]


def _has_factory(field: dataclasses.Field[Any]) -> bool:
    return field.default_factory is not dataclasses.MISSING


def _argument(field: dataclasses.Field[Any]) -> str:
    if _has_factory(field):
        return f"{field.name}=_MISSING"
    return field.name if field.default is dataclasses.MISSING else f"{field.name}=_default_{field.name}"


def _value(field: dataclasses.Field[Any]) -> str:
    """What `__init__` puts into a field."""
    if not _has_factory(field):
        return field.name
    made = f"_factory_{field.name}()"
    return f"{made} if {field.name} is _MISSING else {field.name}" if field.init else made


def _repr(one: Class) -> Method:
    names = [field.name for field in dataclasses.fields(one) if field.repr]

    @recursive_repr()
    def shown(self: object) -> str:
        return f"{type(self).__qualname__}({', '.join(f'{name}={getattr(self, name)!r}' for name in names)})"

    return shown


def _eq(one: Class) -> Method:
    values = _values([field.name for field in dataclasses.fields(one) if field.compare])

    def equal(self: object, other: object) -> bool:
        return values(self) == values(other) if type(other) is type(self) else NotImplemented

    return equal


def _hash(one: Class) -> Method:
    fields = dataclasses.fields(one)
    values = _values([field.name for field in fields if (field.compare if field.hash is None else field.hash)])

    def hashed(self: object) -> int:
        return hash(values(self))

    return hashed


def _values(names: Sequence[str]) -> Callable[[Any], tuple[object, ...]]:
    """The function that gives the values of some fields."""
    if len(names) > 1:
        return attrgetter(*names)
    return lambda one: tuple(getattr(one, name) for name in names)


def _frozen_set(one: Class) -> Method:
    def refuse(self: object, name: str, value: object) -> None:
        if type(self) is one or name in getattr(one, _FIELDS):
            raise dataclasses.FrozenInstanceError(f"cannot assign to field {name!r}")
        super(one, self).__setattr__(name, value)

    return _named(refuse, one, "__setattr__")


def _frozen_delete(one: Class) -> Method:
    def refuse(self: object, name: str) -> None:
        if type(self) is one or name in getattr(one, _FIELDS):
            raise dataclasses.FrozenInstanceError(f"cannot delete field {name!r}")
        super(one, self).__delattr__(name)

    return _named(refuse, one, "__delattr__")


_MAKERS: Mapping[str, Callable[[Class], Method]] = {
    "__init__": _init,
    "__repr__": _repr,
    "__eq__": _eq,
    "__hash__": _hash,
}
