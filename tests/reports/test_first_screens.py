"""Test the first screen of extreme campaigns and plans: long names, one or very many figures, and many hosts."""

from __future__ import annotations

import io
import shlex
from collections.abc import Callable, Iterable
from dataclasses import fields, is_dataclass, replace
from typing import Any

import pandas as pd
import pytest
from rich.cells import cell_len
from rich.console import Console, RenderableType

from fleetmark.planner.capacity.analysis.results import Binding
from fleetmark.planner.capacity.analysis.tornado import Effect
from fleetmark.planner.capacity.answer import Answer
from fleetmark.record.results import HostInfo, Results
from fleetmark.record.values import Values
from fleetmark.reports.campaign.against import against
from fleetmark.reports.campaign.deviation import Deviations
from fleetmark.reports.campaign.document import document
from fleetmark.reports.campaign.front import MOST_HOSTS, MOST_NEXT, MOST_ODD, anomalies, machines, next_steps
from fleetmark.reports.campaign.headlines import FIRST_BENCHMARKS, FIRST_SIDES, first_table
from fleetmark.reports.campaign.problems import problems
from fleetmark.reports.campaign.view import view
from fleetmark.reports.formats import terminal
from fleetmark.reports.kit.document import Command, Note
from fleetmark.reports.kit.language import Language
from fleetmark.reports.plan.front import LIMITS, NAMED, RISKS, counted
from fleetmark.reports.plan.front import front as plan_front
from fleetmark.reports.plan.model import Order
from fleetmark.reports.plan.model import view as plan_view
from tests.reports import plan_sample, sample

LONG = "a-name-of-eighty-characters-" + "x" * 52
WIDTHS = (80, 100, 140)


def printed(parts: Iterable[RenderableType], width: int) -> list[str]:
    out = io.StringIO()
    console = Console(file=out, width=width)
    for part in parts:
        console.print(part)
    return [line.rstrip() for line in out.getvalue().splitlines()]


# --- campaigns -------------------------------------------------------------------------------------------------------


def long_names() -> Results:
    names = {f"h{n}": f"{n}-{LONG}"[:80] for n in range(4)}
    results = sample.tiny(
        {h: [1.0, 2.0, 3.0] for h in names}, generations=dict.fromkeys(names, LONG) | {"h3": LONG[::-1]}
    )
    return sample.renamed(results, names)


def many_benchmarks(number: int = 400) -> Results:
    results = sample.tiny({"h1": [1.0, 1.01, 1.0]})
    rows = [results.values.frame.assign(case=f"case-{n}") for n in range(number)]
    return replace(results, values=Values(pd.concat(rows, ignore_index=True)))


def many_hosts(number: int = 2000) -> Results:
    values = {f"n{n:04}": [1e9 * (0.8 if n == 7 else 1)] for n in range(number)}
    return sample.tiny(values, generations=dict.fromkeys(values, "new"))


def generations(number: int = 12) -> Results:
    values = {f"n{n}": [1e9 * (n + 1)] for n in range(number)}
    return sample.tiny(values, generations={h: f"gen{n}" for n, h in enumerate(values)})


CAMPAIGNS: dict[str, Callable[[], Results]] = {
    "names of 80 characters": long_names,
    "12 generations": generations,
    "one benchmark": lambda: sample.tiny({"h1": [1.0, 2.0]}),
    "400 benchmarks": many_benchmarks,
    "2,000 hosts": many_hosts,
    "a factor of 1e6 between hosts": lambda: sample.tiny({"h1": [1.0], "h2": [1e6], "h3": [1.0]}),
    "no figure": lambda: sample.tiny({}),
}


@pytest.mark.parametrize("name", ["12 generations", "one benchmark"])
def test_what_to_do_with_figures_names_their_record(name: str) -> None:
    results = CAMPAIGNS[name]()
    moved = replace(results, campaign=replace(results.campaign, root="/the results"))
    commands = [line for _, line in next_steps(view(moved), problems(moved))]
    assert shlex.split(commands[-1])[:2] == ["fleetmark", {"12 generations": "compare"}.get(name, "reference")]
    assert shlex.split(commands[-1])[-2:] == ["--results", "/the results"]


