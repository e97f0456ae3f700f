"""Running a command in a process of its own, within limits of time and memory."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial

# Every engine is measured on one thread; what TensorFlow tells on stderr is not about the model.
_SETTINGS = {
    **dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1"),
    "TF_CPP_MIN_LOG_LEVEL": "3",
    "CUDA_VISIBLE_DEVICES": "",
    "PYTHONWARNINGS": "ignore",
}
_LAST_CHARACTERS = 300


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
