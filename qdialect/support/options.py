"""The options of a user for a model: the same ones, checked in the same way, at every entry point.

A value that nobody knows is an error that names those that are known, and so is one that nothing would use.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, Literal, Self, cast, get_args

from qdialect.support import limits, log
from qdialect.support.diagnostics import ImportModelError, InputError, did_you_mean

DYNAMIC = "dynamic"
"""A batch of any size."""

Fallback = Literal["framework", "none"]
FALLBACKS: tuple[Fallback, ...] = get_args(Fallback)

Extent = int | tuple[int, int]
"""An extent, or its minimum and its maximum."""

_SWITCH = (True, False)


def check_choice(name: str, value: object, choices: Sequence[object]) -> None:
    """Raise `InputError` unless `value` is one of `choices`, and of the same type."""
    if not any(type(value) is type(choice) and value == choice for choice in choices):
        raise InputError(f"'{name}' must be one of {', '.join(map(repr, choices))}, but got {value!r}")


def check_fallback(value: object) -> None:
    """Raise `InputError` unless `value` is one of `FALLBACKS`, or None."""
    if value is not None:
        check_choice("fallback", value, FALLBACKS)


def _check_texts(**values: object) -> None:
    for name, value in values.items():
        if not isinstance(value, str):
            raise InputError(f"'{name}' must be a text, but got {value!r}")


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _check_batch(batch: object, *, takes_any: bool) -> None:
    wanted = f"an integer or '{DYNAMIC}'" if takes_any else "an integer"
    if not _is_count(batch) and not (takes_any and batch == DYNAMIC):
        raise InputError(f"batch must be {wanted}, but got {batch!r}")
    if isinstance(batch, int) and batch < 1:
        raise ImportModelError(f"batch must be at least 1, but got {batch}")


def _check_dims(dims: object, *, takes_ranges: bool) -> None:
    if not isinstance(dims, Mapping):
        raise InputError(f"dims must be a mapping from names of extents, but got {dims!r}")
    ranges = " or a range (minimum, maximum) of extents from 0 on" if takes_ranges else ""
    for name, extent in cast("Mapping[object, object]", dims).items():
        if not isinstance(name, str):
            raise InputError(f"dims must have names of extents, or INPUT:AXIS, but got {name!r}")
        if not _is_count(extent) and not (takes_ranges and _is_range(extent)):
            raise InputError(f"dims['{name}'] must be an integer{ranges}, but got {extent!r}")


def _check_branches(branches: object) -> None:
    if not isinstance(branches, Mapping):
        raise InputError(f"branches must be a mapping from names of conditions, but got {branches!r}")
    for name, value in cast("Mapping[object, object]", branches).items():
        if not isinstance(name, str) or not isinstance(value, bool):
            raise InputError(f"branches must have True or False for names, but got {value!r} for {name!r}")


def _is_range(extent: object) -> bool:
    if not isinstance(extent, tuple):
        return False
    ends = cast("tuple[object, ...]", extent)
    return len(ends) == 2 and all(map(_is_count, ends)) and 0 <= cast("int", ends[0]) <= cast("int", ends[1])


@dataclass(frozen=True)
class ImportOptions:
    """The options of an import; raises `InputError` and, for a batch below 1, `ImportModelError`."""

    batch: int = 1
    """First extent of inputs that leave it open."""
    dims: Mapping[str, int] = field(default_factory=dict[str, int])
    """Other extents that inputs leave open, by their name or as ``INPUT:AXIS``."""
    profile: str = ""
    """Whose arithmetic the module has, by name; empty for the format's own."""
    trust: bool = False
    """Whether a .pt2 archive may run code: PyTorch itself then loads it, pickles and all."""
    signature: str = ""
    """Which of a .tflite file's signatures is imported; empty for its first subgraph."""
    branches: Mapping[str, bool] = field(default_factory=dict[str, bool])
    """Conditions of If nodes of an .onnx file, by name, that have this value instead of one at run time."""

    def __post_init__(self) -> None:
        log.configure()
        _check_batch(self.batch, takes_any=False)
        _check_dims(self.dims, takes_ranges=False)
        _check_texts(profile=self.profile)
        check_choice("trust", self.trust, _SWITCH)
        _check_texts(signature=self.signature)
        _check_branches(self.branches)

    def check_used(self, suffix: str, *, has_extents: bool) -> None:
        """Raise `InputError` for what a format does not use; `has_extents` is whether it can leave extents open."""
        if self.signature and suffix != ".tflite":
            raise InputError(f"'signature' must be given with a .tflite file, but got {self.signature!r}")
        if self.branches and suffix != ".onnx":
            raise InputError(f"'branches' must be given with an .onnx file, but got {dict(self.branches)!r}")
        if not has_extents and self.batch != 1:
            raise InputError(f"batch must be 1 for a {suffix} file, which leaves no extent open, but got {self.batch}")
        if not has_extents and self.dims:
            raise InputError(f"a {suffix} file leaves no extent open for dims, but got {', '.join(self.dims)}")


