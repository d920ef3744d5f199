"""Read SPEC CPU's published scores: its lists, scores estimated by others, and the report of a single result.

The formats are SPEC's list of one suite (Benchmark, System, Peak Result, Base Result, ...), a join of the speed list
with the rate list by system, a list of scores estimated with one copy (cpu, suite, flags, est_base_score), and one
result's CSV, text or raw report, through ``parsers.spec_cpu2017`` and ``spec_cpu2026``.

Cases and metrics are those of the parsers: case ``SPECrate2017_int``, metrics ``base_score`` and ``peak_score``. Base
is compared by default, as peak is optional. A peak of 0.0 was not run. Several results of one system are its repeats.

The join identifies systems only by name. Rate scores are therefore left out if systems with one name have different
numbers of chips or widely different scores. A report's score that contradicts its own rows is marked invalid.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from fleetmark import parsers
from fleetmark.base.errors import FleetmarkError, ParseError
from fleetmark.base.kinds import PEAK, SPEED
from fleetmark.base.measurement import Better, Kind, Measurement, Parsed, Standing
from fleetmark.base.text import Message, count, joined, message
from fleetmark.parsers.kit.text import decode
from fleetmark.parsers.published import Collector, Row, Table, figure
from fleetmark.parsers.published.files import Cells, Records, records, some, unpacked, words

TRAITS: tuple[str, ...] = ()
MODEL: tuple[str, ...] = ("system", "processor")
KIND: tuple[str, ...] = ("processor", "system", "generation")
COUNTS: Mapping[str, str] = {"chips": "processor"}
UNIFORM: Mapping[str, str] = {"processor": "processor", "chips": "sockets", "memory": "memory"}
PUBLISHER = "vendor"
SIZES: Mapping[str, str] = {"chips": "sockets", "cores": "cores"}
_APART = 1.2  # rate scores of one system that differ by more belong to different configurations
_LIST = ("benchmark", "system", "base result")
_JOIN = ("system", "base speed result", "base rate result")
_RATE1 = ("cpu", "suite", "est_base_score")
_SUITE = re.compile(r"C(INT|FP)(20[0-9]{2})(rate|speed)?", re.IGNORECASE)
_RATE1_SUITE = re.compile(r"(int|fp)(20[0-9]{2})_rate-?1")
_YEARS = ("2017", "2026")
_MONTHS = "JanFebMarAprMayJunJulAugSepOctNovDec"
_DATE = re.compile(r"([A-Z][a-z]{2})-(?:20)?([0-9]{2})")
_REPORT = re.compile(r"SPEC\W{0,4}(?:\(R\))?\W{0,4}CPU|SPEC(?:rate|speed)|[5-8][0-9]{2}\.[a-z][a-z0-9]{1,20}_[rs]\b")
_HEADLINES = ("base_score", "base_ratio", "peak_score", "peak_ratio")  # peak scores have separate headlines
# The floating-point benchmarks of CPU 2017 and 2026.
_FLOATING = re.compile(
    r"[0-9]{3}\.(?:bwaves|cactuBSSN|namd|parest|povray|lbm|wrf|blender|cam4|pop2|imagick|nab|fotonik3d|roms|cactus|palm"
    r"|astcenc|ocio|gmsh|flightdm|femflow|nest|marian|pot3d|sph_exa|tealeaf|cloverleaf|neutron)_[rs]"
    r"|SPEC(?:rate|speed)20[0-9]{2}_fp\w{0,20}"
)
_SPEED = re.compile(r"^SPECspeed|_s$| 1-copy\b")  # cases that run one job at a time
_FACTS = {  # facts about the machine in a report, in CSV or text
    "vendor": re.compile(r'^"?Hardware Vendor:?"?,"?([^"\n]+)', re.MULTILINE),
    "system": re.compile(r'^"?Hardware Model:?"?,"?([^"\n]+)', re.MULTILINE),
    "processor": re.compile(r'^ *"?CPU Name:?"?[,: ]\s*"?([^"\n]+)', re.MULTILINE),
    "enabled": re.compile(r'^ *"?Enabled:?"?[,: ]\s*"?([^"\n]+)', re.MULTILINE),
    "tested": re.compile(r'^"?Date tested:"?,"?([^"\n]+)|Test date:\s*(\S+)', re.MULTILINE),
}
_ENABLED = re.compile(r"([0-9]+) cores?, ([0-9]+) chips?(?:, ([0-9]+) threads?/core)?")


# In February 2024, SPEC added this notice to more than 2,000 results of CPU 2017's integer suites. They used Intel's
# compilers of 2022 and 2023. Reports show it under "Compiler Notes"; lists do not.
_NOTICE = re.compile(r"SPEC has ruled that the compiler used for this result", re.IGNORECASE)
_NOTICED_SUITES = ("SPECrate2017_int", "SPECspeed2017_int")
_NOTICED_DATES = ("2022-01", "2024-02")
_INTEL = re.compile(r"\b(?:Intel|Xeon)\b", re.IGNORECASE)
_MARKED = re.compile(r"^(SPEC(?:rate|speed))")
_TUNES = {"base_score": "base", "peak_score": "peak"}


def credit(
    machines: Sequence[Mapping[str, str]], figures: Sequence[tuple[str, str]], retrieved: str
) -> Iterator[Message]:
    """Yield the notices that SPEC's fair use rules require beside published results.

    The notices name metrics, source, date of retrieval and derived values, and include SPEC's own notices on results.
    ``machines``: the labels of each machine; ``figures``: case and metric of each benchmark; ``retrieved``: a date.
    """
    named = sorted({_official(case, metric) for case, metric in figures if metric in _TUNES and _MARKED.match(case)})
    if named:
        yield message(
            "{names}: published results from www.spec.org, retrieved {date}. SPEC®, SPECrate® and SPECspeed® are "
            "registered trademarks of the Standard Performance Evaluation Corporation. Ratios and means over vendors "
            "are derived from these results by the user.",
            names=joined(named),
            date=retrieved,
        )
    if noticed := [_system(machine) for machine in machines if machine.get("notice")]:
        yield message(
            "SPEC's notice: the compiler used for {results} ({systems}) improves 523.xalancbmk_r and 623.xalancbmk_s "
            "by knowledge of their code and data. SPEC keeps such results for historical reference only.",
            results=count(len(noticed), "result"),
            systems=some(noticed, 3),
        )
    if any(case in _NOTICED_SUITES for case, _ in figures) and (
        open_ := list(dict.fromkeys(_system(machine) for machine in machines if _open(machine)))
    ):
        yield message(
            "SPEC's lists omit its compiler notice on Intel results of 2022 to February 2024: look up {n} "
            "({systems}) at www.spec.org.",
            n=count(len(open_), "system"),
            systems=some(open_, 3),
        )


def _system(labels: Mapping[str, str]) -> str:
    return labels.get("system", "") or labels.get("processor", "")


def _open(labels: Mapping[str, str]) -> bool:
    """Return whether a result from a list may have a compiler notice."""
    first, last = _NOTICED_DATES
    return first <= labels.get("published", "") <= last and bool(_INTEL.search(labels.get("processor", "")))


def _official(case: str, metric: str) -> str:
    """Return the official metric name, for example ``SPECrate®2017_int_base`` for SPECrate2017_int and base_score."""
    return f"{_MARKED.sub(chr(92) + '1®', case)}_{_TUNES[metric]}"


@dataclass(frozen=True, slots=True)
class _Score:
    """One published score: its suite, build, cell and place in the file."""

    suite: str  # SPECrate2017_int
    tune: str
    cell: object
    place: str


def read(raw: bytes, name: str = "") -> Table:
    """Return the scores in ``raw``. Raise FleetmarkError if it is not one of SPEC's tables.

    The file's ``name`` decides whether a join is integer or floating point, and names an unnamed machine.
    """
    raw = unpacked(raw)
    text = decode(raw[: 1 << 20])
    if not raw.startswith(b"PAR1") and _REPORT.search(text) and not _is_list(text):
        return _report(unpacked(raw, parsers.MAX_BYTES), name)
    source = records(raw)
    columns = {c.strip().lower(): c for c in source.columns}
    collector = Collector()
    if not {*_JOIN} - {*columns}:
        _join(collector, source, columns, name)
    elif not {*_LIST} - {*columns}:
        _list(collector, source, columns)
    elif not {*_RATE1} - {*columns}:
        _rate1(collector, source, columns)
    else:
        raise FleetmarkError(_no_table(source, columns))
    return collector.table(len(source.rows))


def _is_list(text: str) -> bool:
    """Return whether the first line is a list's header; a report may contain such words further down."""
    top = next((line for line in text.split("\n") if line.strip()), "").lower()
    return all(word in top for word in ("system", "base")) or all(word in top for word in _RATE1) or top[:1] in "[{"


