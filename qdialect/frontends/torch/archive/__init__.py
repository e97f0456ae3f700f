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

from qdialect.frontends.building.extents import Extents
from qdialect.frontends.torch.archive.members import Members
from qdialect.frontends.torch.archive.program import open_shapes as shapes_of
from qdialect.frontends.torch.archive.program import read_members
from qdialect.frontends.torch.archive.trusted import load_trusted
from qdialect.frontends.torch.program.model import Graph
from qdialect.frontends.torch.program.pytorch_operators import torch_package
from qdialect.frontends.torch.program.reader import read_program

__all__ = ["open_shapes", "read_archive"]


def read_archive(content: bytes, extents: Extents, *, trust: bool = False) -> Graph:
    """The graph of an archive; where it is trusted, `torch.export.load` reads it and runs what it holds.

    `extents` sets the extents that inputs leave open.

    Raises `ImportModelError` for a damaged archive, one that cannot be read without trust, and where the package
    `torch` is not installed.
    """
    torch_package()
    return read_program(load_trusted(content), extents) if trust else read_members(Members(content), extents)


def open_shapes(content: bytes) -> dict[str, tuple[int | str, ...]]:
    """The shapes of the inputs of an archive that was read before, with names of the extents that it leaves open."""
    return shapes_of(Members(content))
