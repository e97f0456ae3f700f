"""Campaigns: networks and damaged files drawn from seeds, without end where one has the time."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx

from qdialect import targets
from tools.evidence import drawn_programs, drawn_tflite, drawn_torch, drawn_values
from tools.evidence.case import Case, InvalidCaseError, Variant, outcome_of
from tools.evidence.damaged_files import outcome_of_damage
from tools.evidence.drawn_graph import InvalidNodeError
from tools.evidence.drawn_networks import drawn, quantized
from tools.evidence.drawn_operators import OPERATOR_STEPS
from tools.evidence.drawn_steps import Entry
from tools.evidence.onnx_cases import case_of_model
from tools.evidence.outcomes import Outcome, Rank
from tools.evidence.quantized_networks import quantized_case


def graph_case(seed: int, more: Sequence[Entry] = ()) -> Case:
    """A drawn network, three of four with quantized values, half of them typed, and what ONNX Runtime gives."""
    is_quantized, is_typed = seed % 4 > 0, seed % 8 > 3
    rng = np.random.default_rng(seed)
    try:
        model, network = drawn(rng, is_open=seed % 5 == 0, is_quantized=is_quantized, is_typed=is_typed, more=more)
    except InvalidNodeError as error:
        raise InvalidCaseError(str(error)) from error
    if is_quantized:
        model = quantized(network, model)
    content = model.SerializeToString()
    # A step of 16 bits is less than what the order of float sums decides.
    wide = (onnx.TensorProto.INT16, onnx.TensorProto.UINT16)
    is_wide = any(one.type.tensor_type.elem_type in wide for one in model.graph.output)
    return case_of_model(content, tuple(network.inputs.values()), is_quantized * (4 if is_wide else 1))


def operator_case(seed: int) -> Case:
    """As `graph_case`, with the operators of the table."""
    return graph_case(seed, OPERATOR_STEPS)


def drawn_variants(seed: int, case: Case, *, may_be_open: bool = True) -> Sequence[Variant]:
    """This CPU on one to three threads, and one more kind of code; of an open batch, calls of any batch as well."""
    rng = np.random.default_rng(seed)
    kinds = [kind for kind, one in targets.TARGETS.items() if one.features <= targets.host_features()]
    other = str(rng.choice([*kinds, "host,portable"]))
    is_open = may_be_open and seed % 5 == 0
    own = case.inputs[0].shape[0] if is_open else 1
    return (
        Variant("host", int(rng.integers(1, 4)), is_saved=bool(rng.random() < 0.2), batch=own or "dynamic"),
        Variant(other, int(rng.integers(1, 4)), batch="dynamic" if is_open else 1),
    )


def _outcome_of_case(make: Callable[[int], Case], seed: int, *, may_be_open: bool = True) -> Outcome:
    try:
        case = make(seed)
    except InvalidCaseError as error:
        return Outcome(Rank.INVALID, str(error)[:160])
    return outcome_of(case, drawn_variants(seed, case, may_be_open=may_be_open))


def outcome_of_graph(seed: int) -> Outcome:
    return _outcome_of_case(graph_case, seed)


def outcome_of_operators(seed: int) -> Outcome:
    return _outcome_of_case(operator_case, seed)


def outcome_of_tflite(seed: int) -> Outcome:
    return _outcome_of_case(drawn_tflite.case, seed, may_be_open=False)


def outcome_of_torch(seed: int) -> Outcome:
    return _outcome_of_case(drawn_torch.case, seed, may_be_open=False)


def outcome_of_program(seed: int) -> Outcome:
    return _outcome_of_case(drawn_programs.case, seed, may_be_open=False)


def outcome_of_values(seed: int) -> Outcome:
    return _outcome_of_case(drawn_values.case, seed, may_be_open=False)


def outcome_of_model(seed: int) -> Outcome:
    return _outcome_of_case(quantized_case, seed)


CAMPAIGNS: Mapping[str, Callable[[int], Outcome]] = {
    "graphs": outcome_of_graph,
    "operators": outcome_of_operators,
    "tflite": outcome_of_tflite,
    "torch": outcome_of_torch,
    "programs": outcome_of_program,
    "values": outcome_of_values,
    "models": outcome_of_model,
    "files": outcome_of_damage,
}
"""By name, what is made of a seed."""
CASES: Mapping[str, Callable[[int], Case]] = {
    "graphs": graph_case,
    "operators": operator_case,
    "tflite": drawn_tflite.case,
    "torch": drawn_torch.case,
    "programs": drawn_programs.case,
    "values": drawn_values.case,
    "models": quantized_case,
}
"""The cases of the campaigns that have a model for each seed."""


def outcome_of_seed(task: tuple[str, int]) -> Outcome:
    """What a worker does with the name of a campaign and a seed."""
    return CAMPAIGNS[task[0]](task[1])


def keep(name: str, seed: int, folder: Path) -> Path | None:
    """Write the model and the arrays of a seed, for who looks into it; none where it has no model."""
    if name not in CASES:
        return None
    case = CASES[name](seed)
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}-{seed}{case.suffix}"
    path.write_bytes(case.model)
    arrays: dict[str, Any] = {f"in_{k}": value for k, value in enumerate(case.inputs)}
    arrays |= {f"ref_{k}": value for k, value in enumerate(case.wanted)}
    np.savez(path.with_suffix(".npz"), **arrays)
    return path
