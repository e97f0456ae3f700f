"""The results of a run as pictures, in SVG, which Matplotlib draws."""

from __future__ import annotations

import io
import math
import re
from collections.abc import Iterable, Sequence
from importlib import import_module
from typing import Any

from qdialect.bench.engines import ENGINES, OURS
from qdialect.bench.results import Measurement, Results, Row

_COLOURS = ("#c96a12", "#2f6ea5", "#2d8a3e", "#7a4ea3", "#b8393e", "#7f5f4c", "#6e6e6e", "#b59a00", "#d06ba8")
_STYLES = ("-", "--", "-.", ":")
_INTENSITIES = (0.1, 1000)
_SMALL, _DOT, _AWAY = 7, 6, 8
_ROW, _HEAD = 0.16, 1.3
# Smaller ones are calls, not work.
_MIN_MACS = 100_000


def shares(results: Results, threads: int = 1) -> str:
    """A bar for each engine and workload: the share of the peak that its fastest variant reaches."""
    chosen = [(one, _fastest(one)) for one in _chosen(results, threads)]
    axes = _axes(11, _HEAD + _ROW * sum(len(rows) + 1 for _, rows in chosen))
    top, names = 0, dict[int, str]()
    for measurement, rows in chosen:
        names[top] = measurement.name
        for row in rows:
            share = 100 * min(measurement.share(row) or 0.0, 1.0)
            axes.barh(top, share, color=_colour(row.engine), alpha=1 if row.is_exact else 0.45)
            text = f"{share:.1f} %  {row.engine}, {row.seconds * 1e3:.4g} ms"
            axes.text(share + 0.7, top, text, va="center", fontsize=_SMALL)
            top += 1
        top += 1
    axes.set(xlim=(0, 125), ylim=(top, -1), xticks=range(0, 101, 20), yticks=[*names], yticklabels=names.values())
    axes.xaxis.set_major_formatter("{x:.0f} %")
    axes.grid(axis="x", alpha=0.4)
    patch: Any = import_module("matplotlib.patches").Patch
    engines = {row.engine for _, rows in chosen for row in rows}
    title = f"Share of the peak of bare {results.loop}; light: outputs are not exact"
    return _svg(axes, title, [patch(color=_colour(one), label=one) for one in ENGINES if one in engines])


def roofline(results: Results) -> str:
    """Rate over arithmetic intensity on one core: ours as dots, the fastest other engine as rings."""
    axes, chosen = _axes(11, 7), _chosen(results, 1)
    peak = max((one.peak for one in chosen), default=1e9) * 1e-9
    axes.set(xscale="log", yscale="log", xlim=_INTENSITIES)
    axes.set(xlabel="multiply-accumulates a byte", ylabel="GMAC/s")
    axes.grid(alpha=0.3)
    lines: list[Any] = axes.plot(_INTENSITIES, (peak, peak), color="#333", label=f"peak {peak:.0f} GMAC/s")
    for style, (level, rate) in zip(_STYLES, results.limits.items(), strict=False):
        # A level of memory gives `rate` bytes, each worth the intensity in products.
        ends = _INTENSITIES[0], peak / rate * 1e9
        label = f"{level} {rate * 1e-9:.0f} GB/s"
        lines += axes.plot(ends, [rate * 1e-9 * x for x in ends], style, color="#999", label=label)
    dots: list[tuple[float, float, str]] = []
    for one in chosen:
        best = one.best(OURS, exact=False), one.fastest_peer(OURS, exact=False)
        for row in filter(None, best):
            x, y = one.macs / one.bytes_moved, one.macs / row.seconds * 1e-9
            face = _colour(OURS) if row is best[0] else "none"
            label = "" if row.engine in [line.get_label() for line in lines] else row.engine
            made = axes.plot(x, y, "o", ms=_DOT, mec=_colour(row.engine), mfc=face, label=label)
            lines += made if label else []
            dots.append((x, y, one.name if row is best[0] else ""))
    axes.set_ylim(min([peak / 100, *(rate for _, rate, _ in dots)]) / 1.5, 2 * peak)
    title = "Roofline of one core: dots are ours, rings the fastest other engine"
    return _svg(axes, title, lines, dots)


def _chosen(results: Results, threads: int) -> list[Measurement]:
    return [m for m in results.measurements if m.threads == threads and m.macs >= _MIN_MACS and m.peak]


def _fastest(measurement: Measurement) -> list[Row]:
    best = [measurement.best(engine, exact=False) for engine in ENGINES]
    return sorted((row for row in best if row), key=lambda row: row.seconds)


def _colour(engine: str) -> str:
    return _COLOURS[ENGINES.index(engine) % len(_COLOURS)] if engine in ENGINES else _COLOURS[-1]


def _axes(width: float, height: float) -> Any:
    # The resolution of SVG, so that sizes are known before it is written.
    return import_module("matplotlib.figure").Figure((width, height), dpi=72, layout="constrained").subplots()


def _svg(axes: Any, title: str, handles: Sequence[Any], dots: Iterable[tuple[float, float, str]] = ()) -> str:
    figure, written = axes.figure, io.StringIO()
    figure.legend(handles=handles, title=title, title_fontsize=12, loc="outside upper center", ncols=6, frameon=False)
    figure.draw_without_rendering()
    # The frame stays where it is when names are put into it.
    figure.set_layout_engine("none")
    _name(axes, list(dots))
    # Texts stay texts, and the same results are the same file.
    with import_module("matplotlib").rc_context({"svg.fonttype": "none", "svg.hashsalt": "qdialect"}):
        figure.savefig(written, format="svg", metadata={"Date": None})
    return re.sub(r"\n\s*", " ", written.getvalue()).strip() + "\n"


def _name(axes: Any, dots: Sequence[tuple[float, float, str]]) -> None:
    """Write the names of `dots` around them, with a line to each that lies apart: none is on another, or on a dot."""
    box: Any = import_module("matplotlib.transforms").Bbox.from_bounds
    centres = [axes.transData.transform(dot[:2]) for dot in dots]
    taken = [box(x - _DOT / 2, y - _DOT / 2, _DOT, _DOT) for x, y in centres]
    for (*place, name), (x, y) in zip(dots, centres, strict=True):
        if not name:
            continue
        text = axes.annotate(name, place, textcoords="offset pixels", xytext=(0, 0), fontsize=_SMALL, va="center")
        text.set_horizontalalignment("center")
        size = text.get_window_extent()
        for step in range(600):
            away, angle = _AWAY + step // 12 * 8, step % 12 * math.pi / 6
            dx, dy = (away + size.width / 2) * math.cos(angle), (away + size.height / 2) * math.sin(angle)
            found = box(x + dx - size.width / 2, y + dy - size.height / 2, size.width, size.height)
            is_inside = all(axes.bbox.contains(*corner) for corner in (found.min, found.max))
            if is_inside and not any(found.overlaps(other) for other in taken):
                taken.append(found)
                text.set_position((dx, dy))
                if away > _AWAY:
                    ends = axes.transData.inverted().transform([(x, y), (x + dx, y + dy)])
                    axes.plot(*ends.T, color="#bbb", linewidth=0.5, zorder=0)
                break
