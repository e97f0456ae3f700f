"""Fetches Bochs, of at least version 3.0, from Debian's archive into a folder; installs nothing.

    python -m tools.emulator.install FOLDER

Needs a Debian with apt, dpkg, gcc, nm and readelf.  The suite `unstable` is read from the machine's own mirror, with
lists and caches inside the folder.  Bochs is linked with a toolkit for windows, which it does not need as it is used
here: one library of stubs stands for all of that.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

from tools.emulator.rom import FIRMWARE

_PACKAGES = ("bochs", "libc6", "libgcc-s1", "libltdl7", "libstdc++6")
_LIBRARIES = "usr/lib/x86_64-linux-gnu"
_SOURCES = Path("/etc/apt/sources.list.d/debian.sources")
_LAUNCHER = """\
#!/bin/sh
home=$(cd "$(dirname "$0")" && pwd)
libraries=$home/root/{libraries}
export BXSHARE="$home/root/usr/share/bochs" LTDL_LIBRARY_PATH="$libraries/bochs/plugins"
exec "$libraries/ld-linux-x86-64.so.2" --preload "$home/tile_signs.so" \\
    --library-path "$libraries:$home/stubs" "$home/root/usr/bin/bochs-bin" "$@"
"""


def install(home: Path) -> None:
    """Fill the folder `home`; raises `OSError` or `subprocess.CalledProcessError` where that cannot be."""
    home.mkdir(parents=True, exist_ok=True)
    _unpack(home)
    program, libraries = home / "root/usr/bin/bochs-bin", home / "root" / _LIBRARIES
    _write_stubs(program, libraries, home / "stubs")
    shared = ["gcc", "-O2", "-shared", "-fPIC"]
    subprocess.run([*shared, "-o", home / "tile_signs.so", FIRMWARE / "tile_signs.c"], check=True)
    launcher = home / "bochs"
    launcher.write_text(_LAUNCHER.format(libraries=_LIBRARIES))
    launcher.chmod(0o755)
    subprocess.run([launcher, "--help", "cpu"], check=True, capture_output=True)


def _unpack(home: Path) -> None:
    """The files of the packages, under ``root``."""
    stanza = _SOURCES.read_text().split("\n\n", 1)[0]
    stanza = re.sub(r"(?m)^Suites:.*$", "Suites: unstable", stanza)
    (home / "unstable.sources").write_text(re.sub(r"(?m)^Components:.*$", "Components: main", stanza) + "\n")
    for folder in ("lists/partial", "cache/archives/partial", "packages", "root"):
        (home / folder).mkdir(parents=True, exist_ok=True)
    settings = {
        "Dir::Etc::sourcelist": home / "unstable.sources",
        "Dir::Etc::sourceparts": "/nonexistent",
        "Dir::State::Lists": home / "lists",
        "Dir::Cache": home / "cache",
        "APT::Sandbox::User": os.environ.get("USER", "root"),
    }
    apt = ["apt-get", "-qq", *(word for name, value in settings.items() for word in ("-o", f"{name}={value}"))]
    subprocess.run([*apt, "update"], check=True)
    subprocess.run([*apt, "download", *_PACKAGES], check=True, cwd=home / "packages")
    for package in sorted((home / "packages").glob("*.deb")):
        subprocess.run(["dpkg", "-x", package, home / "root"], check=True)


def _write_stubs(program: Path, libraries: Path, folder: Path) -> None:
    """A library with every function that `program` wants and no library here has, under all names that are missing."""
    folder.mkdir(exist_ok=True)
    dynamic = subprocess.run(["readelf", "-d", program], check=True, capture_output=True, text=True).stdout
    needed = re.findall(r"\(NEEDED\).*\[(.*)\]", dynamic)
    known = set[str]().union(*(_symbols(libraries / name, "-defined-only") for name in needed if _is(libraries, name)))
    missing = sorted(_symbols(program, "-undefined-only") - known)
    source = folder / "stubs.c"
    source.write_text("".join(f"void {name}(void) {{ __builtin_trap(); }}\n" for name in missing))
    flags = ["-w", "-shared", "-fPIC", "-nostdlib", "-fno-builtin"]
    subprocess.run(["gcc", *flags, "-o", folder / "stubs.so", source], check=True)
    for name in needed:
        link = folder / name
        if not _is(libraries, name) and not link.exists():
            link.symlink_to("stubs.so")


def _is(libraries: Path, name: str) -> bool:
    return (libraries / name).exists()


def _symbols(file: Path, which: str) -> set[str]:
    text = subprocess.run(["nm", "-D", f"-{which}", file], check=True, capture_output=True, text=True).stdout
    return {line.split()[-1].partition("@")[0] for line in text.splitlines() if line.split()[-2] != "w"}


if __name__ == "__main__":
    try:
        install(Path(sys.argv[1]).resolve())
    except (OSError, subprocess.CalledProcessError) as error:
        sys.exit(f"the emulator is not here: {error}")
