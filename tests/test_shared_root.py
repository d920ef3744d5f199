"""Test a results root that others can write to: planted content is never executed, contacted or written through."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import socket
import subprocess
from collections.abc import Iterator
from itertools import cycle, islice
from pathlib import Path
from typing import Any

import pytest
import yaml

from fleetmark.base.errors import FleetmarkError
from fleetmark.campaign.options import Options
from fleetmark.record.archive import Archive
from fleetmark.record.campaigns import campaigns_inside, find
from fleetmark.verbs.confirm import with_suite
from fleetmark.verbs.manifest import commit
from tests.fleets import older_baseline
from tests.records import IOPS, NULL, TRIAD, record
from tests.selftests import CAMPAIGN, measured_here
from tests.watch import WATCH, content, invoke

RULES = """rules:
  - name: bandwidth
    metric: stream/all-cores/triad
    at_least: 1 GB/s
"""
TABLE = "machine,gen,benchmark,metric,unit,better,value\nx1,new,b1,rate,1/s,higher,100\nx2,old,b1,rate,1/s,higher,50\n"


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a results root with a self-test, two generations, an import, references and a profile."""
    folder = tmp_path_factory.mktemp("shared")
    root = folder / "root"
    measured_here(root)
    hosts = {f"{g}{n}": {"gen": g} for g in "ab" for n in range(8)}
    values = {
        (h, b): [scale * (1 + n / 200 + (h[0] == "b")), 1.01 * scale]
        for n, h in enumerate(hosts)
        for b, scale in ((TRIAD, 1e9), (IOPS, 1e5), (NULL, 1e-7))
    }
    record(root, "20261001T000000-standard-0000", hosts, values)
    (folder / "rules.yml").write_text(RULES)
    (folder / "figures.csv").write_text(TABLE)
    (folder / "more.csv").write_text(TABLE.replace("x1", "y1"))
    older_baseline(root, "older", "20261001")
    for verb in PREPARE:
        assert invoke(root, verb).exit_code in (0, 1), verb
    return root


PREPARE = (
    "import table FOLDER/figures.csv",
    "reference save ice --from gen=a",
    "reference save ice --from 20261001T000000-standard-0000",
    "campaigns",
)
READING = (
    "report last",
    "report last --html FOLDER/out.html --xlsx FOLDER/out.xlsx",
    "report 20261001 --format json",
    "compare -b gen=a -c gen=b --html FOLDER/out.html",
    "compare -b gen=old -c gen=new --format md",
    "diagnose last",
    "diagnose 20261001 --reference ice",
    "diagnose 20261001 --reference older",
    "history",
    "gate FOLDER/rules.yml 20261001",
    "tune --campaign last",
    "predict -m host=b1",
    "campaigns",
    "reference list",
)
WRITING = (
    "import table FOLDER/more.csv",
    *PREPARE[1:],
    f"rebuild {CAMPAIGN}",
    f"report {CAMPAIGN}",
    "profile -t stream/*/triad -r io=fio/*/read_iops --save p1",
)
RUNNING = (
    f"run --resume {CAMPAIGN}",
    "run --resume last",
    "diagnose 20261001 --confirm",
    f"diagnose {CAMPAIGN} --confirm",
    f"tune {socket.gethostname()} governor --try -b --campaign {CAMPAIGN}",
)


@pytest.fixture
def root(sound: Path, tmp_path: Path) -> Path:
    shutil.copytree(sound.parent, tmp_path / "shared", symlinks=True)
    return tmp_path / "shared" / "root"


# --- writes stay inside ----------------------------------------------------------------------------------------------


def looks(root: Path) -> dict[str, tuple[int, int, int]]:
    """Map every path below ``root`` to its inode, size and modification time."""
    paths = [path for path in root.rglob("*") if not path.is_dir() or path.is_symlink()]
    return {str(p.relative_to(root)): (i.st_ino, i.st_size, i.st_mtime_ns) for p in paths for i in [p.lstat()]}


def plant_link(path: Path, victim: Path) -> None:
    path.unlink(missing_ok=True)
    path.symlink_to(victim / "file")


def plant_hard_link(path: Path, victim: Path) -> None:
    path.unlink(missing_ok=True)
    path.hardlink_to(victim / "file")


def plant_link_above(path: Path, victim: Path) -> None:
    """Replace the file's folder with a symlink to a copy in the victim's folder."""
    shutil.copytree(path.parent, victim / "folder", symlinks=True, dirs_exist_ok=True)
    shutil.rmtree(path.parent)
    path.parent.symlink_to(victim / "folder")


