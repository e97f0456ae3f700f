"""Measures one model: ``python -m tools.zoo.measure_model FOLDER NETWORK FLOW``; a child of `make zoo`."""

from __future__ import annotations

import os
import shutil
import sys
import warnings
from collections.abc import Sequence
from pathlib import Path

from qdialect.cache.store import VARIABLE
from tools.zoo.flows.files import Files
from tools.zoo.flows.registry import FLOWS
from tools.zoo.flows.samples import load
from tools.zoo.measuring import measured
from tools.zoo.results import Result


def main(arguments: Sequence[str]) -> None:
    """Write the result beside the model."""
    folder, network, flow = arguments
    warnings.simplefilter("ignore")
    files = Files(Path(folder) / network)
    model = files.model(flow, FLOWS[flow].suffix)
    # An entry from before would hide what compiling takes.
    shutil.rmtree(files.cache(flow), ignore_errors=True)
    os.environ[VARIABLE] = str(files.cache(flow))
    found = measured(Result(network, flow, "crashed"), model, load(files.inputs))
    found.write(files.result(flow))


if __name__ == "__main__":
    main(sys.argv[1:])
