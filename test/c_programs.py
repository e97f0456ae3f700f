"""Programs in C and C++ on compiled networks, and what the tools of a C compiler say of files."""

import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from absence import absent
from bounds import HANG
from numpy.typing import NDArray

from qdialect.cli import compile as command
from qdialect.support.interface import Port

Array = NDArray[Any]
EXAMPLES = Path(__file__).resolve().parents[1] / "examples"
STRICT = ("-Wall", "-Wextra", "-Werror", "-Wshadow", "-Wconversion", "-pedantic")
HERE = "-Wl,-rpath,."
"""Where programs look for libraries: in the folder that they are run in."""


def tool(name: str) -> str:
    """The path of a program; absent: the test is skipped, in CI it fails."""
    return shutil.which(name) or absent(f"{name} is not installed")


def ran(*arguments: str | Path, folder: Path, status: int = 0) -> str:
    """The text of a program, on stdout and stderr, where it ends with `status`."""
    done = subprocess.run(
        [*map(str, arguments)],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=HANG,
        check=False,
    )
    assert done.returncode == status, f"{arguments}: exit status {done.returncode}\n{done.stdout[-4000:]}"
    return done.stdout


def compiled(folder: Path, text: str, *options: str, output: str = "model.so") -> Path:
    """The file that ``qdialect-compile`` writes for a module."""
    (folder / "model.mlir").write_text(text)
    assert command.main([str(folder / "model.mlir"), "-o", str(folder / output), *options]) == 0
    return folder / output


def build_c(folder: Path, *options: str, library: str = "./model.so") -> Path:
    """The example in C, built for the network in `folder`."""
    source = EXAMPLES / "c" / "run_model.c"
    ran(tool("cc"), "-std=c11", *STRICT, *options, "-I.", source, library, HERE, "-o", "run_model", folder=folder)
    return folder / "run_model"


def arrays_of_c(folder: Path, inputs: Sequence[Array], outputs: Sequence[Port], *before: str) -> list[Array]:
    """The outputs that the example in C computes; it is run by the program `before`, if there is one."""
    names: list[str] = []
    for index, array in enumerate(inputs):
        names.append(f"input{index}.bin")
        (folder / names[-1]).write_bytes(array.tobytes())
    results = [f"output{index}.bin" for index in range(len(outputs))]
    ran(*before, "./run_model", *names, *results, folder=folder)
    return [
        np.frombuffer((folder / name).read_bytes(), port.dtype).reshape(port.shape)
        for name, port in zip(results, outputs, strict=True)
    ]
