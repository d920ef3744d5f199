"""Text from outside never acts on a terminal: the only escape sequences in the output are Fleetmark's own styles."""

from __future__ import annotations

import io
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.table import Table
from rich.text import Text

from fleetmark.base.terminal import Terminal, guard
from fleetmark.base.visible import visible
from tests.records import IOPS, TRIAD, record
from tests.schedules import facts

FLEETMARK = Path(sys.executable).with_name("fleetmark")
# Colour, a window's title, an 8-bit CSI, erasing, a bell, a right-to-left override, an isolate, DEL, markup of rich.
NASTY = "\x1b[31mred\x1b]0;owned\x07\x9b2J\r\x08\u202egnol\u2066\x7f[bold]x[/nothing]"
ACTING = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
RICH_ESCAPES = re.compile(r"\x1b\[(\?25[lh]|2K|1A|[0-9;]*m)|\r")  # rich's: styles, and a spinner that goes again


@given(st.text(alphabet=st.characters()))
def test_no_text_acts(text: str) -> None:
    assert not ACTING.search(visible(text))
    assert visible(visible(text)) == visible(text)


@given(st.text(alphabet=st.characters() | st.sampled_from("\x1b\x9b\u202e[]\ud800 a")), st.integers(1, 60))
def test_no_text_acts_however_it_is_printed(text: str, width: int) -> None:
    sink = io.StringIO()
    console = Terminal()
    console.file, console.width = sink, width
    table = Table(text, title=text)
    table.add_row(Text(text, overflow="ellipsis", no_wrap=True))
    table.add_row(text)
    console.print(text, Text(text), table)
    console.print(Text(text), soft_wrap=True)
    with console.status(text):
        pass
    assert not ACTING.search(sink.getvalue()), repr(sink.getvalue())


def test_styles_still_show(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm")
    console = Terminal()
    console.file = io.StringIO()
    console.print(Text("good", style="green"), Text("\x1b[31mbad", style="bold"))
    assert console.file.getvalue() == "\x1b[32mgood\x1b[0m \x1b[1m␛[31mbad\x1b[0m\n"


def test_whatever_else_is_written_is_shown_too(monkeypatch: pytest.MonkeyPatch) -> None:
    raw = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(raw, "ascii", write_through=True))
    monkeypatch.setattr(sys, "stderr", io.TextIOWrapper(io.BytesIO(), "utf-8"))
    guard()
    print("a\x1b[2Jb\udc80")  # noqa: T201
    Terminal().print("c\x1bd")
    assert raw.getvalue() == b"a\\u241b[2Jb<U+DC80>\nc\\u241bd\n"


