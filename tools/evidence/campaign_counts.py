"""How many seeds the campaigns have run so far: docs/evidence/campaigns.tsv, and the table of docs/testing.md."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from tools.evidence.outcomes import Rank
from tools.evidence.tables import FOLDER

_RANKS = [rank for rank in Rank if rank != Rank.INVALID]
_HEAD = ["campaign", "seeds", *(rank.name.lower() for rank in _RANKS)]


@dataclass
class Counts:
    """The seeds from 0 that were run, and what they ended in; the rest is what the framework refuses."""

    seeds: int = 0
    ranks: dict[Rank, int] = field(default_factory=dict[Rank, int])


def read() -> dict[str, Counts]:
    """By campaign; none where none was run."""
    path = FOLDER / "campaigns.tsv"
    rows = [line.split("\t") for line in path.read_text().splitlines()[1:]] if path.is_file() else []
    return {row[0]: Counts(int(row[1]), dict(zip(_RANKS, map(int, row[2:]), strict=True))) for row in rows}


def add(name: str, seeds: int, ranks: Mapping[Rank, int]) -> None:
    """Add what a campaign of so many more seeds found."""
    all_counts = read()
    counts = all_counts.setdefault(name, Counts())
    counts.seeds += seeds
    for rank, count in ranks.items():
        counts.ranks[rank] = counts.ranks.get(rank, 0) + count
    FOLDER.mkdir(exist_ok=True)
    rows = [[key, str(one.seeds), *(str(one.ranks.get(rank, 0)) for rank in _RANKS)] for key, one in all_counts.items()]
    (FOLDER / "campaigns.tsv").write_text("\n".join("\t".join(row) for row in [_HEAD, *rows]) + "\n")


def table() -> list[str]:
    """The lines of a table for a page."""
    lines = [f"| {' | '.join(_HEAD)} |", f"|{'---|' * len(_HEAD)}"]
    for name, counts in read().items():
        lines.append(f"| {name} | {counts.seeds:,} | {' | '.join(str(counts.ranks.get(r, 0)) for r in _RANKS)} |")
    return lines
