"""Test that a document's figures are made again from its record, and that its manifest is untrusted input."""

from __future__ import annotations

import io
import json
import re
import shutil
import zipfile
from dataclasses import fields
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from pydantic import ValidationError
from typer.testing import CliRunner

from fleetmark.base.errors import FleetmarkError
from fleetmark.cli.app import app
from fleetmark.record.archive import Archive
from fleetmark.record.compare import Question
from fleetmark.reports.kit import manifest as text_of
from fleetmark.verbs.documents import Documents
from fleetmark.verbs.manifest import Comparing, Diagnosing, Gating, Planning, manifest_of
from fleetmark.verbs.verify import planned
from fleetmark.verbs.verify.content import _CELL, _LAYOUT, _TEXT
from tests.commands import refused, run
from tests.demands import changed
from tests.fleets import sick
from tests.records import IOPS, TRIAD, record

OLD, NEW = "20261101T000000-x-aaaa", "20261102T000000-x-bbbb"
COMPARE = ("compare", "-b", "gen=icelake", "-c", "gen=genoa", "--date", "2026-11-25")
KINDS = ("html", "xlsx", "md", "json")


def begin(root: Path, name: str, gen: str, value: float) -> None:
    hosts = {f"{gen}-{n}": {"gen": gen} for n in range(4)}
    measured = {
        (h, b): [value * f, value * f * 1.01] for n, h in enumerate(hosts) for b, f in ((TRIAD, 1e9), (IOPS, 1e3 + n))
    }
    archive = record(root, name, hosts, measured).writable()
    archive.record("measurements.parquet")
    digests = {h: Archive(archive.path).digest(f"facts/{h}.json")[1] for h in hosts}
    archive.save_campaign({**archive.campaign(), "facts": digests})
    archive.end("ended", owed=0)
    archive.close()


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with a results root and a comparison in several formats."""
    folder = tmp_path_factory.mktemp("verify")
    begin(folder / "results", OLD, "icelake", 100.0)
    begin(folder / "results", NEW, "genoa", 190.0)
    outputs = [word for kind in KINDS for word in ("-o", str(folder / f"c.{kind}"))]
    run(folder / "results", *COMPARE, *outputs)
    run(folder / "results", "report", OLD, "-o", str(folder / "r.md"), "-o", str(folder / "r.json"))
    return folder


@pytest.fixture
def folder(recorded: Path, tmp_path: Path) -> Path:
    """Return a copy that a test may change."""
    return Path(shutil.copytree(recorded, tmp_path / "copy"))


def verify(folder: Path, name: str, *words: str) -> dict[str, Any]:
    words = ("verify", str(folder / name), "--results", str(folder / "results"), "--format", "json", *words)
    done = CliRunner().invoke(app, words, catch_exceptions=False)
    answer: dict[str, Any] = json.loads(done.stdout)
    assert done.exit_code == (0 if answer["result"] == "equal" else 1)
    return answer


@pytest.mark.parametrize("name", ["c.html", "c.xlsx", "c.md", "c.json", "r.md", "r.json"])
def test_a_document_is_equal_to_its_record_wherever_that_lies(folder: Path, name: str) -> None:
    answer = verify(folder, name)
    assert (answer["result"], answer["differences"]) == ("equal", [])
    assert all(r["signed_here"] for r in answer["records"])


def test_a_pdf_is_verified_where_it_was_made(tmp_path: Path) -> None:
    begin(tmp_path / "results", OLD, "icelake", 100.0)
    run(tmp_path / "results", "report", OLD, "-o", str(tmp_path / "r.pdf"))
    assert verify(tmp_path, "r.pdf")["result"] == "equal"
    raw = (tmp_path / "r.pdf").read_bytes()
    assert raw.count(b"/EmbeddedFile") >= 1
    (tmp_path / "r.pdf").write_bytes(raw + b"\n")
    (difference,) = verify(tmp_path, "r.pdf")["differences"]
    assert difference["place"] == "pages"


def test_a_manifest_names_no_path(folder: Path) -> None:
    for kind in KINDS:
        manifest = manifest_of((folder / f"c.{kind}").read_bytes(), kind)
        assert set(manifest.inputs) == {OLD, NEW}
        assert manifest.question.verb == "compare" and manifest.created == "2026-11-25T00:00:00.000Z"
        assert "/" not in manifest.model_dump_json(include={"question", "inputs", "created", "commit"})


def test_an_edited_figure_is_named_in_every_format(folder: Path) -> None:
    page = folder / "c.html"
    text = page.read_text()
    figure = re.search(r"1\.90", text)
    assert figure
    page.write_text(text.replace("1.90", "2.90"))
    differences = verify(folder, "c.html")["differences"]
    assert any(d["place"].startswith("line ") and "2.90" in d["reason"] for d in differences)
    markdown = folder / "c.md"
    markdown.write_text(markdown.read_text().replace("1.90", "2.90"))
    differences = verify(folder, "c.md")["differences"]
    assert any("2.90" in d["reason"] for d in differences)
    document = json.loads((folder / "c.json").read_text())
    document["created"] = document.get("created", "") + "x"
    (folder / "c.json").write_text(json.dumps(document))
    (difference,) = verify(folder, "c.json")["differences"]
    assert difference["place"] == "created"
    assert _edited_cell(folder / "c.xlsx") in [d["place"] for d in verify(folder, "c.xlsx")["differences"]]


def _edited_cell(file: Path) -> str:
    """Change a number in a workbook, and return its sheet and cell."""
    with zipfile.ZipFile(file) as book:
        parts = {name: book.read(name) for name in book.namelist()}
    sheets = re.findall(r'<sheet name="([^"]*)"', parts["xl/workbook.xml"].decode())
    for number in range(1, len(sheets) + 1):
        name = f"xl/worksheets/sheet{number}.xml"
        cells = re.finditer(rb'<c r="([A-Z]+[0-9]+)"([^>]*)><v>([0-9.]+)</v>', parts[name])
        cell = next((c for c in cells if b't="s"' not in c[2]), None)
        if cell:
            changed = cell[0].replace(b"<v>", b"<v>9")
            parts[name] = parts[name].replace(cell[0], changed)
            break
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as book:
        for part, raw in parts.items():
            book.writestr(part, raw)
    file.write_bytes(out.getvalue())
    assert cell
    return f"sheet '{sheets[number - 1]}', cell {cell[1].decode()}"


def test_a_doctored_record_is_named_with_the_exhibits(folder: Path) -> None:
    file = folder / "results" / NEW / "measurements.parquet"
    table = pq.read_table(file)
    values = [v * 1.5 for v in table.column("value").to_pylist()]
    pq.write_table(table.set_column(table.schema.get_field_index("value"), table.schema.field("value"), [values]), file)
    places = [d["place"] for d in verify(folder, "c.md")["differences"]]
    assert places[0] == f"{NEW}/measurements.parquet"
    assert any(":" in p for p in places[1:]), "an exhibit has other figures"
    assert places[-1].startswith("line ")


def test_campaigns_that_came_later_do_not_change_the_answer(folder: Path) -> None:
    begin(folder / "results", "20261103T000000-x-cccc", "genoa", 400.0)
    assert verify(folder, "c.md")["result"] == "equal"
    again = Archive.open(folder / "results" / OLD).writable()
    again.end("rebuilt")
    again.close()
    assert verify(folder, "c.md")["result"] == "equal"


def test_a_record_that_is_missing_is_named(folder: Path) -> None:
    shutil.rmtree(folder / "results" / NEW)
    sentence = refused(folder / "results", "verify", str(folder / "c.md"))
    assert f"its figures come from {NEW}, which is not in" in sentence and "--results" in sentence


def test_what_is_no_document_is_one_sentence(folder: Path) -> None:
    for name, content, words in (
        ("x.txt", b"", "ends in .html"),
        ("x.csv", b"", "ends in .html"),
        ("x.html", b"<p>", "it has no manifest"),
        ("x.json", b"[" * 100_000, "no manifest that can be read"),
        ("x.xlsx", b"PK", "no manifest that can be read"),
        ("x.md", b'{"fleetmark_manifest":1,', "no manifest that can be read"),
        ("x.pdf", b"%PDF", "it has no manifest"),
    ):
        (folder / name).write_bytes(content)
        assert words in refused(folder / "results", "verify", str(folder / name))


HOSTILE: list[dict[str, Any]] = [
    {"inputs": {"../../etc": {}}},
    {"inputs": {"/etc": {}}},
    {"inputs": {"imports/../x": {}}},
    {"inputs": {OLD: {"chain": "x"}}},
    {"inputs": {str(n): {} for n in range(5000)}},
    {"question": {"verb": "run"}},
    {"question": {"verb": "report", "campaign": "../x"}},
    {"question": {"verb": "report", "campaign": "-o"}},
    {"question": {"verb": "report", "campaign": OLD, "output": "/tmp/x"}},
    {"question": {"verb": "compare", "candidates": ["gen=genoa"], "mix": "/etc/secret.yml"}},
    {"question": {"verb": "compare", "candidates": ["gen=genoa"], "mix": "x=1.yml"}},
    {"question": {"verb": "compare", "candidates": ["gen=genoa"], "reference": "../../x"}},
    {"question": {"verb": "compare", "candidates": ["gen=genoa"], "root": "/"}},
    {"question": {"verb": "compare", "candidates": ["x" * 501]}},
    {"question": {"verb": "compare", "candidates": []}},
    {"kinds": ["exe"]},
    {"language": "../x"},
    {"created": "{{ 7 * 7 }}"},
    {"exhibits": {"x" * 301: "0"}},
    {"templates": "/tmp"},
    {"surplus": 1},
    {"fleetmark_manifest": 2},
]


@pytest.mark.parametrize("part", HOSTILE, ids=[json.dumps(h)[:60] for h in HOSTILE])
def test_a_hostile_manifest_is_refused_in_one_sentence(recorded: Path, part: dict[str, Any]) -> None:
    document = json.loads((recorded / "c.json").read_text())
    document["manifest"] |= part
    with pytest.raises(FleetmarkError, match=r"its manifest .*it was edited, or a newer Fleetmark wrote it"):
        manifest_of(json.dumps(document).encode(), "json")


def test_another_question_in_the_manifest_is_found(folder: Path) -> None:
    text = (folder / "c.md").read_text()
    assert '"gen=genoa"' in text
    (folder / "c.md").write_text(text.replace('"candidates":["gen=genoa"]', '"candidates":["gen=icelake"]'))
    assert verify(folder, "c.md")["result"] == "different"


def test_a_manifest_is_inert_in_every_format() -> None:
    hostile = {"a": "</script><!-- --> ${x} {{ x }} ]]> \n endstream", "b": "--" * 9}
    line = text_of.written(hostile)
    assert line.isascii() and not set("<>& \n") & set(line) and "--" not in line
    assert text_of.read(f"x {line} y".encode(), "md") == {"fleetmark_manifest": 1, **hostile}
    long = {"inputs": {f"c{n}": "0" * 64 for n in range(2000)}}
    assert json.loads("".join(text_of.parts(long))) == {"fleetmark_manifest": 1, **long}


def test_bombs_are_bounded() -> None:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as book:
        book.writestr("xl/sharedStrings.xml", b'{"fleetmark_manifest":1,"a":"' + b"0" * (64 << 20))
    with pytest.raises(FleetmarkError, match="no manifest that can be read"):
        text_of.read(out.getvalue(), "xlsx")


def test_every_option_of_a_comparison_is_in_its_manifest() -> None:
    """``root`` is given anew, and ``campaigns`` are the manifest's inputs."""
    assert set(Comparing.model_fields) - {"verb"} == {f.name for f in fields(Question)} - {"root", "campaigns"}


