"""Draw forest plots: ratios with their intervals as small SVGs, one per table row, on a shared logarithmic axis."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from fleetmark.planner.estimate import Estimate

WIDTH, HEIGHT = 340, 20  # height of a row, in px
_LANE = 9  # px from one candidate to the next, where each has its own line
_EDGE = 10.0  # px left free on both sides, for the arrows of clipped intervals
_LEAST = 1.05  # the axis reaches at least from 1/1.05 to 1.05: noise must not look like a difference
_BEYOND = 3.0  # multiple of the outermost ratios; longer intervals are clipped and end in an arrow
_TICKS = 7  # maximum ticks besides the one at 1
_APART = 28.0  # minimum px between ticks, so that their labels do not overlap
_SHORT = 4.0  # maximum ratio of the ends of an axis with evenly spaced ticks
_SIZE = 4.0  # half of a mark's height


@dataclass(frozen=True, slots=True)
class Axis:
    """A logarithmic axis from ``lo`` to ``hi`` (ratios), over WIDTH px."""

    lo: float
    hi: float

    def position(self, ratio: float) -> float:
        """Return the position of ``ratio`` in px from the left; a ratio beyond an end is drawn at that end."""
        part = (math.log(min(max(ratio, self.lo), self.hi)) - math.log(self.lo)) / math.log(self.hi / self.lo)
        return _EDGE + part * (WIDTH - 2 * _EDGE)


def axis_of(ratios: Iterable[Estimate]) -> Axis:
    """Return an axis that shows all these ratios legibly and always includes 1."""
    estimates = list(ratios)
    points = [e.value for e in estimates] or [1.0]
    ends = [end for e in estimates for end in e.interval or ()]
    room = max(points) / min(points)
    far = max(_BEYOND, room)  # if the ratios vary widely, an equally wide interval is not an outlier
    lo = max(min([*ends, *points, 1 / _LEAST]), min(*points, 1.0) / far)
    hi = min(max([*ends, *points, _LEAST]), max(*points, 1.0) * far)
    margin = (hi / lo) ** 0.03
    return Axis(lo / margin, hi * margin)


def scale(axis: Axis) -> str:
    """Draw the axis as the head of the column: ticks with labels, always including 1."""
    parts = [f'<path d="M{_EDGE:g} {HEIGHT - 0.5}H{WIDTH - _EDGE:g}" stroke="currentColor" stroke-opacity=".45"/>']
    for tick in ticks(axis):
        x = axis.position(tick)
        parts.append(f'<path d="M{x:.1f} {HEIGHT - 4}v4" stroke="currentColor" stroke-opacity=".6"/>')
        weight = ' font-weight="700"' if tick == 1 else ""
        parts.append(
            f'<text x="{x:.1f}" y="{HEIGHT - 6}" text-anchor="middle" font-size="10" fill="currentColor"{weight}>'
            f"{tick:g}</text>"
        )
    return _svg("".join(parts))


def plots(
    axis: Axis, lanes: Sequence[tuple[Estimate | None, str, int]], *, headline: bool = False, apart: bool = True
) -> str:
    """Draw the ratios of several candidates with colour and shape, on separate lines or (``apart`` False) on one."""
    height = max(HEIGHT, _LANE * len(lanes) + 4) if apart else HEIGHT
    parts = []
    for tick in ticks(axis):  # larger than the row, which grows with long names
        opacity = ".5" if tick == 1 else ".1"
        line = f"M{axis.position(tick):.1f} -60V{height + 60}"
        parts.append(f'<path d="{line}" stroke="currentColor" stroke-opacity="{opacity}"/>')
    for place, (ratio, colour, shape) in enumerate(lanes):
        if ratio is not None and ratio.value > 0:
            middle = (place + 0.5) * height / len(lanes) if apart else height / 2
            parts.append(f'<g fill="{colour}" stroke="{colour}">{_lane(axis, ratio, middle, shape, headline)}</g>')
    return _svg("".join(parts), height)


def _lane(axis: Axis, ratio: Estimate, middle: float, shape: int, headline: bool) -> str:
    inner = []
    if ratio.interval:
        lo, hi = ratio.interval
        left, right = axis.position(max(lo, axis.lo)), axis.position(hi)
        inner.append(f'<path d="M{left:.1f} {middle:g}H{right:.1f}" stroke-width="{2.6 if headline else 1.6}"/>')
        if lo < axis.lo:
            inner.append(f'<path d="M{left:.1f} {middle:g}l5 -4m-5 4l5 4" stroke-width="1.5" fill="none"/>')
        if hi > axis.hi:
            inner.append(f'<path d="M{right:.1f} {middle:g}l-5 -4m5 4l-5 4" stroke-width="1.5" fill="none"/>')
    inner.append(mark(axis.position(ratio.value), middle, shape, hollow=ratio.interval is None))
    return "".join(inner)


def key(colour: str, shape: int) -> str:
    """Draw only a candidate's mark, to be placed next to its name."""
    return (
        f'<svg class="mark-of" width="11" height="11" viewBox="0 0 11 11" aria-hidden="true">'
        f'<g fill="{colour}" stroke="{colour}">{mark(5.5, 5.5, shape)}</g></svg>'
    )