def plant_pipe(path: Path, victim: Path) -> None:
    path.unlink(missing_ok=True)
    os.mkfifo(path)


PLANTS = (plant_link, plant_hard_link, plant_link_above, plant_pipe)


@pytest.mark.parametrize("verb", WRITING)
def test_no_verb_writes_through_a_link(root: Path, tmp_path: Path, verb: str) -> None:
    clean = tmp_path / "clean"
    shutil.copytree(root.parent, clean, symlinks=True)
    before = looks(root)
    assert invoke(root, verb).exit_code == 0
    written = [name for name, now in looks(root).items() if before.get(name) != now]
    assert written, "list only verbs that write files"
    for name in written:
        for plant in PLANTS:
            if plant is plant_link_above and "/" not in name:
                continue  # the user chooses the root, so it may be a symlink
            shutil.rmtree(root.parent)
            shutil.copytree(clean, root.parent, symlinks=True)
            victim = tmp_path / "victim"
            shutil.rmtree(victim, ignore_errors=True)
            victim.mkdir()
            (victim / "file").write_text("precious\n")
            path = root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            plant(path, victim)
            held = content(victim)
            invoke(root, verb)
            assert content(victim) == held, f"{verb} wrote through {name} ({plant.__name__})"


# --- reading runs nothing and contacts nobody ------------------------------------------------------------------------

COMMAND = "{{ lookup('pipe', 'touch CANARY') }}$(touch CANARY)`touch CANARY`;touch CANARY;\n#!/bin/sh\ntouch CANARY\n"
PATH = "../../../../../../CANARY/planted"
ADDRESS = "s3://127.0.0.1:9/bucket"


def planted(document: Any, text: str) -> Iterator[tuple[str, Any]]:
    """Yield copies of a JSON document, each with ``text`` as every string below one key or one nested key."""

    def all_strings(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: all_strings(inner) for key, inner in value.items()}
        if isinstance(value, list):
            return [all_strings(inner) for inner in value]
        return text if isinstance(value, str) else value

    for key, value in document.items():
        if isinstance(value, dict) and len(value) < 30:
            for inner, nested in value.items():
                if all_strings(nested) != nested:
                    yield f"{key}.{inner}", {**document, key: {**value, inner: all_strings(nested)}}
        elif all_strings(value) != value:
            yield key, {**document, key: all_strings(value)}
        elif value is None:
            yield key, {**document, key: text}


def documents(root: Path) -> list[Path]:
    """Return one file of each kind that a verb reads, and every campaign.json."""
    kinds = (
        "*/facts/*.json",
        "*/jobs/*.json",
        "*/raw/*/*/*/*/step.json",
        "*/raw/*/*/*/*/result.json",
        "*/journal.jsonl",
    )
    shelves = ("imports/*/import.json", "references/*.json", "baselines/*.json", "../rules.yml")
    first = [next(iter(sorted(root.glob(kind)))) for kind in (*kinds, *shelves)]
    return [*sorted(root.glob("*/campaign.json")), *first]


def hostile(file: Path, text: str) -> Iterator[tuple[str, str]]:
    """Yield the content of ``file`` with ``text`` planted under each key in turn. JSON is valid YAML, too."""
    if file.suffix == ".jsonl":
        lines = file.read_text().splitlines()
        kinds = {json.loads(line)["e"]: number for number, line in enumerate(lines)}
        for kind, number in kinds.items():
            for key, event in planted(json.loads(lines[number]), text):
                yield f"{kind} {key}", "\n".join([*lines[:number], json.dumps(event), *lines[number + 1 :], ""])
    else:
        for key, document in planted(yaml.safe_load(file.read_text()), text):
            yield key, json.dumps(document)


