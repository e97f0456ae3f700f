"""Real networks from files: the numbers that were recorded of TFLite, in a process without the compiler."""

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from subprocesses import output_of

from qdialect.cli import compile as command

Array = NDArray[Any]
MODELS = ["mobilenet_v1_0.25_224_quant", "kws_ref_model", "ad01_int8", "pretrainedResnet_quant", "dcgan_generator_int8"]
PROGRAM = """
import sys
import numpy as np
import qdialect

executable = qdialect.load(sys.argv[1])
found = executable(*(np.load(f"{sys.argv[2]}/in_{i}.npy") for i in range(len(executable.inputs))))
for i, array in enumerate(found if isinstance(found, tuple) else (found,)):
    wanted = np.load(f"{sys.argv[2]}/ref_{i}.npy")
    assert array.dtype == wanted.dtype
    print(int((array != wanted).sum()), "torch_mlir" in sys.modules)
"""


@pytest.mark.parametrize("cpu", ["host", "x86-64"])
@pytest.mark.parametrize("name", MODELS)
def test_loaded_networks_give_the_recorded_numbers(
    name: str,
    cpu: str,
    tmp_path: Path,
    require_model: Callable[[str], Path],
    require_reference: Callable[..., Mapping[str, Array]],
) -> None:
    path, recorded = tmp_path / "network.so", require_reference(name)
    assert command.main([str(require_model(name)), "-o", str(path), "--mcpu", cpu]) == 0
    for title, array in recorded.items():
        if re.fullmatch(r"(in|ref)_\d+", title):
            np.save(tmp_path / f"{title}.npy", array)
    printed = output_of(PROGRAM, str(path), str(tmp_path)).splitlines()
    assert printed
    assert set(printed) == {"0 False"}
