"""lit configuration: what stands for a tool in RUN lines, and which features this machine has.

Substitutions: ``%qopt``, ``%qimport`` and ``%qrun`` are the commands of this checkout, ``%hotloop`` is its tool that
counts instructions; ``%python`` is the interpreter; ``filecheck`` (or ``FileCheck``) is the one from PyPI;
``%roundtrip`` checks that the test's module is the same after a print and a parse of it, and compares the print with
the test's CHECK lines.  The package must be installed (``make setup``): a PYTHONPATH would not do, because
lit's own ``cat`` and ``diff`` overwrite it.  These commands are forks of lit's worker (`test/forked_commands.py`).

Features: ``avx512_vnni`` and ``avx512_vbmi`` where this machine executes them, ``models`` where a real network is here.
"""

import os
import shlex
import sys
from importlib import import_module
from pathlib import Path

from lit.LitConfig import LitConfig
from lit.TestingConfig import TestingConfig

from qdialect.bench.models import find

config: TestingConfig = globals()["config"]
lit_config: LitConfig = globals()["lit_config"]

# Feature: the kernel's name of the instruction set.
CPU_FEATURES = {"avx512_vnni": "avx512_vnni", "avx512_vbmi": "avx512vbmi"}

root = Path(__file__).resolve().parents[2]
# As pytest does: what tests share lies beside their folders.
sys.path.append(str(root / "test"))


def cpu_flags() -> set[str]:
    """Instruction sets of this machine, by the kernel's names; empty where the kernel does not say."""
    try:
        text = Path("/proc/cpuinfo").read_text()
    except OSError:
        return set()
    lines = (line.partition(":") for line in text.splitlines())
    return {flag for key, _, value in lines if key.strip() == "flags" for flag in value.split()}


def substitutions() -> list[tuple[str, str]]:
    """Pattern and replacement of every name that RUN lines may use, in the order in which they are applied."""
    python = shlex.quote(sys.executable)
    return [
        ("%roundtrip", "%qopt %s --verify-roundtrip -o %t && filecheck %s --input-file %t"),
        ("%qopt", f"{python} -m qdialect.cli.opt"),
        ("%qimport", f"{python} -m qdialect.cli.import_model"),
        ("%qrun", f"{python} -m qdialect.cli.run"),
        ("%hotloop", f"{python} {shlex.quote(str(root / 'tools' / 'hot_loop.py'))}"),
        ("%python", python),
        # A path may contain the word: only a command stands between blanks.
        (r"(?<!\S)(filecheck|FileCheck)(?!\S)", f"{python} -m filecheck"),
    ]


config.name = "qdialect"
config.test_format = import_module("forked_commands").ForkedShTest()
config.suffixes = [".mlir", ".py"]
config.excludes = ["lit.cfg.py", "Inputs"]
config.test_source_root = str(root / "test" / "lit")
config.test_exec_root = str(root / "build" / "lit")
config.substitutions = substitutions()
for variable in ("CI", "QDIALECT_MODELS"):
    if variable in os.environ:
        config.environment[variable] = os.environ[variable]
# No test is to pass because of what was compiled before.
config.environment["QDIALECT_CACHE"] = "off"

config.available_features = {name for name, flag in CPU_FEATURES.items() if flag in cpu_flags()}
if find("mobilenet_v1_0.25_224_quant"):
    config.available_features.add("models")
elif os.environ.get("CI") == "true":
    lit_config.fatal("no test models found, and CI must not skip their tests: run 'make models'")
