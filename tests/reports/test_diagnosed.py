"""Test the documents of a diagnosis: answer and next steps first, evidence with every finding, and peaks of hosts."""

from __future__ import annotations

import io
import json
import re
import subprocess
from pathlib import Path

import openpyxl
import pytest
from typer.testing import CliRunner

from fleetmark.cli.app import app
from tests.fleets import HOSTS, campaign, ring, scaled, sick, usual
from tests.records import TRIAD
from tests.reports.pages import Page
from tests.reports.tagged import faults


def diagnosed(root: Path, *words: str) -> str:
    done = CliRunner().invoke(app, ["diagnose", "last", *words, "--results", str(root)], catch_exceptions=False)
    assert done.exit_code == 1, done.output
    return done.stdout


def test_every_document_begins_with_the_answer_and_the_next_steps(tmp_path: Path) -> None:
    sick(tmp_path)
    files = {kind: tmp_path / f"d.{kind}" for kind in ("html", "pdf", "xlsx")}
    text = diagnosed(tmp_path, *(word for kind, file in files.items() for word in (f"--{kind}", str(file))))
    answer, step = "2 of 16 hosts slower than expected: n03, n05.", "Measure n03, n05, the link n02 to n04 again"
    command = f"fleetmark diagnose 20260101T000000-x --confirm --results {tmp_path}"
    assert answer in text and step in text and command in text
    lost = (
        "Lost capacity as a number of hosts: 0.2 of 16 hosts in memory bandwidth, 0.2 of 16 hosts in one network flow."
    )
    assert lost in " ".join(text.split())
    for sentence in (
        "Slow links: n02 to n04 (−49%).",
        "3 findings with a false discovery rate below 1%.",
        "Not measured: integer, applications. No cost: no host has a price.",
    ):
        assert sentence in " ".join(text.split())
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
    assert readme[0].startswith(answer) and any(text.startswith(step) for text in readme)
    rows = list(book["Findings"].iter_rows(min_row=5, values_only=True))
    assert {row[0] for row in rows} == {"n03", "n05", "n02 to n04"} and all(row[11] == "raw/x" for row in rows)
    assert next(row[3] for row in rows if row[0] == "n03") == pytest.approx(0.2, abs=0.01)
    markdown = diagnosed(tmp_path, "--format", "md")
    assert markdown.startswith("# 2 of 16") and f"- {step}" in markdown and f"`{command}`" in markdown
    assert json.loads(diagnosed(tmp_path, "--format", "json"))["next"][0]["command"] == command


@pytest.mark.parametrize(
    ("price", "cost"),
    [
        ({"price": "10000", "currency": "EUR"}, r"memory bandwidth \((1,9|2,0)\d\d EUR\)\."),
        ({"price": "4", "currency": "USD", "term": "hour"}, r"memory bandwidth \(0\.(7[89]|8)\d* USD per hour\)\."),
        ({"price": "many", "currency": "EUR"}, r"memory bandwidth\..* No cost: no host has a price\."),
        ({"price": "10000"}, r"memory bandwidth\..* No cost: no host has a price\."),
    ],
)
def test_lost_capacity_has_its_price(tmp_path: Path, price: dict[str, str], cost: str) -> None:
    values = usual()
    scaled(values, "n03", TRIAD, 0.8)
    campaign(tmp_path, values, dict.fromkeys(HOSTS, price))
    assert re.search(cost, " ".join(diagnosed(tmp_path).split()))


def test_the_documents_in_chinese(tmp_path: Path) -> None:
    sick(tmp_path)
    file = tmp_path / "d.html"
    assert "后续操作" in diagnosed(tmp_path, "--lang", "zh-CN", "--html", str(file))
    page = Page(file.read_text())
    assert "实测带宽与硬件峰值" in page.words and "What" not in page.words


def test_an_isolation_is_a_page_too(tmp_path: Path) -> None:
    campaign(tmp_path, ring("", ("", "")))
    files = tmp_path / "i.html", tmp_path / "i.pdf"
    words = ["diagnose", "last", "--isolate", "iperf3/tcp", "--html", str(files[0]), "--pdf", str(files[1])]
    done = CliRunner().invoke(app, [*words, "--results", str(tmp_path)], catch_exceptions=False)
    assert done.exit_code == 0 and files[1].read_bytes().startswith(b"%PDF")
    page = Page(files[0].read_text())
    assert "No host, link or border makes iperf3 tcp slow." in page.words
    assert page.table_row("all pairs") == ["all pairs", "120"] and page.table_row("this search") == ["this search", "0"]
