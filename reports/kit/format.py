"""Format numbers, names and times: one scale per row or column, and as many digits as the spread supports."""

from __future__ import annotations

import json
import math
import re
import shlex
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial

import numpy as np

from fleetmark.base.measurement import Better
from fleetmark.base.text import changed
from fleetmark.base.units import scale_for, significant, with_unit
from fleetmark.base.visible import visible
from fleetmark.planner.cost import ROUNDING

_SIZES = re.compile(r"(^|_)(size|stride|array|working_set|block)s?$")


def clean(text: object) -> str:
    """Return ``text`` with control characters made visible and line ends replaced by spaces.

    A Message stays a Message, with its values cleaned.
    """
    return changed(text, _plain) if isinstance(text, str) else _plain(text)


def _plain(text: object) -> str:
    plain = str(text)
    if plain.isascii() and plain.isprintable():
        return plain
    return visible(re.sub(r"[\r\n\t]+", " ", plain))


def typed(words: Iterable[str]) -> str:
    """Return ``words`` as one line to type in a shell."""
    return shlex.join(map(clean, words))


def natural(text: str) -> list[tuple[int, int, str]]:
    """Return a sort key that puts ``h2`` before ``h10``."""
    return [(0, int(p), "") if p.isascii() and p.isdigit() else (1, 0, p) for p in re.split(r"(\d+)", text) if p]


@dataclass(frozen=True, slots=True)
class Shown:
    """The format of a metric's row or column: ``value * factor`` with ``decimals`` decimals, in ``unit``."""

    factor: float
    unit: str
    decimals: int

    def number(self, value: float) -> str:
        """Return ``value`` (base unit) as a number without its unit; the empty string for None."""
        if not math.isfinite(value):
            return ""
        scaled = value * self.factor
        text = f"{scaled:,.{self.decimals}f}"
        # The value is far below the others in its column: use other digits instead of showing a false 0.
        return significant(scaled, 2) if value and not text.strip("-0.,") else text

    def quantity(self, value: float) -> str:
        """Return ``value`` with its unit."""
        return with_unit(self.number(value), self.unit)


