"""Makes one model: ``python -m tools.zoo.make_model FOLDER NETWORK FLOW [small]``; the child process of `make zoo`."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Sequence
from pathlib import Path

from tools.zoo.flows.files import Files
from tools.zoo.flows.registry import FLOWS
from tools.zoo.networks.registry import network


def main(arguments: Sequence[str]) -> None:
    """Write the model and say where it is."""
    folder, name, flow, *size = arguments
    # Exporters and quantizers tell at length what does not concern the result.
    warnings.simplefilter("ignore")
    files = Files(Path(folder) / name)
    print(FLOWS[flow].make(network(FLOWS[flow].framework, name), files, is_small=size == ["small"]))


if __name__ == "__main__":
    main(sys.argv[1:])
