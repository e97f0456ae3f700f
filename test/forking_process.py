"""A process that has imported the project and runs its commands in forks, asked by the tests of another one.

The process of the tests has threads of its own, of PyTorch for one, and should not be forked. Requests and answers are
pickles on stdin and stdout: ``(arguments, folder)`` is answered by the exit status, stdout and stderr.
"""

import os
import pickle
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import cast

from forked_commands import ForkingSubprocess


class ForkingProcess:
    """Talks to a process of this file."""

    def __init__(self) -> None:
        # Commands get the interpreter's own path, as installed ones do.
        environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
        self._process = subprocess.Popen(
            [sys.executable, __file__], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment
        )

    def run(self, arguments: Sequence[str], folder: Path) -> subprocess.CompletedProcess[str]:
        """Run a command in `folder`: a fork where it is one of the project's, else a process."""
        assert self._process.stdin
        assert self._process.stdout
        pickle.dump((list(arguments), str(folder)), self._process.stdin)
        self._process.stdin.flush()
        return cast("subprocess.CompletedProcess[str]", pickle.load(self._process.stdout))

    def close(self) -> None:
        """End the process."""
        self._process.communicate()


def _done(arguments: list[str], folder: str) -> subprocess.CompletedProcess[str]:
    process = ForkingSubprocess.Popen(
        arguments,
        cwd=folder,
        env=dict(os.environ),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    with process:
        output, errors = process.communicate()
    return subprocess.CompletedProcess(arguments, process.returncode, output, errors)


def _main() -> None:
    while True:
        try:
            request = pickle.load(sys.stdin.buffer)
        except EOFError:
            return
        pickle.dump(_done(*request), sys.stdout.buffer)
        sys.stdout.buffer.flush()


if __name__ == "__main__":
    _main()
