"""lit configuration: `%qopt` and `%qrun` are the commands with this plugin, installed or not."""

import shlex
import sys
from pathlib import Path

import lit.formats

PLUGIN = Path(__file__).resolve().parents[1] / "qdialect_softsign.py"

python = shlex.quote(sys.executable)
plugin = f"--load-pass-plugin={shlex.quote(str(PLUGIN))}"

config.name = "qdialect-softsign"  # noqa: F821
config.test_format = lit.formats.ShTest()  # noqa: F821
config.suffixes = [".mlir"]  # noqa: F821
config.test_source_root = str(Path(__file__).parent)  # noqa: F821
config.substitutions += [  # noqa: F821
    ("%qopt", f"{python} -m qdialect.cli.opt {plugin}"),
    ("%qrun", f"{python} -m qdialect.cli.run {plugin}"),
    ("filecheck", f"{python} -m filecheck"),
]
