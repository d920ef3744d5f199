"""Frontiers on pages: points from rows of campaigns, pairs under the host that serves, and equivalence with its interval."""

from __future__ import annotations

import math
from pathlib import Path

from fleetmark.record import compare as comparing
from fleetmark.record import evidence
from fleetmark.record.archive import Archive
from fleetmark.record.view import load_results
from reports import html, report
from reports.frontier.points import families
from reports.frontier.section import blocks
from reports.kit.language import Language
from tests.records import Bench, record

LOADS = {1: (100.0, 0.05), 16: (60.0, 0.2), 64: (25.0, 0.6), 128: (24.0, 3.0)}  # tokens/s of a user, TTFT


def measured(hosts: list[str], factor: float, subject: str = "host") -> dict[tuple[str, Bench], list[float]]:
    rows: dict[tuple[str, Bench], list[float]] = {}
    for n, host in enumerate(hosts):
        for streams, (speed, ttft) in LOADS.items():
            work = factor * 0.9 * streams * speed * math.exp(0.01 * n)
            work *= 0.4 if streams == 128 else 1.0  # beyond the machine's capacity
            figures = {
                "output_tokens_per_second": (work, "1/s", "higher"),
                "interactivity": (speed, "1/s", "higher"),
                "ttft_p50": (ttft, "s", "lower"),
                "accelerators": (2.0, "1", "none"),
            }
            for metric, (value, unit, better) in figures.items():
                case = f"p512-o128-c{streams}"
                labels = (("model", "m"),)
                bench = Bench(
                    "llm_serve", case, metric, unit, better, "gpu-server", labels, kind="capacity", subject=subject
                )
                rows[host, bench] = [value, value]
    return rows


def compared(root: Path) -> report.Report:
    old, new = ["o1", "o2", "o3"], ["n1", "n2", "n3"]
    price = {"price": "4", "currency": "USD", "term": "hour"}
    record(root, "c-old", {h: {"gen": "old", **price} for h in old}, measured(old, 1.0))
    record(root, "c-new", {h: {"gen": "new"} for h in new}, measured(new, 3.0))
    question = comparing.Question(root, "gen=old", ["gen=new"])
    answer = comparing.compare(question)
    return report.of_comparison(answer, *evidence.gather(root, answer, [], "2026-11-02T00:00:00Z"))


def test_a_comparison_says_what_one_replaces_at_equal_service(tmp_path: Path) -> None:
    page = compared(tmp_path)
    (block,) = blocks(page.view.results, {}, Language(), "old")
    assert block.title == "llm_serve p512-o128 model=m" and block.unit == "accelerator"
    rows = {row.speed: row for row in block.equal}
    assert rows["50"].ratio == "3.00" and rows["50"].n == "3 / 3"
    low, high = map(float, rows["50"].interval.split(" – "))
    assert low < 3 < high
    assert rows["20"].ratio == "" and rows["20"].reason.startswith("not measured: every load of both sides is faster")
    assert rows["100"].ratio == "3.00"
    assert {p.load for p in block.points if p.dominated} == {"p512-o128-c128"}
    first = next(p for p in block.points if p.machine == "o1" and p.load == "p512-o128-c16")
    assert first.work == "432"  # 0.9 x 16 x 60 on two accelerators
    assert first.cost == "1.29 USD"  # 2 USD an hour for 432 x 3600 tokens
    assert not block.energy


def test_energy_is_of_runs_that_had_the_host_to_themselves(tmp_path: Path) -> None:
    rows = measured(["a"], 1.0)
    for streams in LOADS:
        watts = Bench("llm_serve", f"p512-o128-c{streams}", "power", "W", "lower", "gpu-server", (("source", "rapl"),))
        rows["a", watts] = [600.0]
    record(tmp_path, "c", {"a": {"gen": "x"}}, rows)
    (block,) = blocks(load_results(Archive(tmp_path / "c")), {}, Language())
    energy = {p.load: p.energy for p in block.points}
    assert energy["p512-o128-c16"] == "0.694"  # 600 W for 864 tokens/s


def test_the_page_shows_it(tmp_path: Path) -> None:
    page = html.render(compared(tmp_path))
    assert 'id="frontier"' in page and "Equivalence at equal service" in page and "dominated" in page


def test_of_a_pair_the_point_is_of_the_host_that_serves(tmp_path: Path) -> None:
    hosts = {"a": {"gen": "x"}, "b": {"gen": "x"}}
    record(tmp_path, "c", hosts, measured(["a"], 1.0, "a>b"))
    (family,) = families(load_results(Archive(tmp_path / "c")))
    assert {machine for of in family.sides.values() for machine in of} == {"b"}