def _no_table(source: Records, columns: Mapping[str, str]) -> str:
    kinds = {"list": _LIST, "join of speed and rate": _JOIN, "list of estimated one-copy scores": _RATE1}
    missing = {kind: [c for c in expected if c not in columns] for kind, expected in kinds.items()}
    near = min(kinds, key=lambda kind: len(missing[kind]))
    if len(missing[near]) == 1:
        return f"a {near} of SPEC's without the column {missing[near][0]}; add it to {some(source.columns)}"
    expected = "; ".join(f"{kind} ({', '.join(names)})" for kind, names in kinds.items())
    return f"not a table of SPEC's; use a {expected}, or a result's own report; this file has {some(source.columns)}"


def _cell(cells: Cells, columns: Mapping[str, str], name: str) -> object:
    return cells.get(columns.get(name, name))


def _machine(cells: Cells, columns: Mapping[str, str]) -> dict[str, str]:
    """Return the labels of a published system."""
    names = {
        "vendor": "hardware vendor",
        "system": "system",
        "processor": "processor",
        "cores": "# cores",
        "chips": "# chips",
        "threads_per_core": "# enabled threads per core",
        "memory": "memory",
        "generation": "generation",
        "published": "published",
    }
    labels = {label: words(_cell(cells, columns, name)) for label, name in names.items()}
    labels["published"] = _date(labels["published"])
    return labels


