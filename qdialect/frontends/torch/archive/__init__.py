"""Archives that `torch.export.save` wrote, read without running anything in them.

`torch.export.load` cannot be made safe from outside.  It unpickles weights, constants and sample inputs, hands
symbolic extents to `sympy`, which evaluates them as Python, and finds operators by following attributes from the
package `torch`.  So archives are read here, from the zip file and the JSON in it to a `Graph`: the JSON names
operators, which are looked up in PyTorch's registry by name and are run only by
`qdialect.frontends.torch.program.folding`, and weights are raw bytes.  A sanitized archive for PyTorch's reader would
have to keep step with everything that reader looks at.  This reader opens the following members and no other:

- ``models/model.json``, the program;
- ``data/weights/model_weights_config.json`` and ``data/constants/model_constants_config.json``, where tensors lie;
- the members that these name for parameters, buffers and constants of the program.

What needs more than that, pickled tensors and objects, is refused unless the archive is trusted; then PyTorch reads it.
"""

import io
import logging
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

from qdialect.frontends.building.extents import Extents
from qdialect.frontends.torch.archive.members import Members
from qdialect.frontends.torch.archive.program import open_shapes as shapes_of
from qdialect.frontends.torch.archive.program import read_members
from qdialect.frontends.torch.program.model import Graph
from qdialect.frontends.torch.program.pytorch_operators import torch_package
from qdialect.frontends.torch.program.reader import read_program
from qdialect.support.diagnostics import ImportModelError

__all__ = ["open_shapes", "read_archive"]


def read_archive(content: bytes, extents: Extents, *, trust: bool = False) -> Graph:
    """The graph of an archive; where it is trusted, `torch.export.load` reads it and runs what it holds.

    `extents` sets the extents that inputs leave open.

    Raises `ImportModelError` for a damaged archive, one that cannot be read without trust, and where the package
    `torch` is not installed.
    """
    torch_package()
    return read_program(_trusted(content), extents) if trust else read_members(Members(content), extents)


def open_shapes(content: bytes) -> dict[str, tuple[int | str, ...]]:
    """The shapes of the inputs of an archive that was read before, with names of the extents that it leaves open."""
    return shapes_of(Members(content))


# Archives that are trusted: PyTorch reads them, and runs whatever they hold.


def _trusted(content: bytes) -> Any:
    """The exported program of an archive.

    Raises `ImportModelError` for a damaged one and one that calls operators which are not registered.
    """
    with _held_back("torch.export") as records:
        try:
            return torch_package().export.load(io.BytesIO(content))
        # The archive is a zip of JSON and pickles, and its reader lets through whatever these raise.
        except Exception as error:
            # The first failure is logged; the error is that of another try, at the format before this one.
            logged = next((record.exc_info[1] for record in records if record.exc_info), None)
            raise ImportModelError(
                f"file is no archive that torch.export.load reads: {_reason(logged or error)}"
            ) from error


@contextmanager
def _held_back(logger: str) -> Generator[list[logging.LogRecord]]:
    """Capture log messages inside the `with`, instead of showing them."""
    records: list[logging.LogRecord] = []

    def keep(record: logging.LogRecord) -> bool:
        records.append(record)
        return False

    source = logging.getLogger(logger)
    source.addFilter(keep)
    try:
        yield records
    finally:
        source.removeFilter(keep)


def _reason(error: BaseException) -> str:
    """The first sentence of the innermost error; the rest is advice on PyTorch's own use."""
    while error.__cause__ is not None:
        error = error.__cause__
    text = str(error) or type(error).__name__
    return text.splitlines()[0].split(". ")[0].rstrip(".")
