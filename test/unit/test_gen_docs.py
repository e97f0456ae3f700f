"""tools/gen_docs.py: it writes what is missing, removes what is left over, and --check names what is stale."""

import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SKIPPED = shutil.ignore_patterns("Output", "build", "*.tflite", "*.npz")
GONE = "docs/ops/gone.md"
ALL_KINDS = "KINDS = tuple(TARGETS)"
Tool = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of what the tool reads, with a page of a family that is gone."""
    copy = tmp_path_factory.mktemp("checkout")
    for folder in ("qdialect", "tools", "test"):
        shutil.copytree(ROOT / folder, copy / folder, ignore=SKIPPED)
    # Every op is lowered for each kind of target: one is enough here.
    table = copy / "tools" / "kind_table.py"
    text = table.read_text()
    assert ALL_KINDS in text
    table.write_text(text.replace(ALL_KINDS, 'KINDS = ("generic",)'))
    (copy / GONE).parent.mkdir(parents=True)
    (copy / GONE).write_text("# Gone\n")
    return copy


@pytest.fixture(scope="module")
def written(checkout: Path) -> subprocess.CompletedProcess[str]:
    """What the tool says when it writes all pages."""
    return run(checkout)


def run(checkout: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(checkout / "tools" / "gen_docs.py"), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_writing_removes_the_page_of_a_family_that_is_gone(
    checkout: Path, written: subprocess.CompletedProcess[str]
) -> None:
    assert written.returncode == 0, written.stderr
    pages = {path.relative_to(checkout).as_posix() for path in (checkout / "docs").rglob("*.*")}
    assert GONE not in pages
    assert set(written.stdout.splitlines()) == {f"{page}: written" for page in (*pages, GONE)}


@pytest.mark.usefixtures("written")
def test_a_change_makes_its_page_stale_and_no_other(checkout: Path) -> None:
    changes = {
        "qdialect/dialect/unary_ops.py": ("also called swish", "once called swish"),
        "test/lit/dialect/clip.mlir": ("max = 100 : i64", "max = 99 : i64"),
        "test/lit/passes/fuse-bias.mlir": ("[100, -7]", "[101, -7]"),
        "test/unit/test_context.py": ("The one factory", f"R{13}: the one factory"),
        "qdialect/arithmetic/choices.py": ("Towards zero", "Always towards zero"),
        "docs/status.md": ("# Status", "# Old status"),
    }
    texts = {name: (checkout / name).read_text() for name in changes}
    left = checkout / GONE
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
    assert named == {GONE, *(f"docs/{page}" for page in pages)}
    assert left.exists()
