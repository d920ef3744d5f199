"""Documents from the command line: they are written completely, the same each time; what cannot be written is refused first."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest
from typer.testing import CliRunner

from fleetmark.base.errors import FleetmarkError
from fleetmark.cli.app import app
from fleetmark.record.compare import Question
from tests.records import IOPS, MCF, TRIAD, Bench, record

COMPARE = ("compare", "--baseline", "gen=old", "--candidate", "gen=new")


def fleet(root: Path, name: str = "c1", hosts: int = 3, benches: tuple[Bench, ...] = (TRIAD, IOPS)) -> None:
    labels = {f"{g[0]}{n}": {"gen": g} for g in ("old", "new") for n in range(hosts)}
    factor = {"o": 1.0, "n": 2.0}
    figures = {
        (h, b): [1e9 * factor[h[0]] * (1 + n / 100 + r / 300) for r in range(3)]
        for n, h in enumerate(labels)
        for b in benches
    }
    record(root, name, labels, figures)


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A record, and the folder beside it where a user stands."""
    monkeypatch.delenv("SOURCE_DATE_EPOCH", raising=False)
    folder = tmp_path / "record"
    folder.mkdir()
    fleet(folder)
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    return folder


def run(root: Path, *words: str) -> tuple[str, str]:
    done = CliRunner().invoke(app, [*words, "--results", str(root)], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.stdout, done.stderr


def refused(root: Path, *words: str) -> str:
    """The one sentence; nothing is written."""
    before = sorted(Path.cwd().rglob("*"))
    done = CliRunner().invoke(app, [*words, "--results", str(root)])
    assert isinstance(done.exception, FleetmarkError), done.output
    assert sorted(Path.cwd().rglob("*")) == before
    text = str(done.exception)
    assert "\n" not in text
    return text


# --- what is written -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("verb", [COMPARE, ("report", "c1")])
def test_every_document_is_written_and_said(root: Path, verb: tuple[str, ...]) -> None:
    output, _ = run(root, *verb, "--html", "a.html", "--pdf", "a.pdf", "--xlsx", "a.xlsx")
    begins = {p.name: p.read_bytes()[:15] for p in Path.cwd().iterdir()}
    assert (
        begins["a.html"].lower() == b"<!doctype html>"
        and begins["a.pdf"][:5] == b"%PDF-"
        and begins["a.xlsx"][:2] == b"PK"
    )
    assert sorted(begins) == ["a.html", "a.pdf", "a.xlsx"]
    assert all(f"wrote {name} (" in output for name in begins)
    assert not (root / "c1" / "summary.html").exists()


def test_the_page_beside_a_campaign_is_written_where_nothing_else_is_asked_for(root: Path) -> None:
    output, _ = run(root, "report", "c1")
    assert (root / "c1" / "summary.html").exists()
    assert str(root / "c1" / "summary.html") in output.replace("\n", "")
    assert not list(Path.cwd().iterdir())


@pytest.mark.parametrize("verb", [COMPARE, ("report", "c1")])
def test_a_fixed_date_makes_the_same_bytes(root: Path, verb: tuple[str, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    run(root, *verb, "--html", "1.html", "--xlsx", "1.xlsx", "--date", "2026-11-21")
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1795219200")
    run(root, *verb, "--html", "2.html", "--xlsx", "2.xlsx")
    for kind in ("html", "xlsx"):
        assert Path(f"1.{kind}").read_bytes() == Path(f"2.{kind}").read_bytes(), kind
    if verb is COMPARE:
        assert "2026-11-21" in Path("1.html").read_text()


@pytest.mark.skipif(shutil.which("pdftotext") is None, reason="needs poppler-utils")
def test_the_date_is_on_paper(root: Path) -> None:
    run(root, "report", "c1", "--pdf", "a.pdf", "--date", "2031-05-06")
    text = subprocess.run(["pdftotext", "a.pdf", "-"], capture_output=True, text=True, check=True).stdout
    assert "2031-05-06" in text


def test_standard_output_is_nothing_but_what_was_asked_for(root: Path) -> None:
    out, err = run(root, *COMPARE, "--html", "a.html", "--format", "json")
    assert json.loads(out)["baseline"] == "old"
    assert "wrote a.html" in err
    out, err = run(root, "report", "c1", "--html", "b.html", "--format", "json")
    assert json.loads(out)["page"] == str(Path("b.html").resolve())
    assert "wrote b.html" in err
    out, _ = run(root, "report", "c1", "--xlsx", "b.xlsx", "--format", "json")
    assert json.loads(out)["page"] is None
    out, _ = run(root, *COMPARE, "--format", "csv")
    assert out.startswith("candidate,class,kind,benchmark")


def test_markdown_of_both_verbs(root: Path) -> None:
    out, _ = run(root, *COMPARE, "--format", "md")
    assert "One new replaces" in out and "| stream all-cores triad |" in out
    out, _ = run(root, "report", "c1", "--format", "md")
    assert out.startswith("# ") and "campaign c1" in out and "| stream all-cores triad |" in out


def test_documents_speak_the_language_that_is_asked_for(root: Path) -> None:
    run(root, *COMPARE, "--html", "a.html", "--lang", "zh-CN")
    text = Path("a.html").read_text()
    assert 'lang="zh-CN"' in text and "基线" in text and "stream all-cores triad" in text


def test_the_command_line_is_in_the_document_and_makes_it_again(root: Path) -> None:
    words = (*COMPARE, "--per", "core", "--only", "stream/*", "--by", "host")
    run(root, *words, "--html", "a.html")
    question = Question(root=root, baseline="gen=old", candidates=["gen=new"], per="core", only=["stream/*"])
    assert question.command() == ["fleetmark", *COMPARE, "--per", "core", "--only", "stream/*", "--results", str(root)]
    assert "--only</span> &#39;stream/*&#39;" in Path("a.html").read_text()


def test_a_pinned_reference_makes_documents_too(root: Path) -> None:
    run(root, "reference", "save", "ref", "--from", "gen=old")
    run(root, "compare", "--reference", "ref", "-c", "gen=new", "--html", "a.html", "--xlsx", "a.xlsx")
    text = Path("a.html").read_text()
    assert "ref@1" in text and "The baseline is pinned" in text
    assert "1 campaign" in text and "2 campaigns" not in text  # the reference is none


def test_one_host_a_side_and_a_missing_class(root: Path) -> None:
    few = root.parent / "few"
    few.mkdir()
    hosts = {"o": {"gen": "old"}, "n": {"gen": "new"}}
    record(few, "c1", hosts, {("o", TRIAD): [1e9] * 3, ("n", TRIAD): [2e9] * 3, ("n", MCF): [5.0] * 3})
    run(few, *COMPARE, "--html", "a.html", "--xlsx", "a.xlsx")
    text = Path("a.html").read_text()
    assert "spec_cpu2017 505.mcf_r base_ratio" in text and "not measured on old" in text


@pytest.mark.parametrize("status", ["failed", None])
def test_a_campaign_where_nothing_passed_has_its_documents(root: Path, status: str | None) -> None:
    empty = root.parent / "empty"
    empty.mkdir()
    archive = record(empty, "c1", {"h1": {}}, {})
    if status:
        held = archive.writable()
        step = {"host": "h1", "workload": "fio", "case": "x", "repeat": 0, "subject": "host", "status": status}
        held.note("outcome", **step, reason="disk on fire", started="", wall_s=None, foreign_cores=None, notes=[])
        held.close()
    out, _ = run(empty, "report", "c1", "--html", "a.html", "--pdf", "a.pdf", "--xlsx", "a.xlsx", "--format", "md")
    assert {p.name for p in Path.cwd().iterdir()} == {"a.html", "a.pdf", "a.xlsx"}
    assert "No run passed, so there is no figure to show." in out
    assert (status is None) or "disk on fire" in Path("a.html").read_text()


# --- what is refused -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("verb", [COMPARE, ("report", "c1")])
@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("--html", "absent/a.html"), "--html absent/a.html: there is no folder absent"),
        (("--pdf", "."), "--pdf .: is a folder"),
        (("--html", "/dev/null"), "--html /dev/null: is not a plain file"),
        (("--xlsx", "/proc/a.xlsx"), "--xlsx /proc/a.xlsx: cannot write there"),
        (("--html", "a", "--pdf", "./a"), "two documents cannot be one file"),
        (("--html", "a.html", "--lang", "zh-cn"), "no language 'zh-cn' (did you mean zh-CN?)"),
        (("--html", "a.html", "--templates", "absent"), "--templates absent: there is no such folder"),
        (("--html", "a.html", "--date", "yesterday"), "--date yesterday: write it as 2026-11-21"),
    ],
)
def test_what_could_not_be_written_is_refused_first(
    root: Path, verb: tuple[str, ...], words: tuple[str, ...], sentence: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fleetmark.record.compare.compare", None)  # nothing of the work has begun
    monkeypatch.setattr("fleetmark.verbs.report.load_results", None)
    assert sentence in refused(root, *verb, *words)


def test_an_epoch_that_is_no_number_is_refused(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "today")
    assert "SOURCE_DATE_EPOCH=today" in refused(root, *COMPARE, "--html", "a.html")


def test_nothing_is_written_where_one_document_cannot_be_made(root: Path) -> None:
    folder = root.parent / "own"
    folder.mkdir()
    (folder / "extra.html.j2").write_text("<p>\n{{ nonsense( }}")
    text = refused(root, *COMPARE, "--xlsx", "a.xlsx", "--html", "a.html", "--templates", str(folder))
    assert "extra.html.j2 line 2" in text


def test_a_damaged_campaign_is_one_sentence(root: Path) -> None:
    (root / "c1" / "journal.jsonl").write_text("nonsense\n{}\n")
    assert "journal.jsonl line 1" in refused(root, *COMPARE, "--html", "a.html")
