"""Builds the wheel, installs it in a fresh environment away from the checkout, and compiles with it there."""

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
BUILT = (".git", *(line.rstrip("/") for line in (ROOT / ".gitignore").read_text().split()))
"""Names of what is not part of the checkout: git ignores it too."""

MODULE = """
func.func @main(%x: tensor<1x8xi8>) -> tensor<1x8xi8> {
  %0 = "qnn.relu"(%x) {
    input_scale = 0.5 : f64, input_zero_point = 3 : i64, output_scale = 0.5 : f64, output_zero_point = 3 : i64,
    entries = "half_away_divide", nan = "max"
  } : (tensor<1x8xi8>) -> tensor<1x8xi8>
  return %0 : tensor<1x8xi8>
}
"""

USE = """
import pathlib, sys
import numpy as np
import qdialect
assert pathlib.Path(qdialect.__file__).is_relative_to(sys.prefix), qdialect.__file__
data = np.arange(-4, 4, dtype=np.int8).reshape(1, 8)
result = qdialect.compile(qdialect.parse(pathlib.Path("relu.mlir")), cache=False)(data)
np.testing.assert_array_equal(result, np.maximum(data, 3))
np.testing.assert_array_equal(qdialect.load("relu.so")(data), result)
print("compiled and ran with", qdialect.__version__)
"""


PIP = ("-m", "pip", "--quiet", "--disable-pip-version-check")


def run(*command: str | Path, cwd: Path) -> None:
    print("+", *map(str, command[:4]), flush=True)
    subprocess.run(command, cwd=cwd, check=True)


def copied(folder: Path) -> Path:
    """A copy of the checkout, because setuptools packs whatever earlier builds have left in the build folder."""
    return shutil.copytree(ROOT, folder, ignore=shutil.ignore_patterns(*BUILT))


def check(python: str | Path, wheel: Path, folder: Path) -> None:
    """Install a wheel alone in a new environment of `python` below `folder`, and use it there."""
    run(python, "-m", "venv", folder / "env", cwd=folder)
    scripts = folder / "env" / "bin"
    run(scripts / "python", *PIP, "install", wheel, cwd=folder)
    (folder / "relu.mlir").write_text(MODULE)
    run(scripts / "qdialect-opt", "--version", cwd=folder)
    run(scripts / "qdialect-opt", "relu.mlir", "--fuse-qnn", "-o", "fused.mlir", cwd=folder)
    run(scripts / "qdialect-compile", "relu.mlir", "-o", "relu.so", cwd=folder)
    run(scripts / "qdialect-explore", "relu.mlir", "-o", "page.html", "--no-measure", cwd=folder)
    run(scripts / "python", "-c", USE, cwd=folder)


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="qdialect-wheel-") as name:
        folder = Path(name)
        source = copied(folder / "source")
        run(sys.executable, *PIP, "wheel", "--no-deps", "--wheel-dir", folder, source, cwd=folder)
        (wheel,) = folder.glob("qdialect-*.whl")
        check(sys.executable, wheel, folder)


if __name__ == "__main__":
    main()
