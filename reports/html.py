"""A campaign's results as one self-contained HTML page."""

from __future__ import annotations

import base64
import hashlib
import shlex
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jinja2
import pandas as pd

from fleetmark.model import Status
from fleetmark.results import HostInfo, Results
from planner import summary
from reports import charts
from reports import format as fmt
from reports.figures import figures
from reports.hosts import side_by_side
from reports.problems import WORST_FIRST, problems, resume_command
from reports.view import Key, View, by_metric, footnotes, groups, headlines, legend, spread, view

ACROSS = 8  # hosts up to which they stand as columns beside each other
ROWS = 3000  # figures up to which every host has its own row among all metrics
FOLD = 60  # rows above which a workload's cases are folded one by one
LISTED = 400  # runs that did not pass and are listed one by one


def render(results: Results) -> str:
    """The page: self-contained, nothing is fetched; the caller writes it where it shall be, in UTF-8."""
    seen = view(results)
    campaign = results.campaign
    counts = summary.status_counts(results.outcomes)
    of = seen.merged if len(seen.hosts) == 1 else seen.generational
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
        legend=legend({*headlines(seen.merged)["interval"], *headlines(of)["interval"]}),
        footnotes=footnotes(seen.stats),
        legend_all=legend({*(seen.stats if len(seen.stats) <= ROWS else seen.generational)["interval"]}),
        headlines=[_lines(seen, *found) for found in by_metric(headlines(of))],
        across=_across(seen) if 1 < len(seen.hosts) <= ACROSS else [],
        down=_down(seen) if len(seen.hosts) > ACROSS else None,
        charts=figures(seen),
        colours=charts.colour_of(seen.generations) if len(seen.generations) > 1 else {},
        matrix_left_out=len(seen.hosts) > charts.MANY_CELLS and bool((seen.merged["over"] == "pairs").any()),
        metrics=list(_metrics(seen)),
        per_host=len(seen.stats) <= ROWS,
        hosts=side_by_side(seen.hosts),
        failed=_failed(results),
        listed=LISTED,
        mixed=_mixed(results.measurements),
        command_line=shlex.join(campaign.command),
        generation_sizes=Counter(h.generation or "" for h in seen.hosts),
        script=_SCRIPT,
        script_hash=base64.b64encode(hashlib.sha256(_SCRIPT.encode()).digest()).decode(),
    )


def _title(view: View) -> str:
    who = fmt.clean(view.hosts[0].name) if len(view.hosts) == 1 else fmt.count(len(view.hosts), "host")
    # A suite of the user's own goes by its file.
    return f"{who}, {fmt.clean(Path(view.results.campaign.suite).stem)} suite"


@dataclass(frozen=True, slots=True)
class _Figure:
    """A median as it is printed; ``value`` (base unit) is what a column sorts by. ``why`` stands for an absent one."""

    median: str = ""
    unit: str = ""
    spread: str = ""
    cv: str = ""
    n: int = 0
    value: float = 0.0
    why: str = ""


@dataclass(frozen=True, slots=True)
class _Line:
    """A metric's figure of one host or generation (``who``); ``low`` and ``high``: the hosts at a generation's ends."""

    workload: str
    case: str
    point: str
    better: str
    who: str
    figure: _Figure
    low: tuple[str, str] | None = None  # host, figure
    high: tuple[str, str] | None = None


def _lines(view: View, key: Key, rows: pd.DataFrame, shown: fmt.Shown) -> list[_Line]:
    """A metric's rows, of hosts or of generations."""
    generational = "generation" in rows
    point = fmt.point(key[2], key[3], key[4], key[5])
    return [
        _Line(
            *(key[0], key[1], point, r["better"]),
            view.title_of(r["generation"]) if generational else r["host"],
            _figure(r, shown),
            (r["low_host"], shown.number(r["low"])) if generational else None,
            (r["high_host"], shown.number(r["high"])) if generational else None,
        )
        for r in rows.to_dict("records")
    ]


def _figure(row: Mapping[Any, Any], shown: fmt.Shown) -> _Figure:
    median = row["median"]
    extent = spread(shown, row["lo"], row["hi"], row["interval"])
    return _Figure(shown.number(median), shown.unit, extent, fmt.percent(row["cv"]), row["n"], median)


def _by_host(rows: pd.DataFrame, shown: fmt.Shown) -> dict[str, _Figure]:
    return {r["host"]: _figure(r, shown) for r in rows.to_dict("records")}


def _across(view: View) -> list[tuple[_Line, list[_Figure]]]:
    """Headlines with the hosts as columns, a scale for each row."""
    found = []
    for key, rows, shown in by_metric(headlines(view.merged)):
        of = _by_host(rows, shown)
        cells = [of.get(h.name) or _Figure(why=view.why_absent(h.name, key)) for h in view.hosts]
        found.append((_lines(view, key, rows, shown)[0], cells))
    return found


def _down(view: View) -> tuple[list[_Line], list[tuple[HostInfo, list[_Figure]]]]:
    """Headlines with the hosts as rows, a scale for each column: the columns, and the rows."""
    columns, found = [], []
    for key, rows, shown in by_metric(headlines(view.merged)):
        columns.append(_lines(view, key, rows, shown)[0])
        found.append((key, _by_host(rows, shown)))
    return columns, [
        (h, [of.get(h.name) or _Figure(why=view.why_absent(h.name, key)) for key, of in found]) for h in view.hosts
    ]


def _metrics(view: View) -> Iterator[tuple[str, int, list[tuple[str, list[_Line]]]]]:
    """All metrics: workload, how many rows, its tables (title, rows); a single one, without title, when it is short."""
    for (workload,), frame in groups(view.stats if len(view.stats) <= ROWS else view.generational, ["workload"]):
        tables: dict[str, list[_Line]] = defaultdict(list)
        for key, rows, shown in by_metric(frame):
            tables[key[1] if len(frame) > FOLD else ""] += _lines(view, key, rows, shown)
        yield workload, len(frame), list(tables.items())


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


def _mixed(measurements: pd.DataFrame) -> list[tuple[str, str, list[str]]]:
    """Workloads whose tool came in several versions, which do not compare: workload, version, the hosts with it."""
    several = measurements.groupby("workload")["tool_version"].transform("nunique") > 1
    return [
        (workload, version or "(not told)", sorted(rows["host"].unique(), key=fmt.natural))
        for (workload, version), rows in groups(measurements[several], ["workload", "tool_version"])
    ]


_HERE = Path(__file__).parent / "templates"
_SCRIPT = (_HERE / "summary.js").read_text("utf-8")  # alone allowed to run in the page, by its hash
_TEMPLATES = jinja2.Environment(
    loader=jinja2.FileSystemLoader(_HERE),
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