def test_nothing_planted_in_a_document_runs_or_is_reached(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Plant a command, a path and an address under every key of every kind of document.

    Run every verb that acts on the document each time; rotate the verbs that only show it. Verbs that act on the other
    campaign rotate for a campaign.json; after damage to a step they may rightly run it again.
    """
    commit()  # runs Git once in a process, for the manifest of a document
    canary = tmp_path / "canary"
    canary.mkdir()
    texts = (COMMAND.replace("CANARY", str(canary / "sung")), PATH.replace("CANARY", str(canary)[1:]), ADDRESS)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    reading, others, tried = cycle(READING), cycle((*READING, *RUNNING)), set()
    for file in documents(root):
        raw = file.read_bytes()
        acting, rotating = ("gate FOLDER/rules.yml 20261001",) if file.name == "rules.yml" else (), reading
        if file.name == "campaign.json":
            names = ("last", CAMPAIGN) if file.parent.name == CAMPAIGN else ("last", "20261001")
            acting, rotating = tuple(verb for verb in RUNNING if set(names) & set(verb.split())), others
            assert len(acting) >= 2
        for turn, text in enumerate(texts):
            file.write_bytes(raw)
            for key, text_planted in list(islice(hostile(file, text), turn, None, len(texts))):
                file.write_text(text_planted)
                with WATCH.over(root.parent, tmp_path / "cache"):
                    for verb in (*acting, next(rotating)):
                        invoke(root, verb)
                assert not WATCH.seen, f"{file.relative_to(root.parent)} {key}: {WATCH.seen[:3]}"
                tried.add((file, key))
        file.write_bytes(raw)
    assert len({file for file, _ in tried}) == 11, "expected one file of each kind and a second campaign.json"
    assert not list(canary.iterdir())


def test_the_watch_sees_processes_connections_and_files(tmp_path: Path) -> None:
    with WATCH.over(tmp_path / "allowed"):
        subprocess.run(["true"], check=True)
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", 9), timeout=1):
            pass
        (tmp_path / "file").write_text("x")
    words = {seen.split()[0] for seen in WATCH.seen}
    assert {"subprocess.Popen", "socket.connect", "open"} <= words


def test_links_planted_among_raw_files_show_nothing(root: Path, tmp_path: Path) -> None:
    """Check that verbs neither parse nor show a symlink in place of a raw file."""
    secret = tmp_path / "secret"
    secret.mkdir()
    for name in ("stdout", "result.json", "step.json", "measurements.parquet", "summary.html", "import.json"):
        (secret / name).write_text("root:$6$hash:19000:0:99999:7:::")
    for file in [path for path in root.rglob("*") if path.is_file() and path.parent != root]:
        raw = file.read_bytes()
        file.unlink()
        file.symlink_to(secret / "stdout")
        folder = file.relative_to(root).parts[0]
        shown = "last" if folder in ("imports", "references", "baselines") else folder
        for verb in (f"rebuild {CAMPAIGN}", f"report {shown} --format json", "campaigns", "diagnose last"):
            assert "$6$hash" not in invoke(root, verb).output, f"{verb} shows what {file.name} links to"
        file.unlink(missing_ok=True)
        file.write_bytes(raw)


def test_folders_that_are_links_hold_no_campaigns_and_no_raw_files(root: Path, tmp_path: Path) -> None:
    """Ignore linked folders, since their campaigns would be resumed, indexed and named in the shared journal."""
    private = tmp_path / "private"
    shutil.copytree(root / CAMPAIGN, private / CAMPAIGN)
    (root / CAMPAIGN / "confirmations").symlink_to(private)
    assert campaigns_inside(Archive(root / CAMPAIGN), "confirmations") == []
    linked = root / "20270101T000000-x-0000"
    linked.symlink_to(private / CAMPAIGN)
    assert linked.name not in invoke(root, "campaigns --format json").output
    assert linked.name not in (root / ".campaigns.jsonl").read_text()
    with pytest.raises(FleetmarkError, match="a link; use the folder that it points to"):
        find(root, str(linked))
    (private / "deep" / "of" / "secret" / "names").mkdir(parents=True)
    shutil.rmtree(root / CAMPAIGN / "raw")
    (root / CAMPAIGN / "raw").symlink_to(private)
    assert list(Archive(root / CAMPAIGN).steps()) == []


def test_a_pipe_in_place_of_measurements_holds_nobody_up(root: Path) -> None:
    file = root / CAMPAIGN / "measurements.parquet"
    file.unlink()
    os.mkfifo(file)
    for verb in ("report last", "diagnose last"):
        result = invoke(root, verb)
        assert "not a plain file" in f"{result.exception}{result.output}", verb


def test_a_suite_for_confirming_is_not_read_back(root: Path) -> None:
    archive = Archive(root / CAMPAIGN)
    suite = {"description": "x", "workloads": {"selftest": {"cases": ["uptime-1"]}}}
    options = with_suite(Options(suite="", root=archive.path / "confirmations"), archive, "confirm", suite)
    Path(options.suite).write_text("workloads: {stress: }\n")
    assert options.content is not None and list(options.content.workloads) == ["selftest"]
    with pytest.raises(FleetmarkError, match="its measurements include stress, which is not in its suite"):
        with_suite(options, archive, "confirm", {"description": "x", "workloads": {"stress": {}}})
