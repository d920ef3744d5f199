"""Test the first screens: anomalies of a campaign, deviations of hosts from their peers, and the summary of a plan."""

from __future__ import annotations

import math
from dataclasses import replace

import pandas as pd
import pytest

from fleetmark.base.facts import Cpu, Gpu
from fleetmark.base.measurement import Better
from fleetmark.base.text import message
from fleetmark.planner.capacity.analysis.nothing import do_nothing
from fleetmark.planner.capacity.analysis.tornado import Effect
from fleetmark.planner.capacity.answer import Answer
from fleetmark.planner.capacity.question import Cohort
from fleetmark.record.values import Values
from fleetmark.reports.campaign.against import against
from fleetmark.reports.campaign.deviation import Deviations, map_of_hosts, percent
from fleetmark.reports.campaign.document import document
from fleetmark.reports.campaign.front import anomalies, machines, status
from fleetmark.reports.campaign.headlines import FIRST_BENCHMARKS, first_table
from fleetmark.reports.campaign.versions import mixed
from fleetmark.reports.campaign.view import View, view
from fleetmark.reports.comparison.titles import class_title
from fleetmark.reports.formats import html
from fleetmark.reports.kit import format as fmt
from fleetmark.reports.kit.language import Language
from fleetmark.reports.kit.tabular import Row
from fleetmark.reports.plan import front as plan_front
from fleetmark.reports.plan.model import view as plan_view
from tests.reports import plan_sample, rendered, sample
from tests.reports.pages import Page
from tests.schedules import facts


def first_rows(seen: View) -> list[Row]:
    return list(first_table(seen, against(seen)).rows)


ONE = {f"h{i}": [100.0, 100.0] for i in range(5)}
ALIKE = dict.fromkeys(ONE, "old")


def test_deviations_are_from_the_own_generations_median_and_positive_is_better() -> None:
    values = {"a": [100.0], "b": [110.0], "c": [90.0], "d": [400.0]}
    generations = {"a": "old", "b": "old", "c": "old", "d": "new"}
    for better, sign in ((Better.HIGHER, 1), (Better.LOWER, -1)):
        seen = view(sample.tiny(values, generations=generations, better=better))
        apart = dict(zip(*(pd.concat(list(Deviations(seen)))[c] for c in ("host", "deviation")), strict=True))
        assert apart["a"] == apart["d"] == 0
        assert math.copysign(1, apart["b"]) == sign == -math.copysign(1, apart["c"])


def test_a_slow_host_is_named_with_how_slow_it_is() -> None:
    seen = view(sample.tiny({**ONE, "h9": [85.0, 85.0]}, generations={**ALIKE, "h9": "old"}))
    (slow,) = Deviations(seen).unlike
    assert (slow.host, slow.generation, round(slow.deviation, 2)) == ("h9", "old", -0.15)
    odd = anomalies(seen, Deviations(seen))
    assert "h9 is 15% worse than the median of" in odd[0]


def test_nothing_is_odd_where_hosts_agree() -> None:
    results = sample.tiny(ONE, generations=ALIKE)
    seen = view(results)
    assert anomalies(seen, Deviations(seen)) == () and status(seen) == "All 10 runs passed."
    assert "Nothing: figures vary by at most" in Page(html.render(document(results), Language())).words


def test_versions_of_a_tool_are_mixed_within_a_case_alone() -> None:
    results = sample.tiny({"h1": [1.0, 1.0], "h2": [1.0, 1.0]})
    frame = results.values.frame.assign(tool_version=["2.13 bf16", "2.13 fp32"] * 2, case=["bf16", "fp32"] * 2)
    assert mixed(Values(frame)) == []  # the tool's version includes the precision, which differs between cases
    other = frame.assign(tool_version=["2.13 bf16", "2.13 fp32", "2.12 bf16", "2.13 fp32"])
    assert mixed(Values(other)) == [("stream", "2.13 bf16", ["h1"]), ("stream", "2.12 bf16", ["h2"])]


def test_repeats_that_vary_are_odd_and_marked() -> None:
    results = sample.tiny({"h1": [10e9, 30e9, 20e9]})
    seen = view(results)
    odd = "1 of 1 headline figures vary by more than 5% (CV); most stream 2t triad on h1: 50%"
    assert odd in anomalies(seen, Deviations(seen))
    assert first_rows(seen)[0][3].text == "50%"


def test_of_very_many_hosts_those_furthest_from_their_median_are_shown() -> None:
    seen = view(sample.many(130))
    shown = map_of_hosts(seen, Deviations(seen), message("generation"), {"pdf": 5})
    assert shown is not None and len(shown.rows) == 100
    assert "The hosts furthest from their median are shown; 29 others are closer." in shown.notes  # one never answered
    assert "n0017" in [row[0].text for row in shown.rows[:5]]
    one = view(sample.one())
    assert map_of_hosts(one, Deviations(one), message("generation"), {}) is None


def test_four_hundred_benchmarks_leave_a_first_screen() -> None:
    results = sample.one()
    triad = results.values.frame[results.values.frame["metric"] == "triad"]
    more = [triad.assign(case=f"case-{i:03d}", headline=True) for i in range(400)]
    seen = view(replace(results, values=Values(pd.concat([results.values.frame, *more], ignore_index=True))))
    rows = first_rows(seen)
    assert len(rows) == 12 and len(seen.headlines) == 406
    assert {row[0].text.split()[0] for row in rows} == {"fio", "lmbench", "stream"}


