"""Starts workers and speaks with them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from types import TracebackType
from typing import Any, Self

from qdialect.bench.engines.base import EngineError
from qdialect.bench.levels import HOST, environment

# How packages are told to use so many threads, those that have no argument for it.
_THREAD_SETTINGS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "TVM_NUM_THREADS")
_QUIET = {"TF_CPP_MIN_LOG_LEVEL": "3", "PYTHONWARNINGS": "ignore"}
_LAST_CHARACTERS = 300


class WorkerProcess:
    """An engine in a process of its own, on some cores; it waits without load between requests.

    `target` is whose instructions it is kept to.
    """

    def __init__(self, engine: str, threads: int, cores: Sequence[int], target: str = HOST) -> None:
        self._name = engine
        # A file, because a pipe that nobody reads would stop the process; it vanishes with its last descriptor.
        self._said, path = tempfile.mkstemp()
        os.unlink(path)
        settings = dict.fromkeys(_THREAD_SETTINGS, str(threads))
        command = [sys.executable, "-m", "qdialect.bench.worker", engine, str(threads), *map(str, cores)]
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._said,
            env={**os.environ, **_QUIET, **settings, **environment(target)},
            text=True,
        )

    def ask(self, do: str, **fields: Any) -> dict[str, Any]:
        """The answer to a request; raises `EngineError` where the process ends instead."""
        self.send(do, **fields)
        return self.receive()

    def send(self, do: str, **fields: Any) -> None:
        """Ask without waiting."""
        stdin = self._process.stdin
        try:
            if stdin:
                stdin.write(json.dumps({"do": do, **fields}) + "\n")
                stdin.flush()
        except OSError:
            # It is gone; `receive` says how it went.
            return

    def receive(self) -> dict[str, Any]:
        """The answer to what was sent."""
        line = self._process.stdout.readline() if self._process.stdout else ""
        if not line:
            raise EngineError(f"engine '{self._name}' ended with status {self._process.wait()}{self._last_words()}")
        return json.loads(line)

    def close(self) -> None:
        """End the process."""
        for stream in (self._process.stdin, self._process.stdout):
            if stream:
                _close(stream)
        try:
            self._process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        os.close(self._said)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _last_words(self) -> str:
        text = os.pread(self._said, os.fstat(self._said).st_size, 0)
        lines = text.decode(errors="replace").strip().splitlines()
        return f": {lines[-1][-_LAST_CHARACTERS:]}" if lines else ""


def _close(stream: Any) -> None:
    try:
        stream.close()
    except OSError:
        # A pipe whose other end is gone cannot be flushed.
        return
