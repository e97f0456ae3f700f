"""Builds sdist and wheel as a release has them, and uses the wheel with every Python that is here.

The sdist must hold every file of the checkout, and give the same wheel as the checkout does. A version of Python that
is not here is told: the metadata names those that this tool has checked.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import tomllib
import venv
import zipfile
from pathlib import Path

from check_wheel import PIP, ROOT, check, copied, run

# The front end of builds, exact.
BUILD = "build==1.6.1"
VERSIONS = ("3.11", "3.12", "3.13", "3.14")
CLASSIFIER = "Programming Language :: Python :: 3."
ASK = "import sys; print(*sys.version_info[:2], sep='.')"


def main() -> int:
    with tempfile.TemporaryDirectory(prefix="qdialect-release-") as name:
        folder = Path(name)
        source = copied(folder / "source")
        venv.create(folder / "build", with_pip=True)
        builder = folder / "build" / "bin" / "python"
        run(builder, *PIP, "install", BUILD, cwd=folder)
        # The wheel of a release is made from the sdist.
        run(builder, "-m", "build", "--outdir", folder / "release", source, cwd=folder)
        run(builder, "-m", "build", "--wheel", "--outdir", folder / "direct", source, cwd=folder)
        (sdist,) = (folder / "release").glob("qdialect-*.tar.gz")
        (wheel,) = (folder / "release").glob("qdialect-*.whl")
        problems = [*missing_files(sdist, source), *differences(wheel, folder / "direct" / wheel.name)]
        if problems:
            print(*problems, sep="\n", file=sys.stderr)
            return 1
        return check_pythons(wheel, folder, builder)


def check_pythons(wheel: Path, folder: Path, builder: Path) -> int:
    """Use the wheel with each Python that is here; of others the interpreter `builder` says whether they could."""
    absent: list[str] = []
    for version in VERSIONS:
        python = find(version)
        if python is None:
            absent.append(absence(builder, version, wheel))
            continue
        print(f"Python {version}: {python}", flush=True)
        (folder / version).mkdir()
        check(python, wheel, folder / version)
    print(*absent, sep="\n")
    return 0


def absence(builder: Path, version: str, wheel: Path) -> str:
    """What a version of Python lacks that is not here: its interpreter, and perhaps wheels that the wheel needs."""
    said = f"Python {version}: not checked, because no interpreter of it is here"
    for_it = ("--python-version", version, "--only-binary", ":all:", "--target", wheel.parent / version)
    found = subprocess.run(
        [builder, *PIP, "install", "--dry-run", *for_it, wheel], capture_output=True, text=True, check=False
    )
    if found.returncode == 0:
        return f"{said}; the wheels of all that it needs are to be had"
    lines = [line for line in found.stderr.splitlines() if line.startswith("ERROR")]
    return "; ".join([said, *lines])


def named_versions() -> list[str]:
    """The versions of Python that the metadata names."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    return [f"3.{text.removeprefix(CLASSIFIER)}" for text in project["classifiers"] if text.startswith(CLASSIFIER)]


def find(version: str) -> Path | None:
    """An interpreter of this version: on the path, of pyenv or of uv; None where there is none that runs."""
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
    uv = Path(os.environ.get("UV_PYTHON_INSTALL_DIR", Path.home() / ".local" / "share" / "uv" / "python"))
    on_path = shutil.which(f"python{version}")
    found = [
        *([Path(on_path)] if on_path else []),
        *sorted(pyenv.glob(f"versions/{version}.*/bin/python")),
        *sorted(uv.glob(f"cpython-{version}.*/bin/python3")),
    ]
    return next((python for python in found if _is(python, version)), None)


def _is(python: Path, version: str) -> bool:
    # A shim of pyenv for a version that is not chosen is there, and fails.
    asked = subprocess.run(
        [python, "-c", f"import ensurepip, venv\n{ASK}"], capture_output=True, text=True, check=False
    )
    return asked.returncode == 0 and asked.stdout.strip() == version


def missing_files(sdist: Path, source: Path) -> list[str]:
    """What the sdist lacks of a copy of the checkout."""
    with tarfile.open(sdist) as archive:
        held = {name.partition("/")[2] for name in archive.getnames()}
    files = {path.relative_to(source).as_posix() for path in source.rglob("*") if path.is_file()}
    # What building leaves, and what git alone reads.
    wanted = {name for name in files if not name.startswith(("build/", "qdialect.egg-info/"))}
    return [f"sdist must hold {name}" for name in sorted(wanted - held)]


def differences(wheel: Path, other: Path) -> list[str]:
    """How the contents of two wheels differ."""
    one, two = (_contents(path) for path in (wheel, other))
    names = sorted(name for name in one.keys() | two.keys() if one.get(name) != two.get(name))
    return [f"wheels of the sdist and of the checkout must agree, but differ in {name}" for name in names]


def _contents(wheel: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(wheel) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


if __name__ == "__main__":
    sys.exit(main())
