"""Starts the processes that measure, and speaks with them."""

from __future__ import annotations

import json
import os
import resource
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any

from qdialect.bench.cases import EngineError
from qdialect.bench.levels import HOST, environment

# Environment variables that set the number of threads of packages without an argument for it.
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
        # Where the process has ended, `receive` reports how.
        with suppress(OSError):
            if stdin:
                stdin.write(json.dumps({"do": do, **fields}) + "\n")
                stdin.flush()

    def receive(self) -> dict[str, Any]:
        line = self._process.stdout.readline() if self._process.stdout else ""
        if not line:
            raise EngineError(f"engine '{self._name}' ended with status {self._process.wait()}{self._last_words()}")
        return json.loads(line)

    def close(self) -> None:
        for stream in (self._process.stdin, self._process.stdout):
            # A pipe whose other end is gone cannot be flushed.
            with suppress(OSError):
                if stream:
                    stream.close()
        try:
            self._process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        os.close(self._said)

    def _last_words(self) -> str:
        text = os.pread(self._said, os.fstat(self._said).st_size, 0)
        lines = text.decode(errors="replace").strip().splitlines()
        return f": {lines[-1][-_LAST_CHARACTERS:]}" if lines else ""


# A command in a process of its own, within limits of time and memory.

# Every engine is measured on one thread; what TensorFlow tells on stderr is not about the model.
_SETTINGS = {**dict.fromkeys(_THREAD_SETTINGS, "1"), **_QUIET, "CUDA_VISIBLE_DEVICES": ""}


@dataclass(frozen=True)
class Limits:
    """The resources of a child."""

    seconds: float
    gigabytes: float


@dataclass(frozen=True)
class Ended:
    """How a child ended; `failure` is empty where its exit status was 0."""

    output: str
    failure: str = ""
    is_late: bool = False
    """Whether its time was over."""


def run(module: str, arguments: Sequence[str], limits: Limits, settings: Mapping[str, str] = _SETTINGS) -> Ended:
    """``python -m module arguments`` to its end, or to the limits; all that it started ends with it."""
    process = subprocess.Popen(
        [sys.executable, "-m", module, *arguments],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, **settings},
        text=True,
        errors="replace",
        start_new_session=True,
        preexec_fn=partial(_limit_memory, int(limits.gigabytes * 2**30)),
    )
    try:
        output, errors = process.communicate(timeout=limits.seconds)
    except subprocess.TimeoutExpired:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        output, errors = process.communicate()
        return Ended(output, f"took longer than {limits.seconds:g} s", is_late=True)
    return Ended(output, _failure(process.returncode, errors))


def _limit_memory(size: int) -> None:
    resource.setrlimit(resource.RLIMIT_AS, (size, size))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def _failure(status: int, errors: str) -> str:
    if status == 0:
        return ""
    ended = f"ended by {signal.Signals(-status).name}" if status < 0 else f"ended with status {status}"
    # A traceback's last line is its error; output before a signal does not explain the signal.
    last = errors.strip().splitlines()[-1:] if status > 0 else []
    return ": ".join([ended, *(line[-_LAST_CHARACTERS:] for line in last)])