def test_a_comparison_with_costs_is_made_again_with_them(tmp_path: Path) -> None:
    begin(tmp_path / "results", OLD, "icelake", 100.0)
    begin(tmp_path / "results", NEW, "genoa", 190.0)
    prices = [word for price in ("icelake=9000 EUR", "genoa=15500 EUR") for word in ("--price", price)]
    watts = [word for power in ("icelake=500", "genoa=650") for word in ("--watts", power)]
    terms = ("--term", "4y", "--energy", "0.25 EUR/kWh", "--replace", "250", *prices, *watts)
    outputs = [word for kind in KINDS for word in ("-o", str(tmp_path / f"c.{kind}"))]
    run(tmp_path / "results", *COMPARE, *terms, *outputs)
    assert "Per year over 4 years, with energy" in (tmp_path / "c.md").read_text()
    for kind in KINDS:
        assert verify(tmp_path, f"c.{kind}")["differences"] == []


def test_elements_without_an_end_are_read_in_one_pass() -> None:
    many = 300_000
    assert _CELL.findall(b'<c r="A1"><v>' * many) == [] and _TEXT.findall(b"<si><t>" * many) == []
    assert _LAYOUT.sub(b"", b"<cols><col>" * many) == b"<cols><col>" * many
    assert _CELL.findall(b'<c r="A1" s="1"/><c r="B2" t="s"><f>A1</f><v>3</v></c>') == [
        (b"A1", b' s="1"', b""),
        (b"B2", b' t="s"', b"<f>A1</f><v>3</v>"),
    ]
    assert _TEXT.findall(b"<si><t>one</t></si><si><r><t>two</t></r></si>") == [b"<t>one</t>", b"<r><t>two</t></r>"]


