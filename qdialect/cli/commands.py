"""``qdialect``: the map of the commands; ``qdialect run model.tflite`` is ``qdialect-run model.tflite``."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib import import_module

import qdialect
from qdialect.cli import terminal
from qdialect.support.diagnostics import did_you_mean

COMMANDS = {
    "run": ("run", "compile a model, run it, measure it, compare it with the reference"),
    "explore": ("explore", "a page from the nodes of a model down to the instructions of its kernels"),
    "compile": ("compile", "a model as a shared library, an object file, assembly or LLVM IR"),
    "import": ("import_model", "a model file as MLIR, or a table of what each node became"),
    "opt": ("opt", "passes on MLIR, with the flags of mlir-opt"),
    "reduce": ("reduce", "make a model smaller while a command finds a fault in it"),
    "bench": ("bench", "measure networks, and other engines for comparison"),
    "cache": ("cache", "show or shrink the cache of compiled networks"),
}
"""The module of each command, and what it does."""
_ROWS = [(f"qdialect {name}", does) for name, (_, does) in COMMANDS.items()]
_MAP = f"""\
qdialect VERSION: quantized networks through MLIR to machine code

{terminal.render_table(("command", "what it does"), _ROWS)}

  model file --import--> qnn ops --opt--> fused ops --compile--> model.so, model.h
        `------------------------ run ------------------------> results

Each is also a program of its own, 'qdialect-run' for 'qdialect run', and has '--help'. Bash completes names and flags
after 'eval "$(qdialect --completion)"'. In Python:
  executable = qdialect.compile("model.tflite")
"""


_COMPLETION = f"""\
_qdialect() {{
  local command=$1 word=${{COMP_WORDS[COMP_CWORD]}}
  if [[ $command == qdialect ]]; then
    if ((COMP_CWORD == 1)); then
      COMPREPLY=($(compgen -W "{" ".join(COMMANDS)}" -- "$word"))
      return
    fi
    command=qdialect-${{COMP_WORDS[1]}}
  fi
  local flags=_flags_of_${{command//-/_}}
  [[ -v $flags ]] || printf -v $flags %s "$($command --help | grep -oE -- '--[a-z][a-z0-9-]+' | sort -u | tr '\\n' ' ')"
  [[ $word == -* ]] && COMPREPLY=($(compgen -W "${{!flags}}" -- "$word"))
}}
complete -o default -F _qdialect qdialect {" ".join(f"qdialect-{name}" for name in COMMANDS)}
"""
"""For bash; the flags of a command are asked for once in a shell."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command that the first argument names; the exit status."""
    name, *rest = list(sys.argv[1:] if arguments is None else arguments) or ["--help"]
    if name in COMMANDS:
        return import_module(f"qdialect.cli.{COMMANDS[name][0]}").main(rest)
    if name in ("-h", "--help", "help"):
        return terminal.run("qdialect", lambda: _answer(_MAP.replace("VERSION", qdialect.__version__)))
    if name == "--completion":
        return terminal.run("qdialect", lambda: _answer(_COMPLETION))
    if name == "--version":
        return terminal.run("qdialect", lambda: _answer(f"qdialect {qdialect.__version__}\n"))
    hint = did_you_mean(name, COMMANDS) or f", the commands are {', '.join(COMMANDS)}"
    terminal.say(f"qdialect: error: unknown command '{name}'{hint}")
    return 1


def _answer(text: str) -> int:
    terminal.write_output("-", text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
