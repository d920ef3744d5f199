"""Write the figures behind a page as compact JSON within the page."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable

import numpy as np

from fleetmark.reports.kit import format as fmt
from fleetmark.reports.kit.breakdown import Breakdown, Entry, Figures, Origin
from fleetmark.reports.kit.language import Language


def embedded(breakdown: Breakdown, _: Language) -> str:
    """Return the members, their groups, and the figures of each entry in the order of the members.

    The JSON text cannot close the enclosing script element.
    """
    head = {
        "hosts": [fmt.clean(name) for name in breakdown.members],
        "sides": breakdown.sides,
        "titles": [_(title) for title in breakdown.groups],
    }
    entries = ",".join(_entry(entry, breakdown.has_spread, _) for entry in breakdown.entries)
    return _inert(f'{_compact(head)[:-1]},"metrics":[{entries}]}}')


def origins(listed: Iterable[Origin], link: Callable[[str], str], _: Language) -> str:
    """Return the origins: title, unit as in a breakdown, commands by side, and a row per member; empty if none.

    A row has the member, its side, its figure, its repeats and their files. ``link``: a function that returns the
    address of a file, or an empty text. A file with an address is written as a pair.
    """
    texts = [_compact(_origin(origin, link, _)) for origin in listed]
    return _inert(f"[{','.join(texts)}]") if texts else ""


def _origin(origin: Origin, link: Callable[[str], str], _: Language) -> dict[str, object]:
    shown = origin.shown

    def number(value: float) -> float | None:
        scaled = value * shown.factor
        if not math.isfinite(scaled):
            return None
        rounded = round(scaled, shown.decimals + 1)  # one digit more than in tables
        return rounded or float(f"{scaled:.2g}")

    def place(file: str) -> str | tuple[str, str]:
        text, address = fmt.clean(file), link(file) if "/raw/" in file else ""  # other texts are positions in a table
        return (text, address) if address else text

    rows = [
        (m.name, _(m.side), number(m.value), list(map(number, m.repeats)), list(map(place, dict.fromkeys(m.files))))
        for m in origin.members
    ]
    return {
        "t": fmt.clean(origin.title),
        "u": shown.unit,
        "f": 1 / shown.factor,
        "b": origin.unit,
        "d": shown.decimals + 1,
        "c": [(_(side), command) for side, command in origin.commands],
        "r": rows,
    }


def _inert(text: str) -> str:
    """Return JSON that cannot close the enclosing script element."""
    return text.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")


def _compact(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _entry(entry: Entry, has_spread: bool, _: Language) -> str:
    """Return one entry: title, unit with its size in base units, decimals, and columns.

    The columns are the value, the distances to its lowest and highest value in units of the last digit, and ``n``.
    """
    shown = entry.shown
    head = {"t": _(entry.title), "u": shown.unit, "f": 1 / shown.factor, "b": entry.unit, "d": shown.decimals}
    text = f'{_compact(head)[:-1]},"v":[{_values(entry.values, shown)}]'
    for name, ends in (("l", entry.lo), ("h", entry.hi)) if has_spread else ():
        text += f',"{name}":[{_steps(ends, entry.values, shown)}]'
    counts = entry.n[np.isfinite(entry.n)]
    alike = len(counts) and bool((counts == counts[0]).all())
    return f'{text},"n":{int(counts[0]) if alike else f"[{_whole(entry.n)}]"}}}'


def _values(values: Figures, shown: fmt.Shown) -> str:
    """Return each figure in the unit shown, with the same decimals."""
    scaled = values * shown.factor
    texts = (f"%.{shown.decimals}f," * len(scaled) % tuple(scaled.tolist())).split(",")[:-1]
    for n in np.flatnonzero(~np.isfinite(scaled)):
        texts[n] = "null"
    for n in np.flatnonzero((np.abs(scaled) < 0.5 * 10.0**-shown.decimals) & (scaled != 0)):
        texts[n] = f"{scaled[n]:.2g}"  # a small figure must not look like 0
    return ",".join(texts)


def _steps(ends: Figures, values: Figures, shown: fmt.Shown) -> str:
    """Return the distances from values to ends in units of the last digit; all are rounded as shown."""
    unit = 10.0**shown.decimals
    return _whole(np.round(ends * shown.factor * unit) - np.round(values * shown.factor * unit))


def _whole(numbers: Figures) -> str:
    """Return whole numbers, with null for a missing number."""
    known = np.isfinite(numbers)
    text = ("%d," * len(numbers) % tuple(np.where(known, numbers, 0).astype(np.int64).tolist()))[:-1]
    if known.all():
        return text
    return ",".join(n if is_known else "null" for n, is_known in zip(text.split(","), known.tolist(), strict=True))
