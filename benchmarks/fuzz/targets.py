"""Readers of untrusted bytes, as functions that raise nothing but the errors that their callers expect."""

from __future__ import annotations

import io
import json
import shutil
import tempfile
import zipfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from fleetmark.base.errors import FleetmarkError, ParseError
from fleetmark.base.yaml import read_yaml
from fleetmark.demand import csv as demand_csv
from fleetmark.demand import question, workbook
from fleetmark.hosts import agent, clean
from fleetmark.parsers import facts
from fleetmark.planner.capacity.answer import Answer
from fleetmark.record import imports, replies
from fleetmark.record.archive import Archive
from fleetmark.record.view import load_results
from fleetmark.verbs.watch import probe
from fleetmark.workloads import load_suite
from fleetmark.workloads.manifest import Manifest, read_model
from tests.demands import SMALL
from tests.parsers.damage import TOOLS, check
from tests.parsers.outputs import seeds
from tests.reports import plan_sample

HOUSE = Path(__file__).parents[2]
MOST_SEED = 48 << 10  # bytes; longer real outputs are cut
MOST_LINES = 11  # of an error: ten faults, and how many more there are
SMALL_OUTPUTS = 6  # per tool, the shortest ones


@dataclass(frozen=True, slots=True)
class Target:
    """A reader. ``run`` returns whether it accepts the bytes; ``seeds``: bytes from which fuzzing begins.

    The first byte of an input chooses one of several readers of a kind.
    """

    name: str
    run: Callable[[bytes], bool]
    seeds: Callable[[], Sequence[bytes]]


def chosen(data: bytes, number: int) -> tuple[int, bytes]:
    return (data[0] % number if data else 0), data[1:]


def accepts(read: Callable[[], object], *errors: type[Exception]) -> bool:
    """Return whether ``read`` raises none of ``errors``, whose messages have a line for each of at most ten faults."""
    try:
        read()
    except errors as error:
        assert 0 < len(str(error).splitlines()) <= MOST_LINES, f"no sentence: {error!r}"
        return False
    return True


def run_parser(data: bytes) -> bool:
    """Parse an output. Figures that are nowhere in it count as a crash."""
    number, raw = chosen(data, len(TOOLS))
    return check(TOOLS[number], raw) is not None


def parser_seeds() -> list[bytes]:
    outputs = [(n, raw) for n, tool in enumerate(TOOLS) for raw in sorted(seeds(tool), key=len)[:SMALL_OUTPUTS]]
    return [bytes([n]) + raw[:MOST_SEED] for n, raw in outputs]


def run_facts(data: bytes) -> bool:
    """Read the facts of a host, or the output of one of the commands behind them."""
    tools = facts.tools()
    number, raw = chosen(data, len(tools) + 1)
    if number < len(tools):
        return accepts(lambda: facts.parse(tools[number], raw), ParseError)

    def read() -> None:
        facts.normalise(facts.load(raw), skew=None, root=False, work_dir="/srv/x")

    return accepts(read, FleetmarkError)


def facts_seeds() -> list[bytes]:
    tools = facts.tools()
    folder = HOUSE / "tests" / "parsers" / "facts" / "data"
    inputs = [bytes([len(tools)]) + file.read_bytes()[:MOST_SEED] for file in sorted(folder.glob("*.json"))]
    for number, tool in enumerate(tools):
        inputs += [bytes([number]) + file.read_bytes()[:MOST_SEED] for file in sorted(folder.glob(f"{tool}*"))]
    return inputs


def run_protocol(data: bytes) -> bool:
    """Read what a host sends: an event, an answer of the agent, of its cleaning, of a watch's probe."""
    number, raw = chosen(data, 4)
    if number == 0:
        return accepts(lambda: replies.read_event(raw), replies.NoReply)
    if number == 1:
        answer = agent.answer_in(raw.decode(errors="replace"))
        return accepts(lambda: replies.read_launch(answer), replies.NoReply)
    if number == 2:
        return accepts(lambda: clean.answer_in(raw, raw), FleetmarkError)
    return not probe.parsed(raw).problem


def protocol_seeds() -> list[bytes]:
    events = [
        {"e": "start", "step": "00000"},
        {"e": "part", "step": "00000", "name": "stdout", "data": "eJwDAAAAAAE="},
        {"e": "end", "step": "00000", "files": {"result.json": 12}},
        {"e": "over", "state": "finished", "remaining": 0},
    ]
    holder = {"campaign": "c", "owner": "jane", "since": "now", "process": "4711"}
    reading = {"load": 0.1, "cpus": 2, "sessions": 0, "boot": "b", "last": 1, "counters": {"a": {"b": 1}}, "gauges": {}}
    return [
        *(b"\0" + json.dumps(event).encode() for event in events),
        b"\1FLEETMARK" + json.dumps({"state": "busy", "holder": holder}).encode() + b"\n",
        b"\2FLEETMARK" + json.dumps({"bytes": 1, "packages": ["fio"], "results": [], "kept": "x"}).encode(),
        b"\3FLEETMARK" + json.dumps({**reading, "events": {}}).encode(),
    ]


def in_file(name: str, raw: bytes, read: Callable[[Path], object]) -> bool:
    """Write ``raw`` to a file and read it."""
    with tempfile.TemporaryDirectory(prefix="fleetmark-fuzz-", dir=_memory()) as folder:
        file = Path(folder, name)
        file.write_bytes(raw)
        return accepts(lambda: read(file), FleetmarkError)


