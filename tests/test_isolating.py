"""Test ``fleetmark diagnose --isolate`` on recorded campaigns: options, new runs and output."""

from __future__ import annotations

import io
import json
from pathlib import Path

import numpy as np
import openpyxl
import pytest
from typer.testing import CliRunner

from fleetmark.base.errors import FleetmarkError
from fleetmark.cli.app import app
from fleetmark.planner.diagnosis.isolation.partners import Fault, Reason, Suspicion
from fleetmark.record.archive import Archive
from fleetmark.record.diagnosis import isolations
from fleetmark.record.diagnosis.isolations import FOLDER, Isolated
from fleetmark.reports.diagnosis import isolation
from fleetmark.reports.formats import html, markdown, xlsx
from fleetmark.reports.kit.language import language
from fleetmark.workloads import Suite
from tests.commands import refused
from tests.fleets import HOSTS, Values, campaign, ring, usual


def sound(root: Path) -> Archive:
    return campaign(root, ring("", ("", "")))


def answered(root: Path, *words: str) -> tuple[int, str]:
    done = CliRunner().invoke(
        app, ["diagnose", "last", "--isolate", "iperf3/tcp", *words, "--results", str(root)], catch_exceptions=False
    )
    return done.exit_code, done.stdout


def test_a_sound_fleet_needs_no_run(tmp_path: Path) -> None:
    sound(tmp_path)
    status, text = answered(tmp_path)
    assert status == 0 and "No host, link or border makes iperf3 tcp slow." in text
    assert "0 runs in addition to those of the campaign. Testing all pairs takes 120" in text
    assert json.loads(answered(tmp_path, "--format", "json")[1])["faults"] == []
    assert "没有主机" in answered(tmp_path, "--format", "md", "--lang", "zh-CN")[1]


def test_the_slower_direction_counts_and_a_failure_most(tmp_path: Path) -> None:
    values: Values = {}
    (bench,) = {b for _, b in ring("", ("", "")) if b.subject == "n00>n01"}
    for host, subject, rate in (("n00", "n00>n01", 1e9), ("n01", "n01>n00", 5e8), ("n02", "n02>n03", 1e9)):
        link = type(bench)(**{**{n: getattr(bench, n) for n in bench.__dataclass_fields__}, "subject": subject})
        values[host, link] = [rate]
    values |= {("n03", bench): [1.0]}
    archive = campaign(tmp_path, values).writable()
    question = isolations.question(archive, "iperf3/tcp")
    assert question.metric == "bitrate"
    common = {"workload": "iperf3", "case": "tcp", "repeat": 0, "status": "failed", "reason": "timeout"}
    archive.note("outcome", host="n02", subject="n02>n03", **common)
    rates = isolations.rates(archive, question)
    assert rates[frozenset(("n00", "n01"))] == pytest.approx(np.log(5e8))
    assert rates[frozenset(("n02", "n03"))] == isolations.FAILED
    archive.close()


def test_what_was_run_for_the_same_question_is_not_run_again(tmp_path: Path) -> None:
    archive = sound(tmp_path)
    question = isolations.question(archive, "iperf3/tcp/bitrate")
    wanted = isolations.suite(archive, question, [("n00", "n01")])
    suite = Suite.model_validate({"name": "pairs", **wanted})
    assert suite.chosen()["iperf3"].is_for("tcp", "n01", "n00") and isolations.before(archive, wanted) is None
    document = {"hosts": [], "suite": "pairs", "created": "", "suite_as_read": suite.model_dump(mode="json")}
    run_archive = Archive.create(archive.path / FOLDER, "20260101T000000-pairs", document).writable()
    begun = isolations.before(archive, wanted)
    assert begun and begun[0].id == run_archive.id and not begun[1]
    run_archive.note("ended", owed=0)
    run_archive.close()
    begun = isolations.before(archive, wanted)
    assert begun and begun[1]
    assert isolations.before(archive, isolations.suite(archive, question, [("n00", "n02")])) is None


def test_labels_are_those_of_the_campaign(tmp_path: Path) -> None:
    racks = {h: {"rack": "r1"} for h in HOSTS[:8]}
    assert isolations.labels(campaign(tmp_path, usual(), labels=racks), ["rack", "row"]) == {
        "rack": dict.fromkeys(HOSTS[:8], "r1")
    }


