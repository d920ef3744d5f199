"""Read SPEC CPU's raw results (.rsf), lines of ``spec.cpu2017.KEY: VALUE`` that all other reports are made from.

A run is ``results.500_perlbench_r.base.000.*`` with ``reported_time``, ``ratio``, ``copies``, ``threads``, ``valid``
(its status) and ``selected``. The scores are ``basemean`` and ``peakmean``, and ``name`` identifies the suite
(intrate). The other keys are the system's description, encoded configuration and flags.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field

from fleetmark.parsers.spec_cpu.model import LONGEST, Report, Run, Score, count, positive

_LINE = re.compile(r"\s{0,8}spec\.cpu(20[0-9]{2})\.([\w.]{1,120}):(?:\s(.*))?")
_RUN = re.compile(r"results\.([0-9]{3})_([A-Za-z0-9]{1,24}_[rs])\.(base|peak)\.([0-9]{3})\.([a-z_]{1,40})")
_FIGURES = {
    "reported_time": "time",
    "ratio": "ratio",
    "copies": "copies",
    "threads": "threads",
    "energy": "energy",
    "energy_ratio": "energy_ratio",
    "max_power": "max_power",
    "avg_power": "avg_power",
}
_MEANS = {
    "basemean": ("base", ""),
    "peakmean": ("peak", ""),
    "baseenergymean": ("base", "_energy"),
    "peakenergymean": ("peak", "_energy"),
}
_NAME = re.compile(r"(int|fp)(rate|speed)")
_METRIC = re.compile(r"C(INT|FP)20[0-9]{2}")
_STATUS = re.compile(r"[A-Z][A-Z?]?")


@dataclass(slots=True)
class _Raw:
    """The keys of one result of one suite, with their line numbers."""

    year: str
    line: int
    values: dict[str, tuple[str, int]] = field(default_factory=dict)

    def get(self, key: str) -> str:
        return self.values.get(key, ("", 0))[0]


def read_rsf(lines: Iterable[tuple[int, str, bool]]) -> list[Report]:
    """Return the reports in ``lines``, each with its number and whether a line end follows it."""
    raws: list[_Raw] = []
    cut: int | None = None
    for n, line, complete in lines:
        match = _LINE.fullmatch(line) if len(line) <= LONGEST else None
        if not match:
            continue
        if not complete:
            cut = n
            continue
        year, key, value = match[1], match[2], (match[3] or "").strip()
        held = raws[-1].values.get(key) if raws else None
        # A repeated key with another value begins another result: files were concatenated.
        if not raws or raws[-1].year != year or (held and held[0] != value):
            raws.append(_Raw(year, n))
        raws[-1].values.setdefault(key, (value, n))
    reports = [_report(raw) for raw in raws]
    if cut and reports:
        reports[-1].notes.append(f"line {cut}: the text ends inside this line, left out")
    return reports


def _report(raw: _Raw) -> Report:
    report = Report(kind="raw", line=raw.line, years=[(raw.year, raw.line)])
    report.version = raw.get("suitever")[:20] or None
    report.size = raw.get("size").partition(" ")[0] or None  # "refrate (ref)"
    reasons = [value for key, (value, _) in raw.values.items() if re.fullmatch(r"errors[0-9]{3}", key)]
    withdrawn = [value for key, (value, _) in raw.values.items() if re.fullmatch(r"nc[0-9]{0,3}", key) and value]
    # 2 means undescribed flags: SPEC's formatter treats it as 0 and reports this.
    report.declared = raw.get("invalid") == "0"
    report.estimate = not report.declared
    if reasons or raw.get("invalid") == "1":
        report.banner = raw.values.get("errors000", raw.values.get("invalid", ("", raw.line)))[1]
        report.reasons = reasons
    if withdrawn:
        report.banner, report.estimate = raw.line, True
        report.reasons = [*reasons, f"non-compliant: {withdrawn[0]}"]
    _runs(raw, report)
    suite = _suite(raw)
    for key, (tune, energy) in _MEANS.items():
        if suite and key in raw.values:
            printed, n = raw.values[key]
            report.scores.append(Score(case=suite + energy, tune=tune, year=raw.year, printed=printed, line=n))
    return report


def _suite(raw: _Raw) -> str | None:
    """Return the suite, such as ``SPECrate2017_int``, from the result's name, or from its metric and mode."""
    name, metric, mode = _NAME.fullmatch(raw.get("name")), _METRIC.fullmatch(raw.get("metric")), raw.get("runmode")
    if name:
        return f"SPEC{name[2]}{raw.year}_{name[1]}"
    if metric and mode in ("rate", "speed"):
        return f"SPEC{mode}{raw.year}_{metric[1].lower()}"
    return None


def _runs(raw: _Raw, report: Report) -> None:
    values_by_run: dict[tuple[str, str, int], dict[str, tuple[str, int]]] = {}
    for key, value in raw.values.items():
        if match := _RUN.fullmatch(key):
            place = (f"{match[1]}.{match[2]}", match[3], int(match[4]) + 1)
            values_by_run.setdefault(place, {})[match[5]] = value
    for (benchmark, tune, iteration), values in values_by_run.items():
        status, line = values.get("valid", ("", min(n for _, n in values.values())))
        if not _STATUS.fullmatch(status):
            report.notes.append(f"line {line}: {benchmark} {tune} iteration {iteration} has no status, left out")
            report.unreadable.append(line)
            continue
        run = Run(benchmark, tune, line, iteration, status, year=raw.year)
        run.selected = values.get("selected", ("", 0))[0] == "1"
        for key, name in _FIGURES.items():
            text = values.get(key, ("", 0))[0]
            figure = count(text) if name in ("copies", "threads") else positive(text)
            if figure is not None:
                run.figures[name] = figure
        report.runs.append(run)