def _date(text: str) -> str:
    """Return ``May-25`` and ``May-2025`` as ``2025-05``, which sorts and can be selected by year."""
    match = _DATE.fullmatch(text)
    return f"20{match[2]}-{_MONTHS.index(match[1]) // 3 + 1:02}" if match and match[1] in _MONTHS else text


def _named(labels: Mapping[str, str]) -> str:
    """Return a system's name: vendor, model and size."""
    head = f"{labels['vendor']}/{labels['system']}".strip("/") if labels["system"] else labels["processor"]
    size = [f"{n} {noun}{'s' * (n != '1')}" for noun in ("core", "chip") if (n := labels[f"{noun}s"])]
    return " ".join(filter(None, [head, "/".join(size)])) if head else ""


def _suite(name: str) -> str:
    """Return ``CINT2017rate`` as the name of its score without base or peak."""
    match = _SUITE.fullmatch(name)
    if not match or match[2] not in _YEARS:
        return ""
    return f"SPEC{(match[3] or 'speed').lower()}{match[2]}_{match[1].lower()}"


def _about(case: str, metric: str) -> tuple[str, Kind]:
    """Return class and kind of a suite's score, or of one benchmark.

    Rate is the throughput of a machine. Speed, a time, and a rate of one copy are the speed of a single job. Peak has
    separate classes from base.
    """
    name = "cpu-fp" if _FLOATING.fullmatch(case.partition(" ")[0]) else "cpu-int"
    tune = PEAK if metric.startswith("peak_") else ""
    if _SPEED.search(case) or metric.endswith("_time"):
        return f"{name}{SPEED}{tune}", Kind.RESPONSIVENESS
    return f"{name}{tune}", Kind.CAPACITY


def _list(collector: Collector, source: Records, columns: Mapping[str, str]) -> None:
    seen = set()
    for place, cells in source.rows:
        labels = _machine(cells, columns)
        name = words(_cell(cells, columns, "benchmark"))
        suite = _suite(name)
        if not suite:
            raise FleetmarkError(f"{place}: {name!r} is not a suite of SPEC CPU 2017 or 2026, such as CINT2017rate")
        texts = tuple(words(v) for c, v in cells.items() if c)
        if texts in seen:
            collector.leave("the same row again")
            continue
        seen.add(texts)
        scores = [
            _Score(suite, tune, _cell(cells, columns, f"{tune} result"), place)
            for tune in ("base", "peak")
            if f"{tune} result" in columns
        ]
        _add(collector, labels, scores)


