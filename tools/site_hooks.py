"""Hooks of mkdocs: what the site has beside the pages of docs/.

The navigation is docs/README.md. Pages link to files of the checkout outside docs/, such as tests, examples and
reports: each of them becomes a page under ``checkout/``, Markdown as it is and code as code.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from posixpath import normpath, relpath

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files, InclusionLevel
from mkdocs.structure.pages import Page

ROOT = Path(__file__).resolve().parents[1]
# A link, but neither one to the web nor one within its page.
LINK = re.compile(r"(\[[^\]]*\])\((?!\w+:|#)([^)#\s]+)(#[^)\s]*)?\)")
SECTION = re.compile(r"^## (.*)$", re.MULTILINE)
ROW = re.compile(r"^\| \[[^\]]*\]\(([\w.-]+\.md)\)", re.MULTILINE)
LANGUAGES = {".mlir": "text", ".py": "python", ".c": "c", ".h": "c", ".cpp": "cpp"}
# Blocks that the tests execute name their file after the language, or that they need other engines.
FILE_OF_BLOCK = re.compile(r"^```(\w+) (?:file|append)=(\S+)$", re.MULTILINE)
ENGINES_OF_BLOCK = re.compile(r"^```(\w+) engines$", re.MULTILINE)
OUTSIDE = "checkout/"


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """The navigation: a tab for each section of the index."""
    index = (ROOT / "docs" / "README.md").read_text()
    _, *parts = SECTION.split(index)
    tabs = [{name: ROW.findall(text)} for name, text in zip(parts[::2], parts[1::2], strict=True)]
    ops = sorted(f"ops/{path.name}" for path in (ROOT / "docs" / "ops").glob("*.md"))
    config.nav = [{"Home": "README.md"}, *tabs, {"Ops": ops}]
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Pages for the files outside docs/ that a page links to, and for those that these link to."""
    waiting = [f"docs/{file.src_uri}" for file in files.documentation_pages()]
    seen = set(waiting)
    while waiting:
        for path in _linked(waiting.pop()):
            if path in seen or path.startswith("docs/"):
                continue
            seen.add(path)
            outside = File.generated(config, _uri(path), content=_content(path), inclusion=InclusionLevel.NOT_IN_NAV)
            files.append(outside)
            if path.endswith(".md"):
                waiting.append(path)
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Links to files of the checkout, as links to their pages."""
    uri = page.file.src_uri
    source = uri.removeprefix(OUTSIDE) if uri.startswith(OUTSIDE) else f"docs/{uri}"

    def rewritten(found: re.Match[str]) -> str:
        if (ROOT / source / ".." / found[2]).resolve().is_dir() and not _resolved(source, found[2]):
            # A folder without a page of its own.
            return found[1][1:-1]
        path = _resolved(source, found[2])
        return f"{found[1]}({relpath(_uri(path), normpath(f'{uri}/..'))}{found[3] or ''})" if path else found[0]

    markdown = ENGINES_OF_BLOCK.sub(r"```\1", LINK.sub(rewritten, markdown))
    return FILE_OF_BLOCK.sub(r'```\1 title="\2"', markdown)


def on_page_content(html: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Docstrings end the line before an example with two colons, one of which is for the reader."""
    return html.replace("::</p>", ":</p>")


def _linked(path: str) -> Iterator[str]:
    for _, target, _ in LINK.findall((ROOT / path).read_text()):
        found = _resolved(path, target)
        if found:
            yield found


def _resolved(page: str, target: str) -> str | None:
    """The path, from the root of the checkout, of the file that a page links to; that of its README for a folder."""
    path = normpath(f"{page}/../{target}")
    if (ROOT / path).is_dir():
        path = f"{path}/README.md"
    return path if (ROOT / path).is_file() else None


def _uri(path: str) -> str:
    """Where the page of a file of the checkout is."""
    if path.startswith("docs/"):
        return path.removeprefix("docs/")
    return f"{OUTSIDE}{path}" if path.endswith(".md") else f"{OUTSIDE}{path}.md"


def _content(path: str) -> str:
    text = (ROOT / path).read_text()
    if path.endswith(".md"):
        return text
    return f"# {path}\n\n````{LANGUAGES.get(Path(path).suffix, 'text')}\n{text}\n````\n"
