"""A campaign's results as one self-contained HTML page."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jinja2
import pandas as pd

from fleetmark.model import Status
from fleetmark.results import Results
from planner import summary
from reports import charts
from reports import format as fmt
from reports.figures import figures
from reports.hosts import side_by_side
from reports.problems import WORST_FIRST, problems, resume_command
from reports.view import Key, View, by_metric, groups, headlines, legend, spread, view

ACROSS = 8  # hosts up to which they stand as columns beside each other
ROWS = 3000  # figures up to which every host has its own row among all metrics
FOLD = 60  # rows above which a workload's cases are folded one by one
LISTED = 400  # runs that did not pass and are listed one by one


def render(results: Results) -> str:
    """The page: self-contained, nothing is fetched; the caller writes it where it shall be, in UTF-8."""
    seen = view(results)
    campaign = results.campaign
    counts = summary.status_counts(results.outcomes)
    shown = headlines(seen.merged)
    return _TEMPLATES.get_template("summary.html.j2").render(
        view=seen,
        campaign=campaign,
        title=_title(seen),
        total=sum(counts.values()),
        counts=[(str(s), counts[s]) for s in (Status.PASSED, *WORST_FIRST)],
        problems=problems(results),
        resume=resume_command(results),
        workloads=sorted({str(w) for w in results.outcomes["workload"]}),
        coverage=_coverage(seen),
        legend=legend(sorted({*shown["interval"], *seen.generational["interval"]})),
        generational=[_Block(key, text, list(rows)) for key, text, rows in _generational(seen)],
        across=_across(seen) if len(seen.hosts) <= ACROSS else [],
        down=_Down.of(seen) if len(seen.hosts) > ACROSS else None,
        charts=figures(seen),
        colours=charts.colour_of(seen.generations) if len(seen.generations) > 1 else {},
        matrix_left_out=len(seen.hosts) > charts.MANY_CELLS and bool((seen.merged["over"] == "pairs").any()),
        metrics=list(_metrics(seen)),
        per_host=len(seen.stats) <= ROWS,
        hosts=side_by_side(seen.hosts),
        failed=_failed(results),
        listed=LISTED,
        versions=_versions(results.measurements),
        command=shlex.join(campaign.command),
    )


def _title(view: View) -> str:
    suite = fmt.clean(view.results.campaign.suite)
    if len(view.hosts) == 1:
        return f"{suite} suite on {fmt.clean(view.hosts[0].name)}"
    return f"{suite} suite on {fmt.count(len(view.hosts), 'host')}"


@dataclass(frozen=True, slots=True)
class _Figure:
    """A median as it is printed; ``value`` (base unit) is what a column sorts by. ``why`` stands where there is none."""

    median: str = ""
    unit: str = ""
    spread: str = ""
    cv: str = ""
    n: int = 0
    value: float = 0.0
    why: str = ""


def _figure(row: Any, shown: fmt.Shown) -> _Figure:
    return _Figure(
        shown.number(row.median),
        shown.unit,
        spread(shown, row.lo, row.hi, row.interval),
        fmt.percent(row.cv),
        int(row.n),
        float(row.median),
    )


@dataclass(frozen=True, slots=True)
class _Block:
    """A metric and its rows."""

    key: Key
    better: str
    rows: list[Any]

    @property
    def point(self) -> str:
        return fmt.point(self.key[2], self.key[3], self.key[4])


def _generational(view: View) -> Iterator[tuple[Key, str, Iterator[tuple[str, _Figure, str, str, str, str]]]]:
    """Headlines by generation: its name, the figure, and the hosts at both ends with theirs."""
    for key, rows, shown in by_metric(headlines(view.generational)):
        yield (
            key,
            rows["better"].iloc[0],
            (
                (view.title_of(r.generation), _figure(r, shown), r.low_host, shown.number(r.low))
                + (r.high_host, shown.number(r.high))
                for r in rows.itertuples()
            ),
        )


def _across(view: View) -> list[_Block]:
    """Headlines with the hosts as columns: a scale for each row."""
    blocks = []
    for key, rows, shown in by_metric(headlines(view.merged)):
        of = {r.host: _figure(r, shown) for r in rows.itertuples()}
        cells = [of.get(h.name) or _Figure(why=view.why_absent(h.name, key)) for h in view.hosts]
        blocks.append(_Block(key, rows["better"].iloc[0], [shown.unit, cells]))
    return blocks


@dataclass(frozen=True, slots=True)
class _Down:
    """Headlines with the hosts as rows: a scale for each column."""

    columns: list[tuple[_Block, str]]  # metric, unit
    rows: list[tuple[str, str, list[_Figure]]]  # host, generation, a figure for each column

    @classmethod
    def of(cls, view: View) -> _Down:
        columns, found = [], []
        for key, rows, shown in by_metric(headlines(view.merged)):
            columns.append((_Block(key, rows["better"].iloc[0], []), shown.unit))
            found.append((key, {r.host: _figure(r, shown) for r in rows.itertuples()}))
        lines = [
            (h.name, h.generation or "", [of.get(h.name) or _Figure(why=view.why_absent(h.name, k)) for k, of in found])
            for h in view.hosts
        ]
        return cls(columns, lines)


@dataclass(frozen=True, slots=True)
class _Line:
    """One row among all metrics; ``who`` is a host or a generation, ``ends`` the hosts at both ends of a generation."""

    key: Key
    point: str
    better: str
    who: str
    figure: _Figure
    low: tuple[str, str] | None = None
    high: tuple[str, str] | None = None


def _metrics(view: View) -> Iterator[tuple[str, int, list[tuple[str, list[_Line]]]]]:
    """All metrics: workload, how many rows, and its tables (title, rows); a title is empty where one table holds all."""
    per_host = len(view.stats) <= ROWS
    for (workload,), frame in groups(view.stats if per_host else view.generational, ["workload"]):
        tables: dict[str, list[_Line]] = {}
        for key, rows, shown in by_metric(frame):
            point = fmt.point(key[2], key[3], key[4])
            for r in rows.itertuples():
                row: Any = r
                who = row.host if per_host else view.title_of(row.generation)
                ends = (
                    {} if per_host else {e: (getattr(row, f"{e}_host"), shown.number(getattr(row, e))) for e in _ENDS}
                )
                case = key[1] if len(frame) > FOLD else ""
                line = _Line(key, point, row.better, who, _figure(row, shown), **ends)
                tables.setdefault(case, []).append(line)
        yield workload, len(frame), list(tables.items())


_ENDS = ("low", "high")


def _coverage(view: View) -> list[tuple[str, list[tuple[int, int] | None]]]:
    """Hosts with anything that did not pass: for each workload (passed, all), None where nothing was planned."""
    outcomes = view.results.outcomes
    passed = (
        (outcomes["status"] == Status.PASSED).groupby([outcomes["host"], outcomes["workload"]]).agg(["sum", "size"])
    )
    table = {key: (int(ok), int(all_)) for key, ok, all_ in passed.itertuples(name=None)}
    workloads = sorted({str(w) for w in outcomes["workload"]})
    rows = [(h.name, [table.get((h.name, w)) for w in workloads]) for h in view.hosts]
    return [(name, cells) for name, cells in rows if any(c and c[0] < c[1] for c in cells)]


def _failed(results: Results) -> list[Any]:
    """Every run that did not pass, worst first."""
    outcomes = results.outcomes[results.outcomes["status"] != Status.PASSED]
    rank = outcomes["status"].map({s: i for i, s in enumerate(WORST_FIRST)})
    order = outcomes.assign(rank=rank).sort_values(["rank", "host", "workload", "case", "repeat"], kind="stable")
    return list(order.itertuples(index=False))


def _versions(measurements: pd.DataFrame) -> list[tuple[str, list[tuple[str, Sequence[str]]]]]:
    """Each workload's tool versions, each with the hosts where it was met: mixed ones do not compare."""
    found = []
    for (workload,), rows in groups(measurements, ["workload"]):
        versions = [
            (v or "not told", sorted(g["host"].unique(), key=fmt.natural)) for (v,), g in groups(rows, ["tool_version"])
        ]
        found.append((workload, versions))
    return found


_TEMPLATES = jinja2.Environment(
    loader=jinja2.FileSystemLoader(Path(__file__).parent / "templates"),
    autoescape=True,
    undefined=jinja2.StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)
_TEMPLATES.filters |= {
    "clean": fmt.clean,
    "percent": fmt.percent,
    "duration": fmt.duration,
    "moment": fmt.moment,
    "count": fmt.count,
    "better": fmt.better,
}
