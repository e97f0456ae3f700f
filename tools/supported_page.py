"""docs/supported.md: the networks and the tools that quantize them, at a glance, from the report of the zoo."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

TEXT = """\
# Supported models at a glance

Whole networks, quantized by the tools that users have, and compiled. **all** stands for a network that is compiled as a
whole, in every form that was made of it; **parts** for one of which a framework runs a part. The number is how many
times as fast a call is as the fastest other engine that runs the same file, on one thread: the smallest of the forms.
The times of PyTorch's programs are compared with inductor's.
[The zoo](zoo.md) describes how they are made and measured, and [ZOO.md](../benchmarks/ZOO.md) has each form.

Your network is not here? Networks are made of operators: [operators](operators.md) has each of them, by format, and
`qdialect-import model.onnx --report` has those of your file. What is not supported is run by the model's framework
where that is installed ([fallback](fallback.md)).

## What is read

| format | quantized by | types |
|---|---|---|
| `.tflite` | TensorFlow's converter, ai-edge-quantizer | uint8, int8, 16x8, dynamic ranges; weights of 2 and 4 bits |
| `.onnx` | ONNX Runtime, NNCF and others | uint8, int8, float32; weights of 2, 4 and 8 bits in blocks |
| `.pt2` | PT2E, torchao | uint8, int8, float32; weights of 2, 4 and 8 bits in groups |
| `.mlir` | `qnn` ops, or TOSA | all of these |

## Networks

"""
COLUMNS: Mapping[str, Sequence[str]] = {
    "ONNX, static": ("qdq_u8s8", "qdq_u8s8_tensor", "qdq_s8s8", "qoperator_u8s8"),
    "ONNX, dynamic": ("dynamic_s8", "dynamic_u8"),
    "PyTorch, static": ("pt2e_x86", "pt2e_xnnpack", "pt2e_x86_qat", "pt2e_xnnpack_qat"),
    "PyTorch, dynamic": ("pt2e_x86_dynamic",),
    "ONNX, few bits": (*("nbits4", "nbits4_level4", "nbits8", "nbits8_level4"), *("genai_int4", "genai_int4_k_quant")),
    "PyTorch, few bits": (
        *("torchao_int4", "torchao_int8", "torchao_int8_dynamic", "torchao_int8_dynamic_int4"),
        *("torchao_int4_qat", "torchao_int8_dynamic_int4_qat"),
    ),
    "TFLite, integers": ("tflite_int8",),
    "TFLite, dynamic": ("tflite_dynamic",),
}


def page(root: Path) -> str:
    """The page; the order of the networks is that of the report."""
    results: list[dict[str, Any]] = json.loads((root / "benchmarks" / "zoo.json").read_text())["results"]
    networks: dict[str, dict[str, dict[str, Any]]] = {}
    for one in results:
        networks.setdefault(one["network"], {})[one["flow"]] = one
    rows = [f"| network | {' | '.join(COLUMNS)} |", "|---|" + "---|" * len(COLUMNS)]
    for network, flows in networks.items():
        cells = [_cell([flows[flow] for flow in column if flow in flows]) for column in COLUMNS.values()]
        rows.append(f"| {network} | {' | '.join(cells)} |")
    return TEXT + "\n".join(rows) + "\n"


def _cell(forms: Sequence[dict[str, Any]]) -> str:
    """What the forms of a network came to; empty where none was made."""
    made = [one for one in forms if one["status"] != "not made"]
    if not made:
        return ""
    if any(one["status"] not in ("native", "fallback") for one in made):
        return "no"
    status = "all" if all(one["status"] == "native" for one in made) else "parts"
    factors = [factor for one in made if (factor := _factor(one["times"]))]
    return f"{status}, {min(factors):.1f}x" if factors else status


def _factor(times: Mapping[str, float | None]) -> float | None:
    others = [time for engine, time in times.items() if engine != "qdialect" and time]
    ours = times.get("qdialect")
    return min(others) / ours if ours and others else None