@pytest.mark.parametrize("name", CAMPAIGNS)
def test_a_campaigns_first_screen_fits(name: str) -> None:
    results = CAMPAIGNS[name]()
    seen, report = view(results), document(results)
    first, odd = first_table(seen, against(seen)), anomalies(seen, Deviations(seen))
    assert len(list(machines(seen))) <= FIRST_SIDES + 1
    assert sum(column.key.startswith("side") for column in first.columns) <= FIRST_SIDES
    assert len(first.rows) <= FIRST_BENCHMARKS and len(odd) <= MOST_ODD + 1
    assert len(next_steps(seen, problems(results))) <= MOST_NEXT
    assert max(map(len, odd), default=0) < 400
    for width in WIDTHS:
        lines = printed(terminal.render(report, Language()), width)
        tables = lines[: next((n for n, line in enumerate(lines) if line.startswith("Value:")), 0)]
        assert max(map(cell_len, tables), default=0) <= width
        squeezed = "".join("".join(tables).split())
        for cell in (cell for row in first.rows for cell in row[2:]):
            assert cell.value is None or "".join(cell.text.split()) in squeezed, cell


def test_a_slow_host_of_two_thousand_is_named_first() -> None:
    seen = view(many_hosts())
    odd = anomalies(seen, Deviations(seen))
    assert odd[0].startswith("n0007 is 20% worse than the median of new")
    assert len(odd) <= MOST_HOSTS + 1


def test_figures_without_a_journal_are_not_called_nothing() -> None:
    results = sample.tiny({"h1": [1.0]})
    answer = document(replace(results, outcomes=results.outcomes.iloc[:0])).answer
    assert "The journal lists no runs" in answer and "Nothing" not in answer


def test_a_campaigns_first_screen_says_what_was_not_measured() -> None:
    (state, *_) = [s for s in document(sample.one()).sections if s.key == "state"]
    texts = [e.text for e in state.exhibits if isinstance(e, Note)]
    assert texts[-1] == (
        "Not measured: integer, floating point, network, applications. "
        "No verdict: a single host has no peers, and no reference is saved for its kind. "
        "No cost: no host has a price. Add the labels price and currency to the inventory."
    )


def test_a_campaigns_first_screen_says_why_runs_did_not_pass_and_what_to_type() -> None:
    sections = document(sample.many(24)).sections
    (state,) = [s for s in sections if s.key == "state" and "html" in s.only]
    (reasons,) = [e for e in state.exhibits if isinstance(e, Note) and e.link == "status-of-runs"]
    assert reasons.text == (
        "failed: fio on n0011 (fio exited with status 1: no space left on device); "
        "lost: iperf3 on n0005 (the link went away and no result came back within 600 s), "
        "4 workloads on n0023 (unreachable); "
        "invalid: stream on n0002, n0022 (1.02 foreign cores were busy, 0.05 allowed); "
        "skipped: lmbench on n0003 (needs lmbench)"
    )
    following = next(s for s in sections if s.key == "next")
    commands = [e.command for e in following.exhibits if isinstance(e, Command)]
    assert "ping -c 3 n0023" in commands
    assert commands[-1] == "fleetmark run --resume results/2026-03-04T0912-0003 --retry-failed"


def test_one_hosts_first_screen_says_how_sure_it_is_and_how_to_measure_the_rest() -> None:
    report = document(sample.one())
    (odd,) = [s for s in report.sections if s.key == "odd"]
    assert [e.text for e in odd.exhibits if isinstance(e, Note)] == [
        "Nothing: figures vary by at most 4.7% (CV, 6 repeats), and nothing disturbed the runs. "
        "Other hosts of this kind may differ."
    ]
    following = next(s for s in report.sections if s.key == "next")
    first = following.exhibits[0]
    assert isinstance(first, Command) and first.text == "Measure what is missing"
    words = shlex.split(first.command)
    assert words[:3] == ["fleetmark", "run", "--suite"] and words[3].split(",") == [
        "spec_cpu2017",
        "hpcc",
        "iperf3",
        "openssl_speed",
    ]