def test_a_diagnosis_is_made_again_from_its_record(tmp_path: Path) -> None:
    archive = sick(tmp_path / "results")
    outputs = [word for kind in ("html", "json") for word in ("-o", str(tmp_path / f"d.{kind}"))]
    words = ("diagnose", archive.id, "--least", "mem-bw=2%", "--date", "2026-11-25", *outputs)
    CliRunner().invoke(app, [*words, "--results", str(tmp_path / "results")], catch_exceptions=False)
    question = manifest_of((tmp_path / "d.json").read_bytes(), "json").question
    assert question == Diagnosing(verb="diagnose", campaign=archive.id, least={"mem-bw": 0.02})
    for kind in ("html", "json"):
        assert verify(tmp_path, f"d.{kind}")["differences"] == []
    text = (tmp_path / "d.html").read_text()
    assert "n03" in text
    (tmp_path / "d.html").write_text(text.replace("n03", "n04"))
    assert verify(tmp_path, "d.html")["result"] == "different"


# --- gate and plan ---------------------------------------------------------------------------------------------------

RULES = "description: x\nrules:\n  - {name: bandwidth, metric: 'stream/*/triad', at_least: 250 GB/s}\n"


def test_the_verdicts_of_a_gate_are_made_again_from_the_rules_in_its_manifest(tmp_path: Path) -> None:
    sick(tmp_path / "results")
    rules = tmp_path / "mine.yml"
    rules.write_text(RULES)
    words = ["gate", str(rules), "last", "-o", str(tmp_path / "g.md"), "--results", str(tmp_path / "results")]
    assert CliRunner().invoke(app, words).exit_code == 1
    rules.unlink()
    assert verify(tmp_path, "g.md")["result"] == "equal"
    text = (tmp_path / "g.md").read_text()
    (tmp_path / "g.md").write_text(text.replace("is below 250 GB/s", "meets 250 GB/s"))
    assert any("is below 250" in d["reason"] for d in verify(tmp_path, "g.md")["differences"])
    (tmp_path / "g.md").write_text(text.replace("stream/*/triad", "stream/*/"))
    assert verify(tmp_path, "g.md")["result"] == "different"


