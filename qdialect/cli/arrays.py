"""Arrays that a command is given as files."""

from __future__ import annotations

from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from qdialect.diagnostics import InputError


def load_array(name: str) -> NDArray[Any]:
    """The array of a .npy file; raises `InputError` for a file that is none."""
    try:
        loaded: Any = np.load(name, allow_pickle=False)
    except (OSError, ValueError, EOFError) as error:
        raise InputError(f"cannot read '{name}' as a .npy file: {error}") from error
    if not isinstance(loaded, np.ndarray):
        raise InputError(f"'{name}' must be a .npy file, but got an archive of arrays")
    return cast("NDArray[Any]", loaded)
