"""The results of a run as pictures, in SVG without any library."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from xml.sax.saxutils import escape

from qdialect.bench.engines import ENGINES, OURS
from qdialect.bench.results import Measurement, Results, Row

_COLOURS = ("#c96a12", "#2f6ea5", "#2d8a3e", "#7a4ea3", "#b8393e", "#7f5f4c", "#6e6e6e", "#b59a00", "#d06ba8")
_MARGIN = 20
_BAR, _GAP = 11, 16
_LABELS, _BARS, _FIGURES = 260, 640, 240
_NAME_LENGTH = 38
_POINT_NAME_LENGTH, _LABEL_WIDTH, _LABEL_HEIGHT = 14, 80, 10
_TITLE = 44
_LEGEND_COLUMN = 130
# The roofline's frame, and the decades it spans: multiply-accumulates a byte, billions of them a second.
_FRAME = (90, 84, 1080, 560)
_INTENSITIES = (-1, 3)
_RATES = (0, 2.7)
# Of matrix tiles.
_HIGH_RATES = (0, 3.7)
_MARKS = (1, 3, 10, 30, 100, 300, 1000, 3000)
_DOT = 5
# Smaller ones are calls, not work.
_MIN_MACS = 100_000


def shares(results: Results, threads: int = 1) -> str:
    """A bar for each engine and workload: the share of the peak that its fastest variant reaches."""
    chosen = [m for m in results.measurements if m.threads == threads and m.macs >= _MIN_MACS and m.peak]
    lines: list[str] = []
    top = _TITLE + 30
    for measurement in chosen:
        rows = _fastest(measurement)
        lines.append(_text(_MARGIN, top + _BAR, measurement.name[:_NAME_LENGTH], 'font-weight="bold"'))
        for row in rows:
            lines += _bar(measurement, row, top)
            top += _BAR + 2
        top += _GAP
    width = _MARGIN + _LABELS + _BARS + _FIGURES
    head = [
        _text(_MARGIN, 24, f"Share of the peak of bare {results.loop}; light: outputs are not exact", 'font-size="16"'),
        *_legend(_TITLE),
        *_grid(top),
    ]
    return _svg(width, top + _MARGIN, [*head, *lines])


def roofline(results: Results) -> str:
    """Rate over arithmetic intensity on one core: ours as dots, the fastest other engine as rings."""
    chosen = [m for m in results.measurements if m.threads == 1 and m.macs >= _MIN_MACS and m.peak]
    peak = max((m.peak for m in chosen), default=0.0)
    plot = _Plot(_RATES if peak * 1e-9 < 10 ** _RATES[1] else _HIGH_RATES)
    lines = [*_legend(_TITLE), *plot.axes(), *plot.ceilings(peak, results.limits)]
    labels: list[tuple[float, float]] = []
    for measurement in chosen:
        lines += plot.point(measurement, labels)
    left, top, width, height = _FRAME
    title = "Roofline of one core: dots are ours, rings the fastest other engine"
    return _svg(left + width + 60, top + height + 70, [_text(left, 30, title, 'font-size="16"'), *lines])


def _fastest(measurement: Measurement) -> list[Row]:
    best = [measurement.best(engine, exact=False) for engine in ENGINES]
    return sorted((row for row in best if row), key=lambda row: row.seconds)


def _bar(measurement: Measurement, row: Row, top: float) -> Iterator[str]:
    share = min(measurement.share(row) or 0.0, 1.0)
    left = _MARGIN + _LABELS
    opacity = 1 if row.is_exact else 0.45
    yield _rect(left, top, share * _BARS, _BAR, f'fill="{_colour(row.engine)}" opacity="{opacity}"')
    figure = f"{100 * share:.1f} %  {row.engine}, {row.seconds * 1e3:.4g} ms"
    yield _text(left + share * _BARS + 6, top + _BAR - 1, figure, 'font-size="10" fill="#333"')


def _grid(bottom: float) -> Iterator[str]:
    left = _MARGIN + _LABELS
    for percent in range(0, 101, 20):
        x = left + percent / 100 * _BARS
        yield _line(x, _TITLE + 22, x, bottom, "#ddd")
        yield _text(x, bottom + 12, f"{percent} %", 'font-size="10" fill="#666" text-anchor="middle"')


def _legend(top: float) -> Iterator[str]:
    for index, engine in enumerate(ENGINES):
        left = _MARGIN + index * _LEGEND_COLUMN
        yield _rect(left, top - 10, 12, 12, f'fill="{_colour(engine)}"')
        yield _text(left + 17, top, engine, 'font-size="12"')


def _colour(engine: str) -> str:
    return _COLOURS[ENGINES.index(engine) % len(_COLOURS)] if engine in ENGINES else _COLOURS[-1]


@dataclass(frozen=True)
class _Plot:
    """A frame with two logarithmic axes."""

    rates: tuple[float, float]
    """The decades of the upright one."""

    def x(self, intensity: float) -> float:
        left, _, width, _ = _FRAME
        return left + _position(intensity, _INTENSITIES) * width

    def y(self, rate: float) -> float:
        _, top, _, height = _FRAME
        return top + (1 - _position(rate, self.rates)) * height

    def axes(self) -> Iterator[str]:
        left, top, width, height = _FRAME
        yield _rect(left, top, width, height, 'fill="none" stroke="#888"')
        for decade in range(_INTENSITIES[0], _INTENSITIES[1] + 1):
            x = self.x(10.0**decade)
            yield _line(x, top, x, top + height, "#eee")
            yield _text(x, top + height + 18, f"{10.0**decade:g}", 'text-anchor="middle"')
        for rate in (one for one in _MARKS if one <= 10 ** self.rates[1]):
            y = self.y(rate)
            yield _line(left, y, left + width, y, "#eee")
            yield _text(left - 8, y + 4, f"{rate}", 'text-anchor="end"')
        yield _text(left + width / 2, top + height + 42, "multiply-accumulates a byte", 'text-anchor="middle"')
        yield _text(left - 60, top - 12, "GMAC/s", "")

    def ceilings(self, peak: float, limits: Mapping[str, float]) -> Iterator[str]:
        highest = peak * 1e-9
        if highest:
            for level, rate in limits.items():
                yield from self._slope(level, rate * 1e-9, highest)
            corner = 10.0 ** _INTENSITIES[1]
            minimum = min((highest / (rate * 1e-9) for rate in limits.values()), default=10.0 ** _INTENSITIES[0])
            yield _line(self.x(minimum), self.y(highest), self.x(corner), self.y(highest), "#333", 2)
            yield _text(self.x(corner) - 6, self.y(highest) - 6, f"peak {highest:.0f} GMAC/s", 'text-anchor="end"')

    def _slope(self, level: str, rate: float, highest: float) -> Iterator[str]:
        """Below its corner a level of memory gives `rate` bytes, each worth the intensity in products."""
        first = max(10.0 ** _INTENSITIES[0], 10.0 ** self.rates[0] / rate)
        last = highest / rate
        yield _line(self.x(first), self.y(first * rate), self.x(last), self.y(highest), "#999", 1.5)
        label = f"{level} {rate:.0f} GB/s"
        yield _text(self.x(first) + 4, self.y(first * rate) - 4, label, 'font-size="10" fill="#666"')

    def point(self, measurement: Measurement, labels: list[tuple[float, float]]) -> Iterator[str]:
        """Its dot, its ring, and its name where that covers none of `labels`; else it shows when it is pointed at."""
        intensity = measurement.macs / measurement.bytes_moved
        ours = measurement.best(OURS, exact=False)
        peer = measurement.fastest_peer(OURS, exact=False)
        x = self.x(intensity)
        if peer:
            y = self.y(measurement.macs / peer.seconds * 1e-9)
            yield f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{_DOT}" fill="none" stroke="{_colour(peer.engine)}"/>'
        if ours:
            y = self.y(measurement.macs / ours.seconds * 1e-9)
            yield f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{_DOT}" fill="{_colour(OURS)}"><title>'
            yield f"{escape(measurement.name)}</title></circle>"
            if all(abs(x - left) > _LABEL_WIDTH or abs(y - top) > _LABEL_HEIGHT for left, top in labels):
                labels.append((x, y))
                yield _text(x + 7, y + 3, measurement.name[:_POINT_NAME_LENGTH], 'font-size="9"')


def _position(value: float, decades: tuple[float, float]) -> float:
    """Where a value lies between two powers of ten, from 0 to 1."""
    low, high = decades
    return min(max((math.log10(max(value, 1e-9)) - low) / (high - low), 0.0), 1.0)


def _svg(width: float, height: float, lines: Sequence[str]) -> str:
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height:.0f}"'
        f' viewBox="0 0 {width:.0f} {height:.0f}" font-family="sans-serif" font-size="12">'
    )
    return "\n".join([head, _rect(0, 0, width, height, 'fill="white"'), *lines, "</svg>\n"])


def _rect(x: float, y: float, width: float, height: float, style: str) -> str:
    return f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" {style}/>'


def _line(x1: float, y1: float, x2: float, y2: float, colour: str, width: float = 1) -> str:
    ends = f'x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}"'
    return f'<line {ends} stroke="{colour}" stroke-width="{width:g}"/>'


def _text(x: float, y: float, text: str, style: str) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" {style}>{escape(text)}</text>'