@pytest.mark.parametrize("only", ["@/etc/passwd", "n01,@/etc/passwd", "~(a+)+$"])
def test_a_manifest_chooses_no_hosts_by_a_file_or_an_expression(only: str) -> None:
    with pytest.raises(ValidationError, match="by names or labels"):
        Gating(verb="gate", campaign="a", file="r.yml", only=only, rules="{}")


def test_a_diagnosis_with_rules_is_made_again_from_its_manifest(tmp_path: Path) -> None:
    sick(tmp_path / "results")
    rules = tmp_path / "mine.yml"
    rules.write_text(RULES)
    words = ["diagnose", "last", "--rules", str(rules), "--date", "2026-11-25", "-o", str(tmp_path / "d.html")]
    assert CliRunner().invoke(app, [*words, "--results", str(tmp_path / "results")]).exit_code == 1
    rules.unlink()
    assert verify(tmp_path, "d.html")["result"] == "equal"
    text = (tmp_path / "d.html").read_text()
    (tmp_path / "d.html").write_text(text.replace("is below 250 GB/s", "meets 250 GB/s"))
    assert verify(tmp_path, "d.html")["result"] == "different"


def test_a_plan_is_solved_again_from_the_files_in_its_manifest(tmp_path: Path) -> None:
    file = tmp_path / "demand.yml"
    file.write_text(changed("count: 4", "count: 2", changed("[100, 110, 120, 130]", "[100, 130]")))
    (tmp_path / "results").mkdir()
    words = ["plan", str(file), "--draws", "100", "-o", str(tmp_path / "p.md"), "--results", str(tmp_path / "results")]
    assert CliRunner().invoke(app, words).exit_code == 0
    file.unlink()
    assert verify(tmp_path, "p.md")["result"] == "equal"
    text = (tmp_path / "p.md").read_text()
    (tmp_path / "p.md").write_text(text.replace("Buy ", "Buy 9", 1))
    assert any(d["place"].startswith("line ") for d in verify(tmp_path, "p.md")["differences"])


@pytest.mark.parametrize("named", ["/etc/passwd", "../other.csv", "history.csv"])
def test_a_plan_made_again_reads_no_other_file(tmp_path: Path, named: str) -> None:
    text = changed("demand: [100, 110, 120, 130]", f"demand: {{history: {{file: {named}}}}}")
    options = Planning.model_construct(
        verb="plan", file="demand.yml", files={"demand.yml": text}, scenarios=[], gap=0.01, seconds=1.0, draws=100,
        seed=1, command="", solved_s=0.0, took_s=0.0,
    )  # fmt: skip
    with pytest.raises(FleetmarkError, match="which its manifest does not contain"):
        planned.again(options, tmp_path, Documents())


@pytest.mark.parametrize("name", ["../demand.yml", "/demand.yml", ".hidden", "a/b.yml", ""])
def test_a_files_name_in_a_manifest_is_no_path(name: str) -> None:
    with pytest.raises(ValidationError):
        Planning.model_validate(
            {"verb": "plan", "file": "d.yml", "files": {name: "x"}, "gap": 0.01, "seconds": 1.0, "draws": 100}
            | {"seed": 1, "command": "", "solved_s": 0.0, "took_s": 0.0}
        )