UNKEYED = ("workspaces", "cache", "externals", "jobs", "progress")
"""The options that change neither code nor results; networks with externals are not kept."""


@dataclass(frozen=True)
class CompileOptions:
    """All options of `qdialect.compile`, which documents them; commands and ``torch.compile`` have them too.

    Raises as `ImportOptions` does, and `CompileError` for threads and jobs. The cache finds networks by `text`::

        options = qdialect.CompileOptions(threads=2, batch="dynamic")
        executables = [qdialect.compile(path, options) for path in paths]
    """

    target: str = "host"
    threads: int = 1
    batch: int | Literal["dynamic"] = 1
    dims: Mapping[str, Extent] = field(default_factory=dict[str, Extent])
    profile: str = ""
    signature: str = ""
    branches: Mapping[str, bool] = field(default_factory=dict[str, bool])
    trust: bool = False
    fallback: Fallback | None = None
    workspaces: int | None = None
    cache: bool = True
    tune: bool = False
    externals: Mapping[str, Any] = field(default_factory=dict[str, Any])
    jobs: int | None = None
    progress: Callable[[str], None] | None = None

    def __post_init__(self) -> None:
        log.configure()
        _check_texts(target=self.target)
        limits.checked(self.threads)
        _check_batch(self.batch, takes_any=True)
        _check_dims(self.dims, takes_ranges=True)
        _check_texts(profile=self.profile, signature=self.signature)
        _check_branches(self.branches)
        check_choice("trust", self.trust, _SWITCH)
        check_fallback(self.fallback)
        check_choice("cache", self.cache, _SWITCH)
        check_choice("tune", self.tune, _SWITCH)
        if self.jobs is not None:
            limits.checked_jobs(self.jobs)
        if not isinstance(cast("object", self.externals), Mapping):
            raise InputError(f"externals must be a mapping from names of targets, but got {self.externals!r}")
        if self.progress is not None and not callable(self.progress):
            raise InputError(f"progress must be a function of a text, but got {self.progress!r}")

    @classmethod
    def of(cls, given: Mapping[str, Any], names: Sequence[str], where: str) -> Self:
        """Those that are `given` by name; raises `InputError` for one that is not among `names`, those of `where`."""
        unknown = sorted(given.keys() - set(names))
        if unknown:
            hint = did_you_mean(unknown[0], names)
            raise InputError(f"options of {where} must be {', '.join(names)}, but got {', '.join(unknown)}{hint}")
        return cls(**given)

    def replaced_by(self, options: object) -> CompileOptions:
        """`options`, or these where it is None; raises `InputError` where both were given, and for another object."""
        if options is None:
            return self
        if not isinstance(options, CompileOptions):
            raise InputError(f"options must be an object of CompileOptions, but got {options!r}")
        if self != CompileOptions():
            raise InputError("options must be given in one object or by name, but got both")
        return options

    @property
    def is_dynamic(self) -> bool:
        """Whether the batch is of any size."""
        return self.batch == DYNAMIC

    @property
    def ranges(self) -> Mapping[str, tuple[int, int]]:
        """Those of `dims` that are ranges."""
        return {name: extent for name, extent in self.dims.items() if not isinstance(extent, int)}

    @property
    def importing(self) -> ImportOptions:
        """How the model is read for the first shape of its inputs: of a range its largest extent, of any batch one."""
        batch = 1 if isinstance(self.batch, str) else self.batch
        dims = {name: extent if isinstance(extent, int) else extent[1] for name, extent in self.dims.items()}
        return ImportOptions(batch, dims, self.profile, self.trust, self.signature, self.branches)

    def check_module(self) -> None:
        """Raise `InputError` for what is about a model file, where a module is compiled."""
        given = {
            "batch": () if self.is_dynamic or self.batch == 1 else self.batch,
            "dims": self.dims,
            "profile": self.profile,
            "signature": self.signature,
            "branches": self.branches,
        }
        for name, value in given.items():
            if value:
                raise InputError(f"'{name}' must be given with a model file, but got {value!r} with a module")

    def text(self) -> str:
        """The options that the network of a shape depends on."""
        values = {one.name: getattr(self, one.name) for one in fields(self) if one.name not in UNKEYED}
        values["dims"] = sorted((repr(name), repr(extent)) for name, extent in self.dims.items())
        values["branches"] = sorted(self.branches.items())
        # By default it is the framework, with a warning: of a network that is kept it runs nothing.
        values["fallback"] = self.fallback or "framework"
        return repr(values)
