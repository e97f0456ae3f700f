"""Measures one model: ``python -m tools.zoo.measure_model FOLDER NETWORK FLOW [timed]``; a child of `make zoo`."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Sequence
from pathlib import Path

from tools.zoo.flows.files import Files
from tools.zoo.flows.registry import FLOWS
from tools.zoo.flows.samples import load
from tools.zoo.measuring import measured
from tools.zoo.results import Result


def main(arguments: Sequence[str]) -> None:
    """Write the result beside the model."""
    folder, network, flow, *options = arguments
    warnings.simplefilter("ignore")
    files = Files(Path(folder) / network)
    model = files.model(flow, FLOWS[flow].suffix)
    found = measured(Result(network, flow, "crashed"), model, load(files.inputs), is_timed=options == ["timed"])
    found.write(files.result(flow))


if __name__ == "__main__":
    main(sys.argv[1:])