def test_the_first_screen_and_the_terminal_have_every_class() -> None:
    results = sample.one()
    triad = results.values.frame[results.values.frame["metric"] == "triad"]
    many = [triad.assign(case=f"case-{i:03d}", headline=True) for i in range(60)]
    more = [triad.assign(case=f"late-{i:02d}", headline=True, **{"class": f"class-{i}"}) for i in range(15)]
    frame = pd.concat([results.values.frame, *many, *more], ignore_index=True)
    campaign = replace(results, values=Values(frame))
    headlines = frame[frame["headline"]]
    rows = first_rows(view(campaign))
    assert {row[1].text for row in rows} == {class_title(c) for c in headlines["class"].unique()}
    assert len(rows) == headlines["class"].nunique() > FIRST_BENCHMARKS
    text = rendered.shown(document(campaign), 140)
    assert all(f"late-{i:02d}" in text for i in range(15)) and "case-050" not in text


def test_a_class_is_represented_by_what_it_measures_rather_than_by_its_guardrail() -> None:
    results = sample.tiny({"h1": [1.0, 1.0]})
    frame = results.values.frame
    guard = frame.assign(case="a", metric="latency_p99", kind="guardrail", unit="s")
    many = [frame.assign(workload="other", case=f"case-{i:02d}", **{"class": "os"}) for i in range(20)]
    values = pd.concat([frame.iloc[:0], guard, frame.assign(case="b"), *many], ignore_index=True).assign(headline=True)
    rows = first_rows(view(replace(results, values=Values(values))))
    assert {row[0].text.split()[2] for row in rows if row[1].text == class_title(frame["class"][0])} >= {"triad"}


def test_machines_with_and_without_accelerators_are_told_apart() -> None:
    plain = facts(cpu=Cpu(model="EPYC", cores=8))
    gpus = facts(
        cpu=Cpu(model="EPYC", cores=8), gpus=tuple(Gpu(index=n, name="H100", vendor="nvidia") for n in range(2))
    )
    results = sample.tiny({"h1": [1.0], "h2": [1.0], "h3": [1.0]})
    known = dict(zip(("h1", "h2", "h3"), (plain, gpus, gpus), strict=True))
    hosts = tuple(replace(host, facts=known[host.name]) for host in results.hosts)
    one, two = machines(view(replace(results, hosts=hosts)))
    assert one.startswith("h1: EPYC, 8 cores") and "H100" not in one
    assert two.startswith("2 hosts: EPYC, 8 cores") and "2 × H100" in two


@pytest.mark.parametrize(("part", "text"), [(-0.149, "−15"), (0.004, "0"), (0.031, "+3"), (-1e-9, "0")])
def test_percent(part: float, text: str) -> None:
    assert percent(part) == text


# --- a plan ----------------------------------------------------------------------------------------------------------


def test_what_happens_if_nothing_is_bought() -> None:
    q = plan_sample.question()
    nothing = do_nothing(q)
    assert len(nothing.share) == len(q.periods) and nothing.short_from == 2  # old servers leave at 10 periods
    assert nothing.share[0] > 1 > nothing.share[3] > nothing.share[5] == 0
    richer = replace(q, fleet=(*q.fleet, Cohort("new", "ams", 500), Cohort("new", "fra", 500)))
    assert do_nothing(richer).short_from is None
    assert do_nothing(replace(q, survive=False)).share[0] > nothing.share[0]


def test_the_risks_that_leave_no_plan_come_first() -> None:
    q = plan_sample.question()
    effects = [
        Effect("demand of web", 0.8, 1.25, True, -5e5, at_high=9e5),
        Effect("price of new", 0.9, 1.1, False, -1e4, at_high=1e4),
        Effect("utilisation of web", 0.9, 1.1, False, None, at_high=-3e4),
        Effect("energy price", 0.9, 1.1, False, -2e4, at_high=2e4),
    ]
    risks = plan_front.front(plan_view(Answer(q, plan_sample.plan(q), tornado=effects))).risks
    assert len(risks) == plan_front.RISKS
    assert risks[0] == "If utilisation of web is 10% lower: no plan, since no purchase then meets every limit."
    assert risks[1].startswith("If demand of web is 25% higher: +900,000 EUR (+")
    assert risks[2].startswith("If energy price is 10% higher: +20,000 EUR")


def test_the_first_screen_of_a_plan_buys_and_retires() -> None:
    q = plan_sample.question()
    v = plan_view(Answer(q, plan_sample.plan(q)))
    shown = plan_front.front(v)
    assert shown.answer == "Buy 77 new; retire 120 old. Already on order: 2 gpu."
    assert fmt.money(v.plan.objective) in shown.cost and "At most 0.50% above the cheapest possible plan." in shown.cost
    assert [year for year, _ in shown.years] == ["2027", "2028"]
    assert "2027-Q3" in shown.nothing
    assert "leaves at least one workload without servers" in shown.nothing and " 0%" not in shown.nothing


# --- titles ----------------------------------------------------------------------------------------------------------


def test_the_title_of_a_campaign_has_its_answer_in_two_lines() -> None:
    """One host: its share of a peak. Six that agree: none is slow. Four, two of them slow: both, the slowest first."""
    odd = sample.tiny({"h1": [1e9], "h2": [0.7e9], "h3": [1.0e9], "h4": [1.01e9], "h5": [0.8e9], "h6": [1e9]})
    titles = [str(document(results).answer) for results in (sample.one(), sample.six(), odd)]
    assert titles[0] == "epyc-07 reaches 87% of its peak in stream all-cores triad (602 GB/s). All 84 runs passed."
    assert titles[1] == "No host is slower than its peers. 378 of 390 runs passed."
    assert titles[2].startswith("h2 is 30% worse than the median of all hosts") and "Also slow: h5." in titles[2]
    assert max(map(len, titles)) < 160
