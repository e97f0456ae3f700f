"""docs/options.md: the options of a compilation, by every way to give them, from the code that takes them."""

import inspect
import re

import qdialect
from qdialect.cli import compile as compile_command
from qdialect.cli import run_arguments
from qdialect.cli.arguments import CommandParser
from qdialect.driver import torch_backend
from qdialect.support.options import UNKEYED, CompileOptions

INTRODUCTION = """\
# Options of a compilation

`qdialect.compile` takes these by name, or together as an object of `qdialect.CompileOptions`; the commands as flags;
`torch.compile(model, backend="qdialect", options={...})` those that concern a captured graph. Each is checked in the
same way wherever it is given: a value that is unknown, and one that nothing would use, is an error. The last column is
whether the [compile cache](cache.md) keeps a network for each value; the other options change neither code nor results.
`mode="max-autotune"` of `torch.compile` is `tune`; its other modes are refused. Environment variables are on a
[page of their own](environment.md).

| option | default | `qdialect-run` | `qdialect-compile` | `torch.compile` | in the cache's key |
|---|---|---|---|---|---|
"""
FLAGS = {"dims": ["dim"], "trust": ["trust_pt2"], "cache": ["no_cache"], "target": ["mcpu"]}
"""Options whose flags are called otherwise."""
ARGUMENT = re.compile(r"^ {2}(\w+): (.*?)(?=^ {2}\w|\Z)", re.MULTILINE | re.DOTALL)


def page() -> str:
    """The text of the page."""
    parsers = run_arguments.parser(), compile_command.parser()
    options = vars(CompileOptions())
    rows = [
        f"| [`{name}`](#{name}) | `{default!r}` | {' | '.join(_flag(parser, name) for parser in parsers)} "
        f"| {_mark(name in torch_backend.OPTIONS)} | {_mark(name not in UNKEYED)} |"
        for name, default in options.items()
    ]
    # The text of each argument in the docstring of `qdialect.compile`.
    text = inspect.cleandoc(qdialect.compile.__doc__ or "").partition("Args:\n")[2].partition("\n\nWhere")[0]
    found = {name: " ".join(meaning.split()) for name, meaning in ARGUMENT.findall(text)}
    meanings = {name: f"{text[0].upper()}{text[1:]}".replace("``", "`") for name, text in found.items()}
    return INTRODUCTION + "\n".join([*rows, "", *(f"## {name}\n\n{meanings[name]}\n" for name in options)])


def _flag(parser: CommandParser, name: str) -> str:
    known = parser.flags()
    flags = next((known[dest] for dest in (name, *FLAGS.get(name, ())) if dest in known), ())
    return " ".join(f"`{flag}`" for flag in flags) or "-"


def _mark(is_so: bool) -> str:
    return "yes" if is_so else "-"
