"""The profile of a network as a picture: SVG, alone or in a page of HTML; nothing else is needed to look at it.

On top is one call as a strip, its kernel calls in order. Below is a bar for each, the longest first: its length is the
time, its dark part the time that the bare dot-product instruction would take for the same products. So what could be
won by better code is the light part. Each rectangle shows its figures when it is pointed at.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import PurePath
from typing import TYPE_CHECKING
from xml.sax.saxutils import escape

from qdialect.support.diagnostics import printable
from qdialect.support.interface import kernel_names, node_names

if TYPE_CHECKING:
    from qdialect.bench.core_model.profile import CallProfile, Profile

SUFFIXES = (".svg", ".html")
"""The suffixes of files that a chart can be written to."""

_WIDTH, _MARGIN = 1120, 20
_LABELS, _FIGURES = 360, 230
_BARS = _WIDTH - 2 * _MARGIN - _LABELS - _FIGURES
_STRIP_TOP, _STRIP = 58, 34
_ROW, _BAR = 18, 13
_LEGEND_ROW, _LEGEND_COLUMN = 20, 270
_NAME_LENGTH = 46
# Light and dark of a kind of kernel call.
_COLOURS = (
    *(("#9ecae9", "#2f6ea5"), ("#f9c58d", "#c96a12"), ("#a5d6a0", "#2d8a3e"), ("#d0b8e0", "#7a4ea3")),
    *(("#f2aeb0", "#b8393e"), ("#d3bfb2", "#7f5f4c"), ("#c9c9c9", "#6e6e6e")),
)


def chart(profile: Profile, title: str) -> str:
    """The picture as SVG."""
    kinds = _kinds(profile)
    columns = (_WIDTH - 2 * _MARGIN) // _LEGEND_COLUMN
    legend_top = _STRIP_TOP + _STRIP + 14
    bars_top = legend_top + -(-len(kinds) // columns) * _LEGEND_ROW + 12
    height = bars_top + len(profile.calls) * _ROW + _MARGIN
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_WIDTH}" height="{height}" viewBox="0 0 {_WIDTH} {height}"'
        ' font-family="sans-serif" font-size="12">',
        f'<rect width="{_WIDTH}" height="{height}" fill="white"/>',
        _text(_MARGIN, 26, title, 'font-size="17" font-weight="bold"'),
        _text(_MARGIN, 46, _summary(profile), 'fill="#444"'),
        *_strip(profile, kinds),
        *_legend(profile, kinds, legend_top, columns),
        *_bars(profile, kinds, bars_top),
        "</svg>\n",
    ]
    return "\n".join(lines)


def file_content(profile: Profile, path: str, title: str) -> str:
    """The content of a file of this name, whose suffix is one of `SUFFIXES`."""
    picture = chart(profile, title)
    if PurePath(path).suffix == ".svg":
        return picture
    return f'<!doctype html>\n<meta charset="utf-8">\n<title>{_clean(title)}</title>\n{picture}'


def _kinds(profile: Profile) -> dict[str, tuple[str, str]]:
    """Colours by what a kernel call computes, the longest time first; the last colour is for all that is left."""
    times: dict[str, float] = {}
    for one in profile.calls:
        times[one.call.label] = times.get(one.call.label, 0.0) + one.seconds
    order = sorted(times, key=lambda label: -times[label])
    return {label: _COLOURS[min(index, len(_COLOURS) - 1)] for index, label in enumerate(order)}


def _summary(profile: Profile) -> str:
    """The time of the whole call, and how to read the bars."""
    text = f"{profile.seconds * 1e6:.4g} us in {len(profile.calls)} kernel calls, {profile.macs * 1e-6:.4g} MMAC"
    if profile.peak is None or not profile.seconds:
        return text
    share = profile.macs / profile.seconds / profile.peak
    peak = f"{100 * share:.1f} % of the bare {profile.loop} loop's {profile.peak * 1e-9:.4g} GMAC/s"
    return f"{text}: {peak}. Dark: the time that loop would take."


def _strip(profile: Profile, kinds: dict[str, tuple[str, str]]) -> Iterator[str]:
    left, width = float(_MARGIN), _WIDTH - 2 * _MARGIN
    for one, hover in zip(profile.calls, _hovers(profile), strict=True):
        length = width * one.seconds / profile.seconds if profile.seconds else 0.0
        light, dark = kinds[one.call.label]
        yield _box(left, _STRIP_TOP, length, _STRIP, light, f'stroke="{dark}" stroke-width="0.4"', hover)
        left += length


def _legend(profile: Profile, kinds: dict[str, tuple[str, str]], top: int, columns: int) -> Iterator[str]:
    for index, (label, (_, dark)) in enumerate(kinds.items()):
        left, y = _MARGIN + index % columns * _LEGEND_COLUMN, top + index // columns * _LEGEND_ROW
        own = [one for one in profile.calls if one.call.label == label]
        seconds = sum(one.seconds for one in own)
        yield _box(left, y, 12, 12, dark)
        yield _text(left + 18, y + 11, f"{label}: {len(own)} in {seconds * 1e6:.4g} us")


def _bars(profile: Profile, kinds: dict[str, tuple[str, str]], top: int) -> Iterator[str]:
    order = sorted(enumerate(profile.calls), key=lambda pair: -pair[1].seconds)
    longest = order[0][1].seconds if order else 0.0
    left, hovers, names = _MARGIN + _LABELS, _hovers(profile), node_names([one.call for one in profile.calls])
    for row, (number, one) in enumerate(order):
        y = top + row * _ROW
        light, dark = kinds[one.call.label]
        length = _BARS * one.seconds / longest if longest else 0.0
        hover, share = hovers[number], one.share_of_peak
        yield _text(left - 8, y + 11, _short(number, names[number]), 'text-anchor="end"', hover)
        yield _box(left, y, length, _BAR, light, "", hover)
        if share is not None:
            yield _box(left, y, length * min(share, 1.0), _BAR, dark, "", hover)
        figures = f"{one.seconds * 1e6:.2f} us" + (
            f", {100 * share:.0f} % of {profile.loop_of(one)}" if share is not None else ""
        )
        yield _text(left + length + 6, y + 11, figures, 'fill="#444"')


def _short(number: int, name: str) -> str:
    return f"{name if len(name) <= _NAME_LENGTH else '...' + name[3 - _NAME_LENGTH :]}  #{number}"


def _hovers(profile: Profile) -> list[str]:
    names = kernel_names([one.call for one in profile.calls])
    return [_hover(number, name, one) for number, (name, one) in enumerate(zip(names, profile.calls, strict=True))]


def _hover(number: int, kernel: str, one: CallProfile) -> str:
    call = one.call
    lines = [f"#{number} {call.label}, {kernel}: {one.seconds * 1e6:.2f} us", *call.names]
    if call.macs:
        share = "" if one.share_of_peak is None else f", {100 * one.share_of_peak:.1f} % of peak"
        lines.append(f"{call.macs * 1e-6:.4g} MMAC: {one.rate * 1e-9:.4g} GMAC/s{share}")
    lines.append(f"{call.bytes_moved} bytes: {one.bandwidth * 1e-9:.4g} GB/s")
    return "\n".join(lines)


def _box(x: float, y: float, width: float, height: float, colour: str, attributes: str = "", hover: str = "") -> str:
    geometry = f'x="{x:.2f}" y="{y:.2f}" width="{width:.2f}" height="{height}" fill="{colour}" {attributes}'.rstrip()
    return f"<rect {geometry}>{_title(hover)}</rect>"


def _text(x: float, y: float, text: str, attributes: str = "", hover: str = "") -> str:
    return f'<text x="{x:.2f}" y="{y:.2f}" {attributes}>{_clean(text)}{_title(hover)}</text>'


def _title(hover: str) -> str:
    return f"<title>{_clean(hover)}</title>" if hover else ""


def _clean(text: str) -> str:
    return escape("\n".join(map(printable, text.split("\n"))))