def _join(collector: Collector, source: Records, columns: Mapping[str, str], name: str) -> None:
    """Add speed and rate results from a join of each system; every result of either list is used once."""
    kind = re.search(r"(?:^|[^a-z])c?(int|fp)(?=[^a-z]|$)", name.lower())
    if not kind:
        raise FleetmarkError(
            "a join of speed and rate scores does not name its suite; put int or fp into the file's name "
            "(cpu2017_int.csv)"
        )
    year = "2026" if "2026" in name else "2017"
    speeds: dict[tuple[str, ...], tuple[dict[str, str], list[_Score]]] = {}
    rates: dict[str, tuple[dict[str, str], dict[tuple[str, str], list[_Score]]]] = {}
    sizes: dict[str, set[str]] = {}  # by system that occurs several times in the join
    for place, cells in source.rows:
        labels = _machine(cells, columns)
        scores = {
            mode: [
                _Score(f"SPEC{mode}{year}_{kind[1]}", tune, _cell(cells, columns, f"{tune} {mode} result"), place)
                for tune in ("base", "peak")
            ]
            for mode in ("speed", "rate")
        }
        values = {mode: (words(base.cell), words(peak.cell)) for mode, (base, peak) in scores.items()}
        speed = (*labels.values(), *values["speed"])
        system = f"{labels['vendor']}/{labels['system']}"
        machine = _named(labels)
        sizes.setdefault(system, set()).add(machine)
        repeated = speed in speeds, machine in rates and values["rate"] in rates[machine][1]
        if all(repeated):
            collector.leave("both results are in earlier rows")
        speeds.setdefault(speed, (labels, scores["speed"]))
        rates.setdefault(machine, (labels, {}))[1].setdefault(values["rate"], scores["rate"])
    for labels, each in speeds.values():
        _add(collector, labels, each)
    for labels, several in rates.values():
        base = [value for cells in several.values() if (value := figure(cells[0].cell)[0])]
        mixed = len(sizes[f"{labels['vendor']}/{labels['system']}"]) > 1
        if mixed or (base and max(base) > _APART * min(base)):
            collector.leave(
                "rate scores may have another number of chips, because rows are joined by name", len(several)
            )
            continue
        for each in several.values():
            _add(collector, labels, each)


def _add(collector: Collector, labels: Mapping[str, str], scores: list[_Score]) -> None:
    """Add the scores of one result of a published system."""
    for score in scores:
        value, reason = figure(score.cell)
        if reason:
            collector.leave("peak was not run" if score.tune == "peak" else f"{score.suite} base: {reason}")
            continue
        metric = f"{score.tune}_score"
        workload = next(f"spec_cpu{year}" for year in _YEARS if year in score.suite)
        row = Row(
            "",
            Measurement(workload, score.suite, metric, value, "1", better=Better.HIGHER),
            *_about(score.suite, metric),
            score.place,
            headline=metric in _HEADLINES,
        )
        collector.add(_named(labels), {"processor": labels["processor"]}, {**labels, "suite": score.suite}, row)


def _rate1(collector: Collector, source: Records, columns: Mapping[str, str]) -> None:
    seen = set()
    for place, cells in source.rows:
        texts = {name: words(_cell(cells, columns, name)) for name in (*_RATE1, "distro", "flags", "run")}
        match = _RATE1_SUITE.fullmatch(texts["suite"].lower())
        if not match or match[2] not in _YEARS:
            raise FleetmarkError(f"{place}: {texts['suite']!r} is not a suite run with one copy, such as int2017_rate1")
        if not texts["cpu"]:
            raise FleetmarkError(f"{place}: no cpu; every score needs the name of its CPU")
        value, reason = figure(_cell(cells, columns, "est_base_score"))
        if reason:
            collector.leave(reason)
            continue
        if tuple(texts.values()) in seen:
            collector.leave("the same row again")
            continue
        seen.add(tuple(texts.values()))
        suite = f"SPECrate{match[2]}_{match[1]}"
        built = [f"-{f}" for f in texts["flags"].split("-") if f] + [texts["distro"]]
        case = " ".join([suite, "1-copy", *filter(None, built)])
        name = texts["cpu"].replace("_", " ")
        labels = {"processor": name, "suite": suite, "copies": "1"}
        m = Measurement(f"spec_cpu{match[2]}", case, "base_score", value, "1", better=Better.HIGHER)
        row = Row(name, m, *_about(case, "base_score"), place, standing=Standing.ESTIMATE)
        collector.add(name, {}, labels, row)


