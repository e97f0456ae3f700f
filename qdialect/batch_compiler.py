"""A model file for batches of any size, whether they compute the same for an entry or not."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from logging import getLogger
from pathlib import Path

from qdialect.batching.network import BatchNetwork
from qdialect.batching.reading import is_of_size, read_batched, reads_extents
from qdialect.batching.sizes import SIZES
from qdialect.diagnostics import NOT_COMPILED, QDialectError
from qdialect.fallback import is_unsupported
from qdialect.model_files import OpenShapes, open_shapes
from qdialect.options import ImportOptions
from qdialect.runtime.base import Executable
from qdialect.shaped import BatchShapedExecutable

# A model may have no batch of one: it takes a second entry.
_FIRST_SIZES = (1, 2, 3, 8, 64)
_LOG = getLogger("qdialect")


@dataclass(frozen=True)
class BatchCompiler:
    """Compiles a model file for batches."""

    path: Path
    any_size: Callable[[BatchNetwork], Executable]
    """Compiles one network for all of them."""
    one_size: Callable[[ImportOptions], Executable]
    """Compiles the model with all its extents."""

    def executable(self, options: ImportOptions) -> Executable:
        """One network for all batches that are proven to be computed alike, and one for each other that comes.

        Raises `ImportModelError` and `CompileError` for a model that cannot be compiled for a batch of one size either.
        """
        try:
            network = read_batched(self.path, options)
            compiled = self.any_size(network)
        except NOT_COMPILED as error:
            return self._of_each_size(options, error)
        if not reads_extents(self.path, options):
            return compiled
        alike: set[int] = set()

        def of_size(extents: Mapping[str, int]) -> Executable:
            # Where inputs have batches of several sizes, the network says so.
            new = set(extents.values()) - alike - {0}
            if len(new) == 1 and not is_of_size(network, self.path, replace(options, batch=min(new))):
                return self._of(options, extents)
            alike.update(new)
            return compiled

        def check() -> None:
            read_batched(self.path, options, SIZES)

        return BatchShapedExecutable(compiled, self._declared(compiled, options), of_size, check)

    def _of_each_size(self, options: ImportOptions, error: QDialectError) -> Executable:
        if not is_unsupported(error) or not self._batches(options):
            raise error
        first = self._first(options)
        _LOG.info("'%s' is compiled for each batch that it is called with: %s", self.path.name, error.message)

        def check() -> None:
            raise error

        declared = self._declared(first, options)
        return BatchShapedExecutable(first, declared, lambda extents: self._of(options, extents), check)

    def _first(self, options: ImportOptions) -> Executable:
        """The model for the first size that it has; raises for that of one entry where there is none."""
        errors: list[QDialectError] = []
        for size in _FIRST_SIZES:
            try:
                return self.one_size(replace(options, batch=size))
            except NOT_COMPILED as error:
                errors.append(error)
        raise errors[0]

    def _of(self, options: ImportOptions, extents: Mapping[str, int]) -> Executable:
        sizes = ", ".join(f"{name}={size}" for name, size in extents.items())
        _LOG.info("'%s' is compiled for a batch of its own: %s", self.path.name, sizes)
        return self.one_size(replace(options, dims={**options.dims, **extents}))

    def _batches(self, options: ImportOptions) -> set[tuple[str, str]]:
        """Where the batch is: inputs and what the file calls their first extents, where the user says nothing of it."""
        opened = open_shapes(self.path, options)
        firsts = {(name, shape[0]) for name, shape in opened.items() if shape and isinstance(shape[0], str)}
        return {(name, extent) for name, extent in firsts if not options.dims.keys() & {f"{name}:0", extent}}

    def _declared(self, compiled: Executable, options: ImportOptions) -> OpenShapes:
        """The shapes of inputs, of which extents of the batch alone are open."""
        opened, batches = open_shapes(self.path, options), self._batches(options)
        names = {extent for _, extent in batches if extent}

        def extent_of(name: str, axis: int, own: int) -> int | str:
            said = opened[name][axis] if name in opened else own
            return said if said in names or (axis == 0 and (name, said) in batches) else own

        ports = {port.name: port.shape for port in compiled.inputs}
        return {name: [extent_of(name, axis, own) for axis, own in enumerate(shape)] for name, shape in ports.items()}
