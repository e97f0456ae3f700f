"""Every rule of tools/check_names.py fires on a tree that breaks it, and on no other."""

import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).resolve().parents[2] / "tools" / "check_names.py"
PASS = '@dataclass(frozen=True)\nclass FuseBias(Pass):\n    name: ClassVar[str] = "qnn-fuse-bias"\n'
LIT = "// RUN: %qopt %s | filecheck %s\n// CHECK: qnn\n"

GOOD = {
    "qdialect/passes/fuse_bias.py": PASS,
    "test/lit/passes/fuse-bias.mlir": LIT,
    "test/lit/passes/fuse-bias-no-match.mlir": LIT,
    "test/lit/passes/pipeline-fuse-qnn.mlir": LIT,
    "test/lit/lit.cfg.py": "config = 1\n",
    "test/lit/lowering/dense.mlir": LIT.replace("%s |", "%s --compile-to=vector --target=generic |"),
    "test/lit/cli/Inputs/broken.mlir": "}\n",
    "docs/page.md": "See https://example.org/work/page, or ../shared/models.\n",
    ".venv/lib/long.py": "\n" * 500,
}

# File, its content (None: absent), and what must be said about it.
BROKEN = [
    ("qdialect/passes/fuse_bias.py", PASS.replace("bias", "sums"), "'qnn-fuse-bias', but got 'qnn-fuse-sums'"),
    ("qdialect/lowering/passes/to_vector.py", PASS, "must be named 'qnn-to-vector', but got 'qnn-fuse-bias'"),
    ("test/lit/passes/fuse-bias.mlir", None, "must have a test test/lit/passes/fuse-bias.mlir"),
    ("test/lit/passes/fuse-bias-no-match.mlir", None, "must have a test test/lit/passes/fuse-bias-no-match.mlir"),
    ("test/lit/passes/fuse-sums.mlir", LIT, "fuse-sums.mlir:1: test must be named after a pass"),
    ("qdialect/long.py", "\n" * 401, "long.py:401: file must have at most 400 lines, but got 401"),
    ("test/lit/cli/help.mlir", "// CHECK: qnn\n", "help.mlir:1: lit test must have a RUN line"),
    ("test/lit/cli/help.py", "# RUN: %python %s\n", "help.py:1: lit test must have a CHECK line"),
    ("test/lit/cli/a.mlir", LIT.replace("filecheck", "filecheck --implicit-check-not=x"), "a.mlir:1: filecheck has no"),
    ("test/lit/cli/a.mlir", LIT + "// CHECK: [[#N+1]]\n", "a.mlir:3: filecheck has no numeric expressions"),
    (
        "test/lit/lowering/a.mlir",
        LIT.replace("%s |", "%s --compile-to=x86 --target=generic | %qopt - --compile-to=llvm |"),
        "a.mlir:1: lit test of a lowering must name its --target",
    ),
    ("docs/page.md", "Look\ninto /tmp/cache.\n", "page.md:2: a path of one machine"),
    ("docs/page.md", "path=/home/me\n", "page.md:1: a path of one machine"),
    ("qdialect/a.py", "# TODO more\n", "a.py:1: a note to oneself"),
    ("qdialect/a.py", "x = y  # type: ignore\n", "a.py:1: a silenced type checker"),
]


def check(root: Path, tree: dict[str, str]) -> tuple[int, list[str]]:
    for name, text in tree.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    done = subprocess.run([sys.executable, SCRIPT, root], capture_output=True, text=True, check=False)
    assert done.stderr == ""
    return done.returncode, done.stdout.splitlines()


def test_good_tree(tmp_path: Path) -> None:
    assert check(tmp_path, GOOD) == (0, [])


def test_what_does_not_match_may_stand_in_the_test_of_what_does(tmp_path: Path) -> None:
    tree = {name: text for name, text in GOOD.items() if "no-match" not in name}
    tree["test/lit/passes/fuse-bias.mlir"] += "// expected-remark @+1 {{[fuse-bias] must be constant}}\n"
    assert check(tmp_path, tree) == (0, [])


@pytest.mark.parametrize(("file", "text", "expected"), BROKEN)
def test_broken_tree(tmp_path: Path, file: str, text: str | None, expected: str) -> None:
    tree = {**GOOD, file: text}
    code, lines = check(tmp_path, {name: content for name, content in tree.items() if content is not None})
    assert code == 1
    assert [expected in line for line in lines].count(True) == 1, lines
