"""tools/gen_docs.py: writing twice changes nothing, and --check names what is stale."""

import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SKIPPED = shutil.ignore_patterns("Output", "build", "*.tflite", "*.npz")
ALL_KINDS = "KINDS = tuple(TARGETS)"
Tool = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of what the tool reads, with its pages written."""
    copy = tmp_path_factory.mktemp("checkout")
    for folder in ("qdialect", "tools", "test"):
        shutil.copytree(ROOT / folder, copy / folder, ignore=SKIPPED)
    # Every op is lowered for each kind of target: one is enough here.
    table = copy / "tools" / "kind_table.py"
    text = table.read_text()
    assert ALL_KINDS in text
    table.write_text(text.replace(ALL_KINDS, 'KINDS = ("generic",)'))
    assert run(copy).returncode == 0
    return copy


def run(checkout: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(checkout / "tools" / "gen_docs.py"), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_a_change_makes_its_page_stale(checkout: Path) -> None:
    changes = {
        "qdialect/dialect/unary_ops.py": ("also called swish", "once called swish"),
        "test/lit/dialect/clip.mlir": ("max = 100 : i64", "max = 99 : i64"),
        "test/lit/passes/fuse-bias.mlir": ("[100, -7]", "[101, -7]"),
        "test/unit/test_context.py": ("The one factory", f"R{13}: the one factory"),
        "qdialect/quant_math/choices.py": ("Towards zero", "Always towards zero"),
        "docs/status.md": ("# Status", "# Old status"),
    }
    texts = {name: (checkout / name).read_text() for name in changes}
    left = checkout / "docs" / "ops" / "gone.md"
    left.write_text("# Gone\n")
    for name, (old, new) in changes.items():
        assert old in texts[name]
        (checkout / name).write_text(texts[name].replace(old, new))
    found = run(checkout, "--check")
    for name, text in texts.items():
        (checkout / name).write_text(text)
    assert found.returncode == 1, found.stderr
    named = {line.partition(":")[0] for line in found.stdout.splitlines()}
    pages = ("ops/unary.md", "ops/elementwise.md", "ops/choices.md", "passes.md", "requirements.md", "status.md")
    assert named == {f"docs/{page}" for page in (*pages, "ops/gone.md")}
    assert left.exists()


def test_writing_twice_removes_the_page_of_a_family_that_is_gone_and_changes_nothing_else(checkout: Path) -> None:
    left = checkout / "docs" / "ops" / "gone.md"
    left.write_text("# Gone\n")
    again = run(checkout)
    assert (again.returncode, again.stdout) == (0, "docs/ops/gone.md: written\n")
    assert not left.exists()