def test_single_runs_are_not_said_to_agree() -> None:
    report = document(sample.tiny({"h1": [1.0]}))
    (odd,) = [s for s in report.sections if s.key == "odd"]
    assert "too few repeats" in "".join(e.text for e in odd.exhibits if isinstance(e, Note))


# --- plans -----------------------------------------------------------------------------------------------------------


def renamed(thing: Any, names: dict[str, str]) -> Any:
    """Return a copy with every text in ``names`` replaced, in fields, keys, lists and tables."""
    if isinstance(thing, str):
        return names.get(thing, thing)
    if isinstance(thing, pd.DataFrame):
        return thing.replace(names)
    if isinstance(thing, dict):
        return {renamed(k, names): renamed(v, names) for k, v in thing.items()}
    if isinstance(thing, tuple | list | frozenset):
        return type(thing)(renamed(x, names) for x in thing)
    if is_dataclass(thing) and not isinstance(thing, type):
        return replace(thing, **{f.name: renamed(getattr(thing, f.name), names) for f in fields(thing) if f.init})
    return thing


def answer(names: dict[str, str]) -> Answer:
    q = plan_sample.question()
    bindings = [Binding(f"power at {names.get('ams', 'ams')}", "W", 520.5, 1.234)] * 40
    effects = [
        Effect(f"demand of {names.get('web', 'web')}", 0.8, 1.25, True, -2e5, at_high=4e5 + n) for n in range(40)
    ]
    return Answer(renamed(q, names), renamed(plan_sample.plan(q), names), bindings=bindings, tornado=effects)


@pytest.mark.parametrize("names", [{}, {n: f"{n}-{LONG}"[:80] for n in ("old", "new", "gpu", "web", "batch", "ams")}])
def test_a_plans_first_screen_fits(names: dict[str, str]) -> None:
    planned = answer(names)
    first = plan_front(plan_view(planned))
    assert len(first.risks) == RISKS and len(first.limits) <= LIMITS
    for name in ("new", "old"):
        assert names.get(name, name) in first.answer
    for width in WIDTHS:
        lines = printed(terminal.render(plan_sample.document(planned), Language()), width)
        top = lines[: lines.index("Purchases")]
        assert max(map(cell_len, top)) <= width and len(top) <= (48 if names else 24)
        assert "…" not in "".join(top)


def test_purchases_of_very_many_kinds_are_one_sentence() -> None:
    orders = [Order(0, 1, "ams", f"sku{n}", 10, money=1.0) for n in range(400)]
    text = counted(orders)
    assert text.startswith("10 sku0, 10 sku1") and text.endswith(
        f"{10 * (400 - NAMED):,} of {400 - NAMED} further SKUs"
    )


def test_a_host_without_facts_is_still_a_machine() -> None:
    results = sample.tiny({"h1": [1.0]})
    hosts = (HostInfo(name="h1"), HostInfo(name="h2", reachable=False))
    assert list(machines(view(replace(results, hosts=hosts)))) == ["h1: no facts", "h2: no answer"]


def test_the_rate_of_a_port_is_written_as_its_maker_does() -> None:
    lines = list(machines(view(sample.six())))
    assert any("25 Gbit/s network" in line for line in lines) and any("100 Gbit/s network" in line for line in lines)


def test_the_command_for_what_is_missing_keeps_no_seed() -> None:
    results = sample.one()
    seeded = replace(results.campaign, command=["fleetmark", "run", "--seed", "7", "--suite", "quick"])
    (line,) = {
        e.command
        for s in document(replace(results, campaign=seeded)).sections
        for e in s.exhibits
        if isinstance(e, Command) and "missing" in e.text
    }
    assert line.startswith("fleetmark run --suite spec_cpu2017,")


def test_a_plan_says_how_many_worth_values_were_not_measured() -> None:
    details = plan_sample.document(answer({})).details
    assert any(text.endswith(" worth values not measured") for text in details)