def run_yaml(data: bytes) -> bool:
    """Read a suite, a manifest, or a question of capacity."""
    number, raw = chosen(data, 3)
    if number == 0:
        return in_file("x.yml", raw, lambda file: load_suite(str(file)))
    if number == 1:
        return in_file("x.yml", raw, lambda file: read_model(file, Manifest))
    return in_file("x.yml", raw, lambda file: question.read(file, file.parent))


def yaml_seeds() -> list[bytes]:
    suites = sorted((HOUSE / "workloads" / "suites").glob("*.yml"))
    manifests = sorted((HOUSE / "workloads").glob("*.yml"), key=lambda file: file.stat().st_size)[:12]
    return [
        *(b"\0" + file.read_bytes() for file in suites),
        *(b"\1" + file.read_bytes() for file in manifests),
        b"\2" + SMALL.encode(),
    ]


@cache
def _sheets() -> dict[str, str]:
    """Return the sheets of the example's question by name."""
    periods = question.read(question.EXAMPLE, Path()).periods
    return demand_csv.sheets(read_yaml(question.EXAMPLE), periods)


KINDS = sorted(imports._KINDS)


def run_tables(data: bytes) -> bool:
    """Import a published table in CSV or JSON, or a question in a folder of CSV sheets."""
    names = sorted(_sheets())
    number, raw = chosen(data, len(KINDS) + len(names))
    if number < len(KINDS):
        return in_file("x.csv", raw, lambda file: imports.files(file.parent, KINDS[number], [file]))

    def read(file: Path) -> None:
        for name, text in _sheets().items():
            (file.parent / name).write_text(text)
        file.rename(file.parent / names[number - len(KINDS)])
        question.read(file.parent, file.parent)

    return in_file("raw", raw, read)


TABLE = "host,benchmark,value,unit,better\na,app/score,12.5,1/s,higher\nb,app/score,11,1/s,higher\n"


def table_seeds() -> list[bytes]:
    known = {n: seeds(kind) for n, kind in enumerate(KINDS) if kind in TOOLS}
    inputs = [bytes([n]) + raw[:MOST_SEED] for n, outputs in known.items() for raw in sorted(outputs, key=len)[:3]]
    inputs.append(bytes([KINDS.index("table")]) + TABLE.encode())
    return inputs + [bytes([len(KINDS) + n]) + _sheets()[name].encode() for n, name in enumerate(sorted(_sheets()))]


@cache
def _book() -> dict[str, bytes]:
    """Return the parts of a plan's workbook by name."""
    q = plan_sample.question()
    packed = plan_sample.workbook(Answer(q, plan_sample.plan(q)), created="2027-01-20T10:00:00Z")
    with zipfile.ZipFile(io.BytesIO(packed)) as book:
        return {name: book.read(name) for name in sorted(book.namelist())}


def run_workbook(data: bytes) -> bool:
    """Read a plan's workbook of which one part is replaced, or any bytes instead of a workbook."""
    parts = list(_book())
    number, raw = chosen(data, len(parts) + 1)
    packed = raw
    if number < len(parts):
        out = io.BytesIO()
        with zipfile.ZipFile(out, "w") as book:
            for name, content in _book().items():
                book.writestr(name, raw if name == parts[number] else content)
        packed = out.getvalue()
    return in_file("x.xlsx", packed, lambda file: workbook.read(file, file.parent))


def workbook_seeds() -> list[bytes]:
    return [bytes([n]) + content[:MOST_SEED] for n, content in enumerate(_book().values())]


@cache
def _archive() -> tuple[Path, tuple[str, ...]]:
    """Return an unpacked campaign, and the names of its files."""
    root = Path(tempfile.mkdtemp(prefix="fleetmark-fuzz-archive-", dir=_memory()))
    shutil.unpack_archive(HOUSE / "tests" / "archives" / "0.2.0.tar.xz", root)
    (campaign,) = root.glob("*/campaign.json")
    files = sorted(str(f.relative_to(campaign.parent)) for f in campaign.parent.rglob("*") if f.is_file())
    return campaign.parent, tuple(files)


def run_archive(data: bytes) -> bool:
    """Read a campaign of which one file is replaced: JSON, a journal, Parquet, or raw output."""
    campaign, names = _archive()
    number, raw = chosen(data, len(names))
    file, kept = campaign / names[number], (campaign / names[number]).read_bytes()
    file.write_bytes(raw)
    try:
        return accepts(lambda: load_results(Archive.open(campaign)), FleetmarkError)
    finally:
        file.write_bytes(kept)


def archive_seeds() -> list[bytes]:
    campaign, names = _archive()
    return [bytes([n]) + (campaign / name).read_bytes()[:MOST_SEED] for n, name in enumerate(names)]


def _memory() -> str | None:
    """Return a folder in memory, where files cost no disk writes; None: the usual place."""
    return "/dev/shm" if Path("/dev/shm").is_dir() and shutil.disk_usage("/dev/shm").free > 64 << 20 else None


TARGETS = {
    target.name: target
    for target in (
        Target("parsers", run_parser, parser_seeds),
        Target("facts of hosts", run_facts, facts_seeds),
        Target("protocol of the agent", run_protocol, protocol_seeds),
        Target("YAML", run_yaml, yaml_seeds),
        Target("CSV and JSON tables", run_tables, table_seeds),
        Target("workbooks", run_workbook, workbook_seeds),
        Target("archives and Parquet", run_archive, archive_seeds),
    )
}
