"""Compiled code against the reference, in a process that forbidden pages may end."""

import pickle
import subprocess
import sys
from pathlib import Path
from typing import cast

_WORKER = Path(__file__).with_name("guarded_worker.py")


class GuardedRunner:
    """Talks to a `guarded_worker`, and starts another where one has crashed."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None

    def check(self, text: str, target: str, seed: int, threads: int = 1) -> list[str]:
        """What is wrong with the compiled module `text`: differences from the reference, or a crash.

        With more than one of `threads` every kernel is divided, however small.
        """
        process = self._process = self._process or _start()
        try:
            _tell(process, (text, target, seed, threads))
            return cast("list[str]", _hear(process))
        except (EOFError, BrokenPipeError):
            self.close()
            return [f"compiled code ended the process with status {process.returncode}"]

    def kill(self) -> None:
        """End the process as a crash would."""
        if self._process:
            self._process.kill()
            self._process.wait()

    def close(self) -> None:
        if self._process is None:
            return
        process, self._process = self._process, None
        process.communicate()


def _start() -> subprocess.Popen[bytes]:
    process = subprocess.Popen([sys.executable, str(_WORKER)], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    _hear(process)
    return process


def _tell(process: subprocess.Popen[bytes], what: object) -> None:
    assert process.stdin
    pickle.dump(what, process.stdin)
    process.stdin.flush()


def _hear(process: subprocess.Popen[bytes]) -> object:
    assert process.stdout
    return pickle.load(process.stdout)
