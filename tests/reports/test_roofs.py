"""Measured bandwidth against hardware peak: in a campaign's report as in its diagnosis, in every format, with a picture."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import openpyxl
import pytest

from fleetmark.base.text import message
from fleetmark.planner.peak import Peak
from fleetmark.record.archive import Archive
from fleetmark.record.diagnosis.roofs import roofs_of
from fleetmark.record.roofs import Roof
from fleetmark.record.view import load_results
from fleetmark.reports.campaign.roofs import lines as of_campaign
from fleetmark.reports.campaign.view import view
from fleetmark.reports.hosts import roofs as under_roofs
from fleetmark.reports.kit.language import Language, language
from fleetmark.reports.kit.roofline import Ceiling, roofline
from tests.commands import run
from tests.fleets import HOSTS, HPL, L3, campaign, sick, usual
from tests.reports.pages import Page
from tests.reports.shown import drawn
from tests.reports.tagged import faults

TITLE = "Measured bandwidth against hardware peak"


def reported(root: Path, *words: str) -> str:
    return run(root, "report", "last", *words)


def test_a_campaigns_report_has_the_roofs_in_every_format(tmp_path: Path) -> None:
    sick(tmp_path)
    files = {kind: tmp_path / f"r.{kind}" for kind in ("html", "pdf", "xlsx")}
    markdown = reported(
        tmp_path, "--format", "md", *(word for kind, file in files.items() for word in (f"--{kind}", str(file)))
    )
    network = ["network", "1.01 GB/s", "2.50 GB/s", "40%", "1,587"]
    assert f"## {TITLE}" in markdown and f"| {' | '.join(network)} | 16 | 806 MB/s | n05 |" in markdown
    page = Page(files["html"].read_text())
    assert page.table_row("network")[:5] == network and page.words.count(TITLE) == 2  # contents and heading
    assert files["html"].read_text().count("The measured roofs of 16 hosts") >= 1
    assert faults(files["pdf"].read_bytes()) == []  # PDF/UA
    sheet = openpyxl.load_workbook(files["xlsx"])["Measured bandwidth against"]
    row = next(cells for cells in sheet.iter_rows() if cells[0].value == "network")
    assert (
        row[1].value == pytest.approx(1e9, rel=0.01)
        and row[2].value == 2.5e9
        and row[3].value == pytest.approx(0.4, rel=0.01)
    )
    assert "GB/s" in row[1].number_format and row[3].number_format == "0%"
    parts = {r["part"]: r for r in json.loads(reported(tmp_path, "--format", "json"))["roofs"][0]["parts"]}
    assert parts["network"]["peak"] == 2.5e9 and parts["network"]["lowest_host"] == "n05"


def test_the_section_in_chinese(tmp_path: Path) -> None:
    sick(tmp_path)
    file = tmp_path / "r.html"
    assert "实测带宽与硬件峰值" in reported(tmp_path, "--lang", "zh-CN", "--format", "md", "--html", str(file))
    page = Page(file.read_text())
    assert "实测带宽与硬件峰值" in page.words and TITLE not in page.words


def test_report_and_diagnosis_have_the_same_figures(tmp_path: Path) -> None:
    archive = sick(tmp_path)
    shown = {(line.roof.kind, line.roof.called): line for line in of_campaign(view(load_results(archive)))}
    kinds = dict.fromkeys(HOSTS, next(iter(shown.values())).kind)
    for line in under_roofs.lines(roofs_of(archive), kinds):
        reported_line = shown.pop((line.roof.kind, line.roof.called))
        assert (reported_line.rate, reported_line.share, reported_line.balance) == pytest.approx(
            (line.rate, line.share, line.balance), nan_ok=True
        )
        assert (reported_line.hosts, reported_line.lowest.host, reported_line.kind) == (
            line.hosts,
            line.lowest.host,
            line.kind,
        )
    assert not shown


def test_what_several_hosts_ran_together_is_no_hosts_rate(tmp_path: Path) -> None:
    together = replace(HPL, members=("n00", "n01"))
    archive = campaign(tmp_path, usual() | {(h, L3): [2e12] for h in HOSTS} | {("n00", together): [9e12]})
    assert {roof.kind for roof in roofs_of(archive)} == {"memory", "cache"}
    assert of_campaign(view(load_results(archive))) == []  # without compute nothing stands beside anything


def test_no_section_where_nothing_stands_beside_anything(tmp_path: Path) -> None:
    archive = campaign(tmp_path, usual())  # memory alone, and no peak is known
    assert of_campaign(view(load_results(archive))) == []
    assert TITLE not in reported(tmp_path, "--format", "md")


def test_roofs_of_a_campaign_by_hand(tmp_path: Path) -> None:
    sick(tmp_path)
    roofs = {(r.host, r.kind, r.called): r for r in roofs_of(Archive(tmp_path / "20260101T000000-x"))}
    assert {(kind, called) for _, kind, called in roofs} == {
        ("compute", "fp64"), ("cache", "l3"), ("memory", ""), ("link", "")
    }  # fmt: skip
    memory = roofs["n00", "memory", ""]
    assert memory.best == pytest.approx(281e9 * 1.3333, rel=0.03) and memory.peak is None
    network = roofs["n05", "link", ""]
    assert network.best == pytest.approx(0.8e9, rel=0.03) and network.share == pytest.approx(0.32, rel=0.03)
    lines = {line.roof.kind: line for line in under_roofs.lines(list(roofs.values()), dict.fromkeys(HOSTS, "k"))}
    assert lines["link"].lowest.host == "n05" and lines["link"].hosts == 16 and lines["compute"].balance is None
    assert lines["cache"].balance == pytest.approx(0.8) and lines["link"].balance == pytest.approx(1600, rel=0.03)
    notes = [str(note) for note in under_roofs.notes(list(lines.values()))]
    assert notes[1] == "Furthest from its peak: network, 40%."


def test_a_roofline_has_its_lines_where_arithmetic_puts_them() -> None:
    ceilings = [Ceiling("a", level=1e12), Ceiling("b", rate=1e11), Ceiling("c", rate=1e9)]
    spec = roofline(ceilings, (), "x", "y")
    level, fast, slow = ([(p["x"], p["y"]) for p in layer["data"]["values"]] for layer in spec["layer"])
    assert level[0] == (10.0, 1e12) and level[1][1] == 1e12  # from where the fastest of the others meets it
    assert fast[1] == (10.0, 1e12) and slow[1] == (1000.0, 1e12)
    assert fast[0][1] == pytest.approx(1e11 * fast[0][0]) and slow[0][1] == pytest.approx(1e9 * slow[0][0])


def test_kinds_have_pictures_of_their_own_and_none_without_computing() -> None:
    top = Peak(4e9, message("x"), "y")
    memory = [
        Roof(host=h, kind="memory", called="", best=1e9, peak=top, unit="B/s", benchmark="b") for h in ("a", "b", "c")
    ]
    compute = [
        Roof(host="a", kind="compute", called="fp64", best=1e12, peak=None, unit="FLOP/s", benchmark="b"),
        Roof(host="b", kind="compute", called="fp64", best=2e12, peak=None, unit="FLOP/s"),
    ]
    lines = under_roofs.lines([*memory, *compute], {"a": "k", "b": "l", "c": "m"})
    pictures = under_roofs.pictures(lines, Language())
    assert [str(p.title) for p in pictures] == ["k", "l"] and all("<svg" in drawn(p) for p in pictures)
    assert "内存 1.00 GB/s" in drawn(under_roofs.pictures(lines, language("zh-CN"))[0])
    assert [t.title for t in under_roofs.tables(lines)] == ["k", "l", "m"]
