"""Read tidy tables of the user's own figures: one figure per row, in CSV, JSON, JSON lines or Parquet.

Required columns: ``machine``, ``benchmark``, ``value``, ``unit``. Optional columns: ``metric``, ``better`` (higher or
lower), ``class``, ``kind`` (capacity, responsiveness or guardrail), ``repeat``, ``workload``, ``standing`` (estimate or
unverified). Every other column is a label of the machine.

Units become base units. The counted item of a rate is recorded with the benchmark (``rate of=samples``), so that
samples per second are never compared with tokens per second.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping

from fleetmark.base.errors import FleetmarkError
from fleetmark.base.kinds import kind_of_class
from fleetmark.base.measurement import Better, Kind, Measurement, Standing
from fleetmark.parsers.published import ZERO, Collector, Row, Table, figure
from fleetmark.parsers.published.files import Records, records, some, words

TRAITS: tuple[str, ...] = ()  # its labels have the same meaning as in the other formats and in inventories
MODEL: tuple[str, ...] = ()
KIND: tuple[str, ...] = ()
COUNTS: Mapping[str, str] = {}
UNIFORM: Mapping[str, str] = {}
PUBLISHER = ""
REQUIRED = ("machine", "benchmark", "value", "unit")
OPTIONAL = ("metric", "better", "class", "kind", "repeat", "workload", "standing")
_MEANT = {"host": "machine", "campaign": "import"}  # words of a selector that are not labels
_LARGE = {"k": 1e3, "K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15, "E": 1e18}
_BINARY = {f"{p}i": 1024.0**n for n, p in enumerate("KMGTPE", 1)}
_SMALL = {"m": 1e-3, "u": 1e-6, "\N{MICRO SIGN}": 1e-6, "\N{GREEK SMALL LETTER MU}": 1e-6, "n": 1e-9}
_PREFIXED = re.compile(r"([KMGTPE]i|.)(.+)")
# Stems that take a prefix, with their base units; other words take no prefix.
_STEMS = {
    "B/s": ("B/s", 1.0),
    "bit/s": ("B/s", 0.125),
    "b/s": ("B/s", 0.125),
    "bps": ("B/s", 0.125),
    "FLOP/s": ("FLOP/s", 1.0),
    "FLOPS": ("FLOP/s", 1.0),
    "Hz": ("Hz", 1.0),
    "B": ("B", 1.0),
    "W": ("W", 1.0),
    "J": ("J", 1.0),
    "Wh": ("J", 3600.0),
    "s": ("s", 1.0),
}
_WORDS = {
    "sec": ("s", 1.0),
    "seconds": ("s", 1.0),
    "min": ("s", 60.0),
    "minutes": ("s", 60.0),
    "h": ("s", 3600.0),
    "hours": ("s", 3600.0),
    "1": ("1", 1.0),
    "ratio": ("1", 1.0),
    "score": ("1", 1.0),
    "points": ("1", 1.0),
    "x": ("1", 1.0),
    "%": ("1", 0.01),
    "degC": ("degC", 1.0),
    "°C": ("degC", 1.0),
    "1/s": ("1/s", 1.0),
    "/s": ("1/s", 1.0),
}
_COUNTED = re.compile(
    "samples|queries|tokens|requests|operations|ops|transactions|images|frames|events|jobs|messages|packets|records|rows"
    "|calls|inferences|steps|iterations|updates|lookups|reads|writes|pages|files|builds|connections|sessions|nodes|io"
)
_RATE = re.compile(r"([kKMG])?((?i:[a-z]{1,20}))(?:/s|/sec| per second)")
_SHORT = re.compile(r"([kKMG])?((?i:IOPS|QPS|RPS|FPS))")
_STANDS_FOR = {"iops": "io", "qps": "queries", "rps": "requests", "fps": "frames", "tok": "tokens", "img": "images"}
_METRICS = {  # the default name of a figure, and its better direction if the unit determines it
    "B/s": ("bandwidth", Better.HIGHER),
    "1/s": ("rate", Better.HIGHER),
    "FLOP/s": ("rate", Better.HIGHER),
    "s": ("time", Better.LOWER),
    "W": ("power", Better.LOWER),
    "J": ("energy", Better.LOWER),
    "Hz": ("frequency", Better.HIGHER),
    "B": ("size", None),
    "degC": ("temperature", Better.LOWER),
    "1": ("score", None),
}


def read(raw: bytes, name: str = "") -> Table:
    """Return the figures in ``raw``; ``name`` is not needed.

    Values that are not numbers above zero are omitted. Raise FleetmarkError for a missing column, and for a row whose
    machine, benchmark, unit or direction is missing or unknown.
    """
    source = records(raw)
    columns = _columns(source)
    further = {c.strip(): c for c in source.columns if c.strip() and c not in columns.values()}
    collector = Collector()
    for column in sorted(further.keys() & _MEANT.keys()):
        del further[column]
        collector.notes.append(
            f"the column {column} is left out: in a selector, {column} stands for the {_MEANT[column]}"
        )
    labels: dict[str, dict[str, tuple[str, str]]] = {}
    open_kinds = 0
    seen: dict[tuple[object, ...], tuple[str, float]] = {}
    betters: dict[tuple[object, ...], tuple[str, Better]] = {}
    for place, cells in source.rows:
        texts = {key: words(cells.get(column)) for key, column in columns.items()}
        for required in ("machine", "benchmark"):
            if not texts[required]:
                raise FleetmarkError(f"{place}: no {required}")
        row_place = f"{place} ({texts['machine']}, {texts['benchmark']})"
        unit, factor, base_unit = _unit(row_place, texts["unit"])
        metric, better = _metric(row_place, texts, unit)
        standing = _standing(row_place, texts.get("standing", ""))
        class_ = texts.get("class") or "other"
        kind = _kind(row_place, texts.get("kind", ""), class_)
        open_kinds += kind is None
        _label(row_place, labels.setdefault(texts["machine"], {}), {k: words(cells.get(c)) for k, c in further.items()})
        value, reason = figure(cells.get(columns["value"]))
        if reason == ZERO and kind is Kind.GUARDRAIL:  # a loss of zero is a valid figure
            value, reason = 0.0, ""
        if reason:
            collector.leave(reason)
            continue
        m = Measurement(
            texts.get("workload") or "table",
            texts["benchmark"],
            metric,
            value * factor,
            unit,
            better=better,
            labels={"of": base_unit} if base_unit else {},
        )
        point = (m.workload, m.case, metric, base_unit)
        before = betters.setdefault(point, (place, better))
        if before[1] != better:
            raise FleetmarkError(
                f"{row_place}: {better} is better, but {before[1]} in {before[0]} for the same benchmark; correct one"
            )
        if texts.get("repeat"):
            key = (texts["machine"], *point, texts["repeat"])
            if key in seen:
                if seen[key][1] != m.value:
                    raise FleetmarkError(
                        f"{row_place}: repeat {texts['repeat']} has another value in {seen[key][0]}; correct one"
                    )
                collector.leave("the same row again")
                continue
            seen[key] = place, m.value
        collector.add(
            texts["machine"],
            {},
            {k: value for k, (value, _) in labels[texts["machine"]].items()},
            Row(texts["machine"], m, class_, kind, place, standing=standing),
        )
    if open_kinds:
        collector.notes.append(
            f"{open_kinds:,} rows declare no kind, so it is inferred from class, unit and direction; to "
            f"declare it, add a column kind ({', '.join(Kind)}) says it"
        )
    return collector.table(len(source.rows))


def _columns(source: Records) -> dict[str, str]:
    """Return the recognised columns by meaning. Raise FleetmarkError if a required column is missing."""
    by_name = {c.strip().lower(): c for c in source.columns}
    missing = [c for c in REQUIRED if c not in by_name]
    if missing:
        near = {c: difflib.get_close_matches(c, by_name, 1) for c in missing}
        hints = [f"{by_name[n[0]]!r} may be {c}" for c, n in near.items() if n]
        raise FleetmarkError(
            f"the table lacks the column {', '.join(missing)}; it needs {', '.join(REQUIRED)}, may have "
            f"{', '.join(OPTIONAL)}, and other columns are labels; it has {some(source.columns)}"
            + (f"; {', '.join(hints)}" if hints else "")
        )
    return {c: by_name[c] for c in (*REQUIRED, *OPTIONAL) if c in by_name}


def _unit(place: str, text: str) -> tuple[str, float, str]:
    """Return the base unit, the factor to it, and the counted item of a rate (empty if unknown)."""
    if not text:
        raise FleetmarkError(f"{place}: no unit; write the unit of the value: GB/s, ms, samples/s, score")
    if text in _WORDS:
        return (*_WORDS[text], "")
    if text in _STEMS:
        return (*_STEMS[text], "")
    match = _PREFIXED.fullmatch(text)
    if match and match[2] in _STEMS:
        base, factor = _STEMS[match[2]]
        prefixes = {**_LARGE, **_BINARY} if base in ("B/s", "B", "FLOP/s", "Hz") else {**_LARGE, **_SMALL}
        if match[1] in prefixes:
            return base, factor * prefixes[match[1]], ""
    rate = _RATE.fullmatch(text) or _SHORT.fullmatch(text)
    if rate:
        word = _STANDS_FOR.get(rate[2].lower(), rate[2].lower())
        word = word if word == "io" or word.endswith("s") else f"{word}s"
        if _COUNTED.fullmatch(word):
            return "1/s", _LARGE[rate[1]] if rate[1] else 1.0, word
    raise FleetmarkError(
        f"{place}: unknown unit {text!r}; use B/s, bit/s, FLOP/s, s, W, J, B, Hz with prefixes, "
        "min, h, %, score, ratio, and counts such as samples/s, tokens/s, requests/s, IOPS"
    )


def _metric(place: str, texts: Mapping[str, str], unit: str) -> tuple[str, Better]:
    metric, usual = _METRICS[unit]
    text = texts.get("better", "").lower()
    if text and text not in ("higher", "lower"):
        raise FleetmarkError(f"{place}: better is {text!r}; write higher or lower")
    better = Better(text) if text else usual
    if better is None:
        raise FleetmarkError(
            f"{place}: a value in {texts['unit']} has no known better direction; add the column better: higher or lower"
        )
    return texts.get("metric") or metric, better


def _standing(place: str, text: str) -> Standing | None:
    try:
        return Standing(text.lower()) if text else None
    except ValueError:
        raise FleetmarkError(f"{place}: standing is {text!r}; write {' or '.join(Standing)}, or nothing") from None


def _kind(place: str, text: str, class_: str) -> Kind | None:
    """Return the kind that a row declares. Raise FleetmarkError if it is unknown or its class does not allow it."""
    try:
        kind = Kind(text.lower()) if text else None
    except ValueError:
        raise FleetmarkError(f"{place}: kind is {text!r}; write {', '.join(Kind)}, or nothing") from None
    held = kind_of_class(class_)
    if kind and held and kind not in (held, Kind.GUARDRAIL):
        raise FleetmarkError(f"{place}: kind is {kind}, and the class {class_} holds {held}: write another class")
    return kind


def _label(place: str, labels: dict[str, tuple[str, str]], texts: Mapping[str, str]) -> None:
    """Add a row's labels to its machine's. Raise FleetmarkError if a label has two values for one machine."""
    for label, value in texts.items():
        before = labels.setdefault(label, (value, place)) if value else None
        if before and before[0] != value:
            raise FleetmarkError(
                f"{place}: {label} is {value!r}, and {before[0]!r} in {before[1].partition(' (')[0]}; other columns "
                "are labels of the machine; put varying values into the benchmark's name"
            )