def mark(x: float, y: float, shape: int, *, hollow: bool = False) -> str:
    """Draw the mark of a ratio at (x, y), in the colours of the enclosing element."""
    fill = ' fill="none" stroke-width="1.6"' if hollow else ""
    corners = _SHAPES[shape % len(_SHAPES)]
    if not corners:
        return f'<circle cx="{x:.1f}" cy="{y:g}" r="{_SIZE - 0.4:g}"{fill}/>'
    path = "L".join(f"{x + dx * _SIZE:.1f} {y + dy * _SIZE:.1f}" for dx, dy in corners)
    return f'<path d="M{path}Z"{fill}/>'


# A circle, a square, two triangles and a bar, sized to look equally heavy.
_SHAPES: tuple[tuple[tuple[float, float], ...], ...] = (
    (),
    ((-0.85, -0.85), (0.85, -0.85), (0.85, 0.85), (-0.85, 0.85)),
    ((0, -1.05), (1.1, 0.9), (-1.1, 0.9)),
    ((0, 1.05), (1.1, -0.9), (-1.1, -0.9)),
    ((-0.5, -1.2), (0.5, -1.2), (0.5, 1.2), (-0.5, 1.2)),
)


def _svg(inner: str, height: int = HEIGHT) -> str:
    return (
        f'<svg class="forest" width="{WIDTH}" height="{height}" viewBox="0 0 {WIDTH} {height}" aria-hidden="true">'
        f"{inner}</svg>"
    )


def ticks(axis: Axis) -> list[float]:
    """Return round ratios on the axis including 1, from the finest set with at most _TICKS of them."""
    best = [1.0]
    for values in _kinds(axis):
        inside = [v for v in values if axis.lo <= v <= axis.hi]
        near = min((axis.position(b) - axis.position(a) for a, b in pairwise(inside)), default=WIDTH)
        if len(inside) > _TICKS + 1 or near < _APART:
            break
        if len(inside) > len(best) and 1.0 in inside:
            best = inside
    return best


def _kinds(axis: Axis) -> Iterable[list[float]]:
    """Yield sets of round ratios, from the coarsest to the finest; only short axes have evenly spaced ones."""
    for every in (2, 1):
        yield [10.0**e for e in range(-12, 13, every)]
    yield [m * 10.0**e for e in range(-6, 7) for m in (1, 3)]
    yield [2.0**e for e in range(-8, 9)]
    yield [m * 10.0**e for e in range(-6, 7) for m in (1, 2, 3, 5)]
    if axis.hi / axis.lo < _SHORT:
        for step in (0.5, 0.25, 0.2, 0.1, 0.05, 0.02):
            yield [round(1 + k * step, 4) for k in range(-int(1 / step) + 1, 2 * int(1 / step) + 1)]
