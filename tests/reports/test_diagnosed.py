"""A diagnosis as documents: the answer and the next steps first, evidence beside every finding, hosts under their roofs."""

from __future__ import annotations

import io
import json
import subprocess
from pathlib import Path

import openpyxl
import pytest
from typer.testing import CliRunner

from fleetmark import cli
from fleetmark.base.facts import Facts, Nic
from fleetmark.base.text import message
from fleetmark.record.archive import Archive
from fleetmark.record.diagnosis.roofs import Roof, roofs_of
from planner.peak import Peak
from reports.diagnosis import bottleneck
from reports.kit.language import Language, language
from reports.kit.roofline import Ceiling, roofline
from tests.fleets import HOSTS, Values, campaign, ring, scaled, usual
from tests.records import TRIAD, Bench
from tests.reports.pages import Page
from tests.reports.tagged import faults
from tests.schedules import facts

HPL = Bench("hpcc", "all-cores", "hpl", "FLOP/s", "higher", "cpu-fp")
L3 = Bench("lmbench", "bw_cache-l3", "rd", "B/s", "higher", "core-bw")


def port() -> Facts:
    return facts(nics=(Nic(name="ens1", speed=2.5e9, state="up"),))


def sick(root: Path) -> None:
    values = usual()
    scaled(values, "n03", TRIAD, 0.8)
    values |= {(host, HPL): [1.6e12] for host in HOSTS} | {(host, L3): [2e12] for host in HOSTS}
    pairs: Values = {}
    for (host, bench), each in ring("n05", ("n02", "n04")).items():
        named = {name: getattr(bench, name) for name in bench.__dataclass_fields__}
        pairs[host, Bench(**{**named, "case": "tcp-1"})] = each
    archive = campaign(root, values | pairs)
    for host in HOSTS:
        archive.save_facts(host, port(), {})


def diagnosed(root: Path, *words: str) -> str:
    done = CliRunner().invoke(cli.app, ["diagnose", "last", *words, "--results", str(root)], catch_exceptions=False)
    assert done.exit_code == 1, done.output
    return done.stdout


def test_every_document_begins_with_the_answer_and_the_next_steps(tmp_path: Path) -> None:
    sick(tmp_path)
    files = {kind: tmp_path / f"d.{kind}" for kind in ("html", "pdf", "xlsx")}
    text = diagnosed(tmp_path, *(word for kind, file in files.items() for word in (f"--{kind}", str(file))))
    answer, step = "2 of 16 hosts slower than expected: n03, n05.", "Measure n03, n05, n02 - n04 again"
    command = f"fleetmark diagnose 20260101T000000-x --confirm --results {tmp_path}"
    assert answer in text and step in text and command in text
    page = files["html"].read_text()
    assert page.index(f"{answer}") < page.index(step) < page.index('<section id="suspects"')
    raw = (tmp_path / "20260101T000000-x/raw/x").as_uri()
    assert page.count(f'<a href="{raw}">') == 3  # one for each finding
    paper = subprocess.run(["pdftotext", "-l", "1", files["pdf"], "-"], capture_output=True, text=True, check=True)
    first = " ".join(paper.stdout.split())
    assert answer in first and step in first and "raw/x" in first and "file:" not in first
    assert faults(files["pdf"].read_bytes()) == []  # PDF/UA
    book = openpyxl.load_workbook(io.BytesIO(files["xlsx"].read_bytes()))
    readme = [str(c.value) for row in book["Readme"] for c in row if c.value]
    assert readme[0].startswith(answer) and readme[2].startswith(step)
    rows = list(book["Findings"].iter_rows(min_row=5, values_only=True))
    assert {row[0] for row in rows} == {"n03", "n05", "n02 - n04"} and all(row[11] == "raw/x" for row in rows)
    assert next(row[3] for row in rows if row[0] == "n03") == pytest.approx(0.2, abs=0.01)
    markdown = diagnosed(tmp_path, "--format", "md")
    assert markdown.startswith("**2 of 16") and f"1. {step}" in markdown and f"`{command}`" in markdown
    assert json.loads(diagnosed(tmp_path, "--format", "json"))["next"][0]["command"] == command


def test_the_documents_in_chinese(tmp_path: Path) -> None:
    sick(tmp_path)
    file = tmp_path / "d.html"
    assert "后续操作" in diagnosed(tmp_path, "--lang", "zh-CN", "--html", str(file))
    page = Page(file.read_text())
    assert "主机与自身上限" in page.words and "What" not in page.words


def test_roofs_of_a_campaign_by_hand(tmp_path: Path) -> None:
    sick(tmp_path)
    roofs = {(r.host, r.of, r.called): r for r in roofs_of(Archive(tmp_path / "20260101T000000-x"))}
    assert {(of, called) for _, of, called in roofs} == {
        ("compute", "fp64"), ("cache", "l3"), ("memory", ""), ("link", "")
    }  # fmt: skip
    memory = roofs["n00", "memory", ""]
    assert memory.best == pytest.approx(281e9 * 1.3333, rel=0.03) and memory.peak is None
    network = roofs["n05", "link", ""]
    assert network.best == pytest.approx(0.8e9, rel=0.03) and network.share == pytest.approx(0.32, rel=0.03)
    lines = {line.roof.of: line for line in bottleneck.lines(list(roofs.values()), dict.fromkeys(HOSTS, "k"))}
    assert lines["link"].lowest.host == "n05" and lines["link"].hosts == 16 and lines["compute"].balance is None
    assert lines["cache"].balance == pytest.approx(0.8) and lines["link"].balance == pytest.approx(1600, rel=0.03)
    notes = [str(note) for note in bottleneck.notes(list(lines.values()))]
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
    memory = [Roof(h, "memory", "", 1e9, top, "B/s", "b") for h in ("a", "b", "c")]
    compute = [
        Roof("a", "compute", "fp64", 1e12, None, "FLOP/s", "b"),
        Roof("b", "compute", "fp64", 2e12, None, "FLOP/s"),
    ]
    lines = bottleneck.lines([*memory, *compute], {"a": "k", "b": "l", "c": "m"})
    pictures = bottleneck.pictures(lines, Language())
    assert [str(p.title) for p in pictures] == ["k", "l"] and all("<svg" in p.svg for p in pictures)
    assert "内存 1.00 GB/s" in bottleneck.pictures(lines, language("zh-CN"))[0].svg
    assert [t.title for t in bottleneck.tables(lines)] == ["k", "l", "m"]


def test_an_isolation_is_a_page_too(tmp_path: Path) -> None:
    campaign(tmp_path, ring("", ("", "")))
    files = tmp_path / "i.html", tmp_path / "i.pdf"
    words = ["diagnose", "last", "--isolate", "iperf3/tcp", "--html", str(files[0]), "--pdf", str(files[1])]
    done = CliRunner().invoke(cli.app, [*words, "--results", str(tmp_path)], catch_exceptions=False)
    assert done.exit_code == 0 and files[1].read_bytes().startswith(b"%PDF")
    page = Page(files[0].read_text())
    assert "No host, link or border makes iperf3 tcp slow." in page.words
    assert page.table_row("all pairs") == ["all pairs", "120"] and page.table_row("this search") == ["this search", "0"]