def test_every_reason_is_a_sentence(tmp_path: Path) -> None:
    archive = sound(tmp_path)
    question = isolations.question(archive, "iperf3/tcp")
    faults = (
        Fault("node", ("n1",), Reason.INTRA_HOST, 0.5),
        Fault("node", ("n2",), Reason.ALL_PARTNERS, 0.9),
        Fault("link", ("n3", "n4"), Reason.ONE_PAIR, 1.0),
        Fault("border", ("r1", "r2"), Reason.ALL_ACROSS, 0.3),
        Fault("border", ("r7",), Reason.UPLINK, 0.2, "rack"),
        Fault("shared", ("n10", "n11", "n12"), Reason.UNLABELLED, 0.15),
    )
    result = Isolated(archive.id, question, Suspicion(faults, 8, 9, (frozenset(("n5", "n6")),)), ("isolations/x",))
    text = markdown.render(isolation.document(result, archive.path, "", "fleetmark"), language("en"))
    named = "n1, n2, n3 to n4, r1 to r2, rack r7, something that n\\[10-12\\] share."
    assert text.startswith(f"# iperf3 tcp is slow and fails because of {named}")
    assert "n\\[10-12\\] are 15% slower with all other hosts but not with each other" in text
    assert "n1 is 50% slower than others when it runs alone" in text and "n3 to n4 fails; both work with others" in text
    assert "n5 to n6 was slow in the campaign and fast when it ran again" in text
    reasons = [f["reason"] for f in isolation.as_json(result)["faults"]]
    assert reasons == [str(r) for r in Reason]


def test_a_failure_is_not_called_slow_and_has_its_raw_files_in_every_form(tmp_path: Path) -> None:
    archive = sound(tmp_path)
    question = isolations.question(archive, "iperf3/tcp")
    fault = Fault("node", ("n2",), Reason.ALL_PARTNERS, 1.0)
    ran = (tuple(map(frozenset, (("n1", "n2", "n3"),))), (frozenset(("n2", "n3")),))
    result = Isolated(archive.id, question, Suspicion((fault,), 8, 9, ()), ("isolations/all", "isolations/pair"), ran)
    assert result.evidence(fault) == ["isolations/pair/raw"]
    assert isolation.as_json(result)["faults"][0]["evidence"] == ["isolations/pair/raw"]
    for lang, answer, file in (("en", "iperf3 tcp fails because of n2.", "raw files"), ("zh-CN", "失败", "原始文件")):
        document = isolation.document(result, archive.path, "2026-01-01T00:00:00Z", "fleetmark")
        book = openpyxl.load_workbook(io.BytesIO(xlsx.render(document, language(lang))))
        assert len(book.sheetnames) == 3
        cells = [str(c.value) for tab in book.worksheets for row in tab.iter_rows() for c in row if c.value is not None]
        assert any(answer in cell for cell in cells) and file in cells
        assert {str(Reason.ALL_PARTNERS), "isolations/pair/raw"} <= set(cells)
        page = html.render(document, language(lang))
        assert answer in page and "isolations/pair/raw" in page


def test_the_workbook_of_a_sound_fleet_names_nobody(tmp_path: Path) -> None:
    sound(tmp_path)
    assert answered(tmp_path, "--xlsx", str(tmp_path / "i.xlsx"))[0] == 0
    book = openpyxl.load_workbook(tmp_path / "i.xlsx")
    values = [cell.value for row in book["Readme"].iter_rows() for cell in row]
    assert "Nobody is named." in values and book["Runs"].max_row > 3


def test_bad_requests(tmp_path: Path) -> None:
    archive = sound(tmp_path)
    assert "there is iperf3/tcp" in refused(tmp_path, "diagnose", "last", "--isolate", "iperf3/udp")
    unknown = refused(tmp_path, "diagnose", "last", "--isolate", "iperf3/tcp", "--border", "row")
    assert "--border row: no host of" in unknown and "has this label; they have none" in unknown
    for words, text in (
        (["2%"], "--least 2% with --isolate: a few runs show no loss below 4%"),
        (["mem-bw=5%"], "without a class"),
        (["5%", "--everything"], "--everything"),
    ):
        assert text in refused(tmp_path, "diagnose", "last", "--isolate", "iperf3/tcp", "--least", *words)
    assert "--confirm with --isolate" in refused(tmp_path, "diagnose", "--isolate", "iperf3/tcp", "--confirm")
    (tmp_path / "alone").mkdir()
    alone = campaign(tmp_path / "alone", usual())
    with pytest.raises(FleetmarkError, match="no case ran between two hosts"):
        isolations.question(alone, "stream/all-cores")
    assert archive.id