def _report(raw: bytes, name: str) -> Table:
    """Read one result's own report with the parser of its suite."""
    from fleetmark.parsers import spec_cpu2017, spec_cpu2026  # a comparison needs only this module's names

    parsed: Parsed | None = None
    errors = []
    for module in (spec_cpu2017, spec_cpu2026):
        try:
            parsed = module.parse(raw)
            break
        except ParseError as error:
            errors.append(str(error))
    if parsed is None:
        raise FleetmarkError(f"looks like a report of SPEC CPU, but cannot be read: {errors[0]}")
    text = decode(raw)
    labels = _facts(text) | ({"notice": "compiler"} if _NOTICE.search(text) else {})
    machine = _named(labels) or name.partition(".")[0] or "unnamed"
    collector = Collector()
    collector.notes += parsed.notes
    if "notice" in labels:
        collector.notes.append("SPEC's compiler notice applies: the result is for historical reference only")
    if parsed.invalid:
        collector.notes.append(f"invalid: {parsed.invalid}")
    suites = [m.case for m in parsed.measurements if m.metric in ("base_score", "peak_score")]
    for m in parsed.measurements:
        wrong = parsed.invalid or (_off(m, parsed) if m.metric.endswith("_score") else "")
        row = Row(
            machine,
            m,
            *_about(m.case, m.metric),
            name,
            headline=m.metric in _HEADLINES,
            standing=parsed.standing,
            version=parsed.version or "",
            invalid=wrong or "",
        )
        collector.add(machine, {}, {**labels, "suite": suites}, row)
    return collector.table(len(parsed.measurements))


def _off(score: Measurement, parsed: Parsed) -> str:
    """Return why a printed score is not the geometric mean of its rows, beyond rounding to three digits."""
    tune = score.metric.removesuffix("_score")
    ending = "_r" if "rate" in score.case else "_s"
    rows = [
        m.value for m in parsed.measurements if m.metric == f"{tune}_ratio" and m.case.endswith(ending) and not m.labels
    ]
    if not rows:
        return ""
    mean = math.exp(math.fsum(map(math.log, rows)) / len(rows))
    slack = _rounding(score.value) + math.fsum(map(_rounding, rows)) / len(rows)
    if abs(math.log(score.value / mean)) <= slack:
        return ""
    return f"{score.case} {tune} is printed as {score.value:.6g}, and its {len(rows)} rows give {mean:.4g}"


def _rounding(value: float) -> float:
    """Return half a unit of the third digit, relative to ``value``."""
    return float(0.5 * 10.0 ** (math.floor(math.log10(value)) - 2) / value)


def _facts(text: str) -> dict[str, str]:
    facts = {}
    for label, pattern in _FACTS.items():
        match = pattern.search(text)
        facts[label] = words(next(filter(None, match.groups()), "")) if match else ""
    enabled = _ENABLED.search(facts.pop("enabled"))
    facts["cores"], facts["chips"], facts["threads_per_core"] = (
        (enabled[1], enabled[2], enabled[3] or "") if enabled else ("", "", "")
    )
    facts["tested"] = _date(facts["tested"])
    if not facts["system"]:
        facts |= _title(text)
    return facts


def _title(text: str) -> dict[str, str]:
    """Return vendor and system of a text report: the centred lines between its title and its licence."""
    lines = text.split("\n")[:15]
    start = next((n for n, line in enumerate(lines) if re.search(r"SPEC.{0,6} ?CPU.{0,40} Result", line)), None)
    if start is None:
        return {}
    named = []
    for line in lines[start + 1 :]:
        if not line.strip() or ":" in line:
            break
        named.append(words(line))
    return {"vendor": named[0] if named else "", "system": " ".join(named[1:])}
