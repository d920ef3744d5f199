"""Convert base units to display units, and parse the sizes and times that users type."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

from fleetmark.base.errors import FleetmarkError

_SI = [(1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"), (1.0, "")]
_SMALL = [(1.0, ""), (1e-3, "m"), (1e-6, "µ"), (1e-9, "n")]
_BINARY = [(2.0**50, "PiB"), (2.0**40, "TiB"), (2.0**30, "GiB"), (2.0**20, "MiB"), (2.0**10, "KiB"), (1.0, "B")]


@dataclass(frozen=True, slots=True)
class Scale:
    """A display unit: displayed values are ``value * factor``, labelled ``unit``."""

    factor: float
    unit: str


def scale_for(value: float, unit: str, *, bits: bool = False, percent: bool = False, counted: str = "") -> Scale:
    """Return the scale that shows ``value`` (in base ``unit``) with one to three digits before the point.

    ``bits`` shows a rate in bit/s, as is usual for networks; ``percent`` shows a share in %; ``counted`` names the
    items of a rate, such as tokens/s. For a column of figures, pass its median.
    """
    size = abs(value)
    if unit == "B/s" and bits:
        return _pick(size * 8, _SI, "bit/s", 8.0)
    if unit in ("B/s", "bit/s", "FLOP/s", "Hz", "1/s"):
        # "k/s" would look like a separate unit.
        steps = _SI if unit != "1/s" or size >= 1e7 else _SI[-1:]
        picked = _pick(size, steps, unit.removeprefix("1"), 1.0)
        shown_unit = f"{picked.unit.removesuffix('/s')} {counted}".strip()
        return Scale(picked.factor, shown_unit) if counted and unit == "1/s" else picked
    if unit == "s":
        return _pick(size, _SMALL, "s", 1.0)
    if unit == "B":
        return next((Scale(1 / f, name) for f, name in _BINARY if size >= f), Scale(1.0, "B"))
    if unit == "1":
        return Scale(100.0, "%") if percent else Scale(1.0, "")
    return Scale(1.0, "°C" if unit == "degC" else unit)


def _pick(size: float, steps: list[tuple[float, str]], unit: str, factor: float) -> Scale:
    for step, prefix in steps:
        if size >= step:
            return Scale(factor / step, prefix + unit)
    step, prefix = steps[-1] if size > 0 else (1.0, "")
    return Scale(factor / step, prefix + unit)


def human(
    value: float, unit: str, *, bits: bool = False, percent: bool = False, digits: int = 3, counted: str = ""
) -> str:
    """Return ``value`` with ``digits`` significant digits and its display unit: ``human(2.5e9, "B/s")`` is ``2.50
    GB/s``.
    """
    scale = scale_for(value, unit, bits=bits, percent=percent, counted=counted)
    return with_unit(significant(value * scale.factor, digits), scale.unit)


def with_unit(number: str, unit: str) -> str:
    """Return a number followed by its unit: ``2.50 GB/s``, ``31%``."""
    return f"{number}{unit}" if unit == "%" else f"{number} {unit}".rstrip()


def significant(value: float, digits: int = 3) -> str:
    """Return ``value`` with ``digits`` significant digits, in exponent form only if it is very large or very small."""
    if value == 0:
        return "0"
    if abs(value) >= 10**7 or abs(value) < 1e-4:
        return f"{value:.{digits}g}"
    before = len(str(int(abs(value)))) if abs(value) >= 1 else 0
    if before >= digits:
        return f"{value:,.0f}"
    if before == 0:  # 0.0123 keeps its significant digits
        leading = max(0, -math.floor(math.log10(abs(value))) - 1)
        return f"{value:.{digits + leading}f}"
    return f"{value:.{digits - before}f}"


_BYTES = re.compile(r"^\s*(\d+(?:\.\d+)?)\s*(?:([kmgtp])(i?)(b?)|b)?\s*$", re.IGNORECASE)
_SECONDS = {"us": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0, "d": 86400.0}


def is_whole(text: str) -> bool:
    """Return whether ``text`` has the digits 0 to 9 only. str.isdigit accepts others, also some that int refuses."""
    return text.isascii() and text.isdigit()


def parse_bytes(text: str | int | float) -> int:
    """Return a size in bytes: ``4k``, ``4KiB`` and ``4096`` are 4096, as in fio and Linux; ``4kB`` is 4000.

    Raise FleetmarkError for anything else.
    """
    if isinstance(text, int | float) and math.isfinite(text):
        return int(text)
    match = _BYTES.match(str(text))
    if not match or not math.isfinite(float(match[1]) * 2**50):
        raise FleetmarkError(f"{text!r} is not a size: write 4096, 4k, 16MiB or 2GB")
    number, prefix, binary, byte = match.groups()
    if not prefix:
        return int(float(number))
    power = "kmgtp".index(prefix.lower()) + 1
    base = 1000 if byte and not binary else 1024
    return int(float(number) * base**power)


def parse_seconds(text: str | int | float) -> float:
    """Return a time in seconds: ``90``, ``90s``, ``1.5m``, ``500ms``, ``200us`` or ``2h``. Raise FleetmarkError for
    anything else.
    """
    if isinstance(text, int | float):
        return float(text)
    match = re.match(r"^\s*(\d+(?:\.\d+)?)\s*([a-z]*)\s*$", text)
    if not match or (match[2] or "s") not in _SECONDS:
        raise FleetmarkError(f"{text!r} is not a time: write 30, 30s, 5m, 2h or 500ms")
    return float(match[1]) * _SECONDS[match[2] or "s"]


_PREFIXES = {"": 1.0, "k": 1e3, "K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15, "m": 1e-3}
_PREFIXES |= {"u": 1e-6, "µ": 1e-6, "n": 1e-9}
_BINARY_PREFIXES = {"Ki": 2.0**10, "Mi": 2.0**20, "Gi": 2.0**30, "Ti": 2.0**40}
_COUNTED = re.compile(r" ?(?:IOPS|\b(?!bits|bytes)[a-z]{2,30}s/s)$")  # rates of named items: tokens/s
_QUANTITY = re.compile(r"\s*([+-]?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?)\s*(.*?)\s*")
_NAMES = {"bit/s": ("B/s", 1 / 8), "/s": ("1/s", 1.0), "1/s": ("1/s", 1.0), "": ("1", 1.0), "1": ("1", 1.0)}
_NAMES |= {unit: (unit, 1.0) for unit in ("B/s", "FLOP/s", "Hz", "s", "B", "W", "J", "degC")} | {"%": ("1", 0.01)}


def parse_quantity(text: str | int | float) -> tuple[float, str]:
    """Return an amount as a value and its base unit: ``600 GB/s`` is (6e11, "B/s").

    Raise FleetmarkError for anything else.
    """
    match = _QUANTITY.fullmatch(str(text))
    if match:
        number, name = float(match[1]), _COUNTED.sub("/s", match[2])
        for unit, (base, factor) in sorted(_NAMES.items(), key=lambda item: -len(item[0])):
            prefix = name.removesuffix(unit) if name.endswith(unit) else None
            scale = _PREFIXES.get(prefix or "") if prefix is not None else None
            scale = _BINARY_PREFIXES.get(prefix or "", scale)
            if scale is not None and (unit not in ("", "1", "%") or not prefix):
                return number * scale * factor, base
    raise FleetmarkError(f"{text!r} is not an amount with a unit; write 600 GB/s, 25 Gbit/s, 120 ns, 900 k/s or 0.97")