# --- every verb ------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A record of hostile hosts: their names, labels, facts, reasons, outputs."""
    root = tmp_path_factory.mktemp("root")
    record(root, "c0", {"plain": {"gen": "old"}, "more": {"gen": "old"}}, {
        (h, b): [1.0, 1.1, 1.2] for h in ("plain", "more") for b in (TRIAD, IOPS)
    })  # fmt: skip
    host = f"h{NASTY}"
    archive = record(root, "c1", {host: {"gen": f"new{NASTY}", "x": NASTY}}, {(host, TRIAD): [1.0, 2.0, 3.0]})
    document = archive.campaign()
    for key in ("suite", "owner"):
        document[key] = NASTY
    document["command"] = ["fleetmark", NASTY]
    document["hosts"][0]["address"] = NASTY
    (archive.path / "campaign.json").write_text(json.dumps(document))
    archive.save_facts(host, facts(hostname=NASTY, os=NASTY, notes=(NASTY,)), {})
    archive.writable()
    for status in ("failed", "lost"):
        step = {"host": host, "workload": "stream", "case": f"{status}{NASTY}", "repeat": 0, "subject": "host"}
        archive.note("outcome", **step, status=status, reason=NASTY)
    archive.close()
    return root


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The current folder: files with hostile names and contents."""
    here = tmp_path_factory.mktemp("here")
    (here / f"out{NASTY.replace('/', '')}.txt").write_text(f"Function {NASTY}\n")
    name = f"h{NASTY}".replace("[", "(")  # a bracket begins a range of hosts
    (here / "inventory.yml").write_text(json.dumps({"all": {"hosts": {name: {"ansible_connection": NASTY}}}}))
    (here / "broken.yml").write_text(f"all: [\n'{NASTY.replace(chr(8), '')}")
    (here / "demand.yml").write_text(json.dumps({"currency": NASTY, NASTY: 1}))
    (here / "suite.yml").write_text(json.dumps({"description": "x", "repeats": 1, "workloads": {NASTY: {}}}))
    (here / "table.csv").write_text(f"host,benchmark,value\n{NASTY},x,1\n")
    return here


VERBS = {
    "report": ["report", "c1"],
    "report as JSON": ["report", "c1", "--format", "json"],
    "report as Markdown": ["report", "c1", "--format", "md"],
    "report as documents": ["report", "c1", "--html", "a.html", "--xlsx", "a.xlsx"],
    "compare": ["compare", "-b", "gen=old", "-c", "gen=new*"],
    "compare as JSON": ["compare", "-b", "gen=old", "-c", "gen=new*", "--format", "json"],
    "compare as CSV": ["compare", "-b", "gen=old", "-c", "gen=new*", "--format", "csv"],
    "compare what is not there": ["compare", "-b", "gen=old", "-c", f"gen={NASTY}"],
    "campaigns": ["campaigns"],
    "campaigns as JSON": ["campaigns", "--format", "json"],
    "reference": ["reference", "save", "r", "--from", "gen=new*"],
    "references": ["reference", "list"],
    "predict": ["predict", "-m", "gen=new*", "-b", "gen=old"],
    "profile": ["profile", "-t", "stream/*/triad", "-r", "disk=fio/*/read_iops"],
    "rebuild a campaign": ["rebuild", "c1"],
    "parse a file": ["parse", "stream", "OUT"],
    "hosts": ["hosts", "-i", "inventory.yml", "--suite", "selftest"],
    "hosts as JSON": ["hosts", "-i", "inventory.yml", "--suite", "selftest", "--format", "json"],
    "an inventory that is broken": ["hosts", "-i", "broken.yml"],
    "a suite": ["run", "--suite", "suite.yml"],
    "a plan": ["plan", "demand.yml"],
    "an import": ["import", "table", "table.csv"],
    "wrong use": ["report", f"--{NASTY}".replace("\x00", "")],
    "a wrong name": ["workloads", NASTY],
}


@pytest.mark.parametrize("colour", [False, True], ids=["plain", "colour"])
@pytest.mark.parametrize("verb", VERBS)
def test_no_verb_passes_on_what_acts(verb: str, colour: bool, root: Path, here: Path) -> None:
    words = [str(next(here.glob("out*"))) if word == "OUT" else word for word in VERBS[verb]]
    env = {**os.environ, "FLEETMARK_RESULTS": str(root), "COLUMNS": "80", "PYTHONUTF8": "1"}
    env |= {"FORCE_COLOR": "1", "TERM": "xterm"} if colour else {"NO_COLOR": "1"}
    done = subprocess.run([FLEETMARK, *words], capture_output=True, cwd=here, env=env, timeout=120)
    output = done.stdout + done.stderr
    text = output.decode()
    assert "Traceback" not in text, text
    assert text
    left = RICH_ESCAPES.sub("", text) if colour else text
    assert not ACTING.search(left), repr(left)
    if "as JSON" in verb:
        json.loads(done.stdout)


def test_documents_hold_nothing_that_acts(root: Path, here: Path) -> None:
    env = {**os.environ, "FLEETMARK_RESULTS": str(root)}
    done = subprocess.run(
        [FLEETMARK, "report", "c1", "--html", "b.html", "--xlsx", "b.xlsx"], cwd=here, env=env, capture_output=True
    )
    assert done.returncode == 0, done.stderr
    page = (here / "b.html").read_text()
    assert "owned" in page
    assert not ACTING.search(page)
