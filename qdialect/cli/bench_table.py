"""A measurement as a table for a terminal."""

from __future__ import annotations

from qdialect.bench.results import Measurement, Row
from qdialect.cli import table

_HEADER = ("engine", "variant", "ms", "min", "of peak", "different", "by at most")


def measurement_table(measurement: Measurement) -> str:
    """All variants, the fastest first, and under them what failed."""
    threads = f"{measurement.threads} thread{'s' * (measurement.threads != 1)}"
    title = f"{measurement.name}: {measurement.text}, {threads}"
    if measurement.macs:
        title += f", {measurement.macs / 1e6:.6g} million multiply-accumulates"
    if measurement.peak:
        title += f", peak {measurement.peak * 1e-9:.1f} GMAC/s"
    ordered = sorted((row for row in measurement.rows if not row.error), key=lambda row: row.seconds)
    rows = [_cells(measurement, row) for row in ordered]
    errors = [f"{row.engine} {row.variant}: {row.error}" for row in measurement.rows if row.error]
    return "\n".join([title, table.render(_HEADER, rows, right=(2, 3, 4, 5, 6)), *errors, ""])


def _cells(measurement: Measurement, row: Row) -> tuple[str, ...]:
    share = measurement.share(row)
    return (
        row.engine,
        row.variant,
        f"{row.seconds * 1e3:.4g}",
        f"{row.minimum * 1e3:.4g}",
        "" if share is None else f"{100 * share:.1f} %",
        f"{row.different:.2g}" if row.different else "none",
        f"{row.largest:g}" if row.different else "",
    )