def fit(
    figures: Iterable[tuple[float, float, float]],
    unit: str,
    *,
    bits: bool = False,
    percent: bool = False,
    counted: str = "",
) -> Shown:
    """Return a common scale and precision for these (median, lo, hi), all in base ``unit``.

    The options are those of ``scale_for``. Scale and digits suit the smaller values, so that none begins with a row of
    zeros: 3 or 4 significant digits, with the last digit at most half of the half spread.
    """
    array = np.array([f for f in figures if math.isfinite(f[0])], dtype=float).reshape(-1, 3)
    sizes = np.sort(np.abs(array[:, 0][array[:, 0] != 0]))
    small = float(sizes[len(sizes) // 4]) if len(sizes) else 0.0
    scale = scale_for(small, unit, bits=bits, percent=percent, counted=counted)
    finite = array[np.isfinite(array)]
    if not len(sizes) or (scale.unit == "" and bool((finite == np.round(finite)).all())):
        return Shown(scale.factor, scale.unit, 0)
    least = 2 - math.floor(math.log10(small * scale.factor))  # decimals for 3 significant digits
    widths = array[:, 2] - array[:, 1]
    halves = np.sort(widths[np.isfinite(widths)] / 2 * scale.factor)
    half = float(halves[len(halves) // 2]) if len(halves) else math.inf
    decimals = least if math.isinf(half) else least + 1 if half == 0 else -math.floor(math.log10(half / 2))
    return Shown(scale.factor, scale.unit, min(9, max(0, least, min(decimals, least + 1))))


def percent(ratio: float) -> str:
    """Return a coefficient of variation: ``0.84%``, ``6.2%``, ``31%``; empty if unknown."""
    if not math.isfinite(ratio):
        return ""
    part = 100 * ratio
    if part >= 0.995:
        return f"{part:.0f}%" if part >= 9.95 else f"{part:.1f}%"
    return f"{significant(part, 2)}%"


def size(value: float) -> str:
    """Return a size in the unit that makes it round: ``64 KiB``, ``1.41 MiB``."""
    scale = scale_for(value, "B")
    return f"{float(f'{value * scale.factor:.3g}'):g} {scale.unit}"


def labels(text: str) -> str:
    """Return canonical JSON labels as ``size 64 KiB, stride 128 B``; empty without labels."""
    return ", ".join(
        f"{clean(key)} {size(float(value)) if _SIZES.search(key) and value.isdigit() else clean(value)}"
        for key, value in json.loads(text).items()
    )


def point(metric: str, subject: str, label_text: str, standing: str) -> str:
    """Return a metric with what distinguishes it from others of its name, such as ``read_bw, nvme0n1``."""
    subject_name = "" if subject == "host" else clean(subject)
    return ", ".join(p for p in (clean(metric), subject_name, labels(label_text), clean(standing)) if p)


def better(value: str) -> str:
    """Return the direction, such as ``higher is better``; empty for purely descriptive metrics."""
    return Better(value).phrase


def duration(seconds: float) -> str:
    """Return a duration: ``1 h 10 min``, ``6 min 52 s``, ``4.2 s``."""
    if seconds < 60:
        return f"{significant(seconds, 2)} s"
    if seconds < 3600:
        return f"{int(seconds // 60)} min {int(seconds % 60)} s"
    return f"{int(seconds // 3600)} h {int(seconds % 3600 // 60)} min"


def moment(iso: str) -> str:
    """Return an ISO 8601 time as ``2026-03-04 09:12 UTC``; other text unchanged."""
    try:
        timestamp = datetime.fromisoformat(iso)
    except ValueError:
        return clean(iso)
    return (timestamp.replace(tzinfo=UTC) if timestamp.tzinfo is None else timestamp.astimezone(UTC)).strftime(
        "%Y-%m-%d %H:%M UTC"
    )


_MINUS = re.compile(r"(?<![\w.)-])-(?=[\d.])")


def with_minus(text: str) -> str:
    """Return ``text`` with the minus sign U+2212 before each negative number."""
    return changed(text, partial(_MINUS.sub, "\u2212")) if "-" in text else text


# --- the rounding rules of all formats; number formats of workbooks follow the same rules ---------------------------

FIGURE_FORM = "[>=999.5]#,##0;[>=9.95]0.0;0.00"


def money(value: float) -> str:
    """Return a sum of money without its currency: ``9,600,119``."""
    return _no_minus_zero(f"{value:,.0f}")


def change_of_money(value: float) -> str:
    """Return a change of cost with its sign: ``+2,346,242``."""
    return with_minus(f"{value:+,.0f}")


def price(value: float) -> str:
    """Return a price: ``15,500``, ``4.20``; three significant digits below 1: ``0.0835``."""
    if value >= 1000:
        return money(value)
    return f"{value:,.2f}" if value >= 1 else f"{value:.3g}"


def figure(value: float) -> str:
    """Return a quantity in its column's unit: ``1,234``, ``47.8``, ``5.26``; below 0.1 with two significant digits."""
    size = abs(value)
    if size >= 999.5:
        return f"{value:,.0f}"
    if size >= 9.95:
        return f"{value:.1f}"
    return f"{value:.2f}" if size >= 0.095 or size == 0 else significant(value, 2)


def amount(value: float) -> str:
    """Return a quantity for a sentence: ``42``, ``0.125``, ``12,345,678``; decimals up to four significant digits."""
    return f"{value:,.4g}" if abs(value) < 9999.5 else f"{value:,.0f}"


def servers(number: float) -> str:
    """Return a number of servers to buy, rounded up: ``48`` for 47.2."""
    return f"{math.ceil(number - ROUNDING):,}"


def servers_shared(number: float) -> str:
    """Return a workload's part of shared servers: ``47.2``, or ``47`` for a whole number. The parts add up."""
    return f"{round(number):,}" if abs(number - round(number)) < 0.05 else f"{number:,.1f}"


def share(part: float | None, decimals: int = 1) -> str:
    """Return a share: ``96.2%``; a dash if unknown."""
    if part is None:
        return "–"
    return f"{_no_minus_zero(f'{100 * part:.{decimals}f}')}%"


def change(part: float) -> str:
    """Return a relative change with its sign: ``+2.4%``; ``0.0%`` has no sign."""
    text = f"{100 * part:+.1f}%"
    return "0.0%" if text in ("+0.0%", "-0.0%") else with_minus(text)


def z_score(value: float) -> str:
    """Return a distance in standard deviations: ``4.7``, ``−52.5``."""
    return f"{value:.1f}".replace("-", "−")


def factor(value: float) -> str:
    """Return a factor or a margin: ``1.27``."""
    return f"{value:.2f}"


RATIO_FORM = "[>=999.5]#,##0;[>=0.0995]0.00;0.0000"
_WIDEST, _NARROWEST = 1e7, 1e-3  # limits beyond which digits carry no information


def ratio(value: float) -> str:
    """Return a ratio: ``1.27``, ``12,345``; with more decimals for nearly equal or very small values."""
    if value >= _WIDEST or value < _NARROWEST:
        return f"{value:.1e}"
    if value < 0.0995:
        return f"{value:.4f}"
    return f"{value:,.0f}" if value >= 999.5 else f"{value:.2f}"


def interval(lo: float | None, hi: float | None) -> str:
    """Return the ends of a ratio's interval: ``2.21–2.44``; empty without ends."""
    return "" if lo is None or hi is None else f"{ratio(lo)}–{ratio(hi)}"


def _no_minus_zero(text: str) -> str:
    return text[1:] if text.startswith("-") and not text.strip("-0.,") else text
