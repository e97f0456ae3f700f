"""The share of a core's peak that a network reaches, and the error of the cost model: measured in a fresh process.

``python -m qdialect.bench.core_share MODEL BATCH`` prints one JSON object.
"""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass

from qdialect.bench.cases import Case
from qdialect.bench.core_model.profile import profile_ops
from qdialect.bench.process import Fields, measured_apart, print_measured
from qdialect.frontends.model_files import read_model
from qdialect.lowering.ir.lowered import ports
from qdialect.lowering.qnn_to_linalg.to_linalg import main_function
from qdialect.runtime.comparison import random_inputs
from qdialect.support.options import ImportOptions


@dataclass(frozen=True)
class CoreShare:
    """Of one network on one core; unknown figures are 0."""

    name: str
    seconds: float
    """All kernel calls together."""
    of_peak: float
    """Their rate of products as a share of the bare dot products'."""
    of_bound: float
    """The least time of their instructions on the busiest port, or of their bytes, as a share of their time."""
    median_error: float
    """Of the predictions of the cost model, as a share of the time of a call."""
    weighted_error: float
    """The mean of these errors, each call weighted by its time."""


def core_share(case: Case) -> CoreShare:
    """Profile the network in a process of its own; raises `EngineError` where that fails."""
    return CoreShare(name=case.name, **measured_apart(__name__, case))


def _profiled(model: str, batch: int) -> Fields:
    """Of one model, on the last core that this process may use."""
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    module = read_model(model, ImportOptions(batch))
    found = profile_ops(module, random_inputs(ports(main_function(module), "arg"), 0))
    error = found.model_error
    return {
        "seconds": found.seconds,
        "of_peak": found.macs / found.seconds / found.peak if found.peak else 0.0,
        "of_bound": found.bound / found.seconds if found.bound else 0.0,
        "median_error": error.median if error else 0.0,
        "weighted_error": error.weighted if error else 0.0,
    }


if __name__ == "__main__":
    sys.exit(print_measured(_profiled, sys.argv[1:]))
