"""Adds the times of one model to its result; a child of `make zoo`.

``python -m tools.zoo.time_model FOLDER NETWORK FLOW [ENGINE]`` leaves the engine out.
"""

from __future__ import annotations

import gc
import os
import sys
import warnings
from collections.abc import Sequence
from pathlib import Path

from qdialect.cache.store import VARIABLE
from tools.zoo import results
from tools.zoo.flows.files import Files
from tools.zoo.flows.registry import FLOWS
from tools.zoo.flows.samples import load
from tools.zoo.timing import timed


def main(arguments: Sequence[str]) -> None:
    """Write the result anew."""
    folder, network, flow, *left_out = arguments
    warnings.simplefilter("ignore")
    files = Files(Path(folder) / network)
    os.environ[VARIABLE] = str(files.cache(flow))
    # One core for all engines: none pays for being moved.
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    gc.disable()
    path = files.result(flow)
    timed(results.read(path), files.model(flow, FLOWS[flow].suffix), load(files.inputs)[0], left_out).write(path)


if __name__ == "__main__":
    main(sys.argv[1:])
