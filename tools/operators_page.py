"""docs/operators.md: what `make evidence` measured of every operator."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping

from qdialect.frontends.model_files import FORMATS
from tools.evidence.case import Key
from tools.evidence.outcomes import Outcome, Rank
from tools.evidence.tables import read

INTRODUCTION = """\
# Operators

What `make evidence` measured: models of one operator, each compiled for the CPU that ran it and in one more way (for
another kind of CPU, for two threads, saved and loaded), and compared with the model's framework.
[evidence/](evidence/) has a row for each model. `make test` measures a sample of the rows again, `.ci/slow` all of
them, and a row that became worse fails.

- **equal**: every element of every result is; a NaN is as good as another.
- **near**: floats within the bound, as a part of the largest number of the result, or quantized values within a step.
- **framework**: the framework of the model computes it, as a whole or in part ([fallback.md](fallback.md)).
- **refused**: an error, though the framework takes the model.

A number is that of the models. Models that the framework refuses are left out, and so are those whose results differ
from run to run.
"""
_TITLES = {
    ".onnx": (
        "ONNX",
        "The node cases of the package `onnx` compared with ONNX Runtime, with inputs given at run time, constant, "
        "or quantized to 8 bits before and after the operator, in the newest operator set and in set 13; and the "
        "recorded models of quantized operators.",
    ),
    ".tflite": (
        "TFLite",
        "Recorded models of operators, compared with the reference kernels and the XNNPACK delegate of LiteRT.",
    ),
    ".pt2": ("PyTorch", "The samples of PyTorch's operator tests (`op_db`), exported, compared with eager PyTorch."),
}
_RANKS = (Rank.EQUAL, Rank.NEAR, Rank.FRAMEWORK, Rank.REFUSED)


def page() -> str:
    """The text of the page."""
    rows: defaultdict[str, dict[Key, Outcome]] = defaultdict(dict)
    for source, suffix in (("onnx", ".onnx"), ("torch", ".pt2"), ("recorded", "")):
        for key, outcome in read(source).items():
            rows[suffix or key.operator.split()[0]][key] = outcome
    return "\n".join([INTRODUCTION, *(line for suffix in _TITLES for line in _section(suffix, rows[suffix]))])


def _section(suffix: str, rows: Mapping[Key, Outcome]) -> Iterator[str]:
    title, told = _TITLES[suffix]
    counts = Counter(outcome.rank for outcome in rows.values())
    yield f"## {title}\n\n{told}\n"
    yield (
        ", ".join(f"{counts[rank]} {rank.name.lower()}" for rank in Rank if counts[rank] and rank != Rank.INVALID)
        + ".\n"
    )
    yield "| operator | equal | near | framework | refused |"
    yield "|---|---|---|---|---|"
    by_operator: defaultdict[str, list[tuple[Key, Outcome]]] = defaultdict(list)
    for key, outcome in rows.items():
        if outcome.rank != Rank.INVALID:
            by_operator[key.operator.removeprefix(f"{suffix} ")].append((key, outcome))
    for operator, found in sorted(by_operator.items()):
        yield f"| `{operator}` | {' | '.join(_cell(rank, found) for rank in _RANKS)} |"
    measured = {part for operator in by_operator for part in operator.split("+")}
    others = [name for name in FORMATS[suffix].operators() if _plain(name) not in measured and name not in measured]
    yield f"\nRead as well, and measured in no row: {', '.join(f'`{name}`' for name in others)}.\n"


def _plain(name: str) -> str:
    """PyTorch's samples name a function, its exported programs an overload: ``aten.add.Tensor`` is of ``add``."""
    return name.split(".")[1] if name.startswith("aten.") else name


def _cell(rank: Rank, found: Iterable[tuple[Key, Outcome]]) -> str:
    """The types with the number of models, and the largest bound, or the first reason."""
    types: Counter[str] = Counter()
    details: list[str] = []
    for key, outcome in found:
        if outcome.rank == rank:
            types[key.types] += 1
            details += [outcome.detail] * bool(outcome.detail)
    text = "; ".join(f"{name} {count}" for name, count in types.items())
    detail = max(details, key=_size) if rank == Rank.NEAR and details else next(iter(details), "")
    return f"{text} ({detail.replace('|', '/')})" if detail else text


def _size(detail: str) -> float:
    try:
        return float(detail)
    except ValueError:
        return 0.0
