"""Run the commands of tutorials as they are written, with small sizes. Guides are checked word by word only.

A page's commands run one after another in a folder that has the files that the page shows (code blocks after "Save
this as `NAME`"), the files of its folder, an inventory, and results on record: campaigns of three generations, a
campaign in which two hosts are slow, campaigns of several days, and LLM servers.

Sizes become small by these rules, and by nothing else: a suite or workload that `run` and `hosts` name is replaced by
`openssl_speed` for a second, without the settings of `--set` and repeats; an inventory has this machine alone; `plan` simulates 100
futures and accepts a gap of 20%.
Commands that need a Slurm cluster, Spark, an object store, sudo, or a campaign on real hosts are listed with the tests
that run them: they are checked word by word only (tests/test_documented.py).
"""

from __future__ import annotations

import contextlib
import re
import shlex
import shutil
import traceback
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from typer.testing import CliRunner

from fleetmark.base.errors import FleetmarkError
from fleetmark.cli.app import app
from tests import fleets, profiles, records
from tests.corpus import ROOT as CORPUS
from tests.documentation.text import DOCS
from tests.reports import fleet, loads
from tests.typed import refused

TUTORIALS = DOCS / "tutorials"
PAGES = sorted(TUTORIALS.glob("*.md"))
BLOCK = re.compile(r"^```(bash|console)\n(.*?)^```", re.DOTALL | re.MULTILINE)
FILE = re.compile(
    r"(?:Save (?:this|the suite)[^.]*?as|in) `([\w-]+\.(?:yml|csv))`[^`]*?```(?:yaml|csv)\n(.*?)^```",
    re.DOTALL | re.MULTILINE,
)
ELSEWHERE = {  # words of a command, and the tests that run such a command for real
    "--slurm": "tests/fleet/test_slurm*.py",
    "s3://": "tests/test_store.py",
    "FLEETMARK_ENGINE": "tests/test_spark.py",
    "--confirm": "tests/fleet/test_sick.py",
    "--isolate": "tests/fleet/test_sick_groups.py",
    "--try": "tests/fleet/test_tune*.py",
    "--until-ci": "tests/fleet/test_adaptive*.py",
    "--resume": "tests/fleet/test_run.py",
    "bundle": "tests/test_bundle.py",
    "acme": "tests/workloads/test_external.py",
    "summary_results.json": "tests/test_importing.py",
    "CINT2017rate.csv": "tests/test_importing.py",
    "sc_servers.csv": "tests/test_importing.py",
    "round=v5.1": "tests/test_importing.py",
    "processor=": "tests/test_importing.py",
    "server=m6i": "tests/test_importing.py",
    "sglang_bench": "tests/parsers",
    "engine=": "tests/parsers",
    "gen=metal": "tests/test_inventory.py",
    "gen=gen1": "tests/fleet/test_run.py",
}
SMALL_RUN = ["--repeats", "1", *(f"--set=openssl_speed.{s}" for s in ("seconds=1", "algorithms=sha256", "processes=1"))]
SMALL_PLAN = ["--draws", "100", "--gap", "0.2"]
INVENTORY = "all:\n  hosts:\n    n03: {ansible_connection: local, fleetmark_generation: icelake}\n"


@dataclass(frozen=True, slots=True)
class Command:
    """A command as a page shows it, and the ``words`` after `fleetmark` that a test runs."""

    page: Path
    line: str
    words: list[str]


def commands(page: Path) -> Iterator[Command]:
    """Yield the commands of a page that a test can run."""
    for kind, block in BLOCK.findall(page.read_text("utf-8")):
        for line in block.replace("\\\n", " ").splitlines():
            shown = line.removeprefix("$ ") if kind == "console" else line
            if (kind == "console" and not line.startswith("$ ")) or "fleetmark" not in shown:
                continue
            if not any(word in shown for word in ELSEWHERE) and not refused(
                shown
            ):  # tests/test_documented.py fails then
                yield Command(page, shown, small(shlex.split(shown)[1:]))


def small(words: list[str]) -> list[str]:
    """Return the words with small sizes (see above)."""
    if words[0] == "plan" and "init" not in words:
        return [*words, *SMALL_PLAN]
    if words[0] not in ("run", "hosts"):
        return [word.replace("/shared/fleetmark/", "") for word in words]
    kept, skip = [], False
    for number, word in enumerate(words):
        if skip:
            skip = False
        elif word in ("--set", "--repeats", "--become"):
            skip = word != "--become"
        else:
            kept.append("openssl_speed" if number and words[number - 1] in ("--suite", "-s") else word)
    return kept if words[0] == "hosts" else [*kept, *SMALL_RUN]


def build(folder: Path, page: Path) -> None:
    """Write the files and results that the commands of ``page`` need into ``folder``."""
    for near in page.parent.glob("*.csv"):
        shutil.copy(near, folder)
    for name in ("hosts.yml", "rack.yml", "fleet.yml", "llm.yml"):
        (folder / name).write_text(INVENTORY)
    for name, text in FILE.findall(page.read_text("utf-8")):
        if not name.startswith(("hosts", "rack", "fleet", "llm")):
            (folder / name).write_text(text)
    if not (folder / "rules.yml").exists():
        (folder / "rules.yml").write_text("rules:\n  - {name: a, metric: stream/*/triad, at_least: 1 GB/s}\n")
    client = CORPUS / "vllm_bench" / "here_serve_0.32_tiny.json"
    if client.exists():
        shutil.copy(client, folder / "c16.json")
    (folder / "dear.yml").write_text("energy_price: 0.30\n")
    (folder / "nightly.yml").write_text("description: x\nworkloads:\n  selftest:\n")
    results = folder / "fleetmark-results"
    results.mkdir()
    if page.stem == "find-bottlenecks":
        profiles.record_generations(results)
    elif page.stem == "llm-servers":
        _servers(results)
    elif page.stem in ("find-slow-hosts", "sick-node", "gate", "accept-a-rack", "try-a-setting"):
        _days(results, 2025)  # so that the campaign with slow hosts is the last
        fleets.sick(results)
    elif page.stem in ("compare-engines", "containers"):
        _days(results)
    elif page.stem != "which-server":
        fleet.fleet(results)
        _days(results)


def perform(page: Path, folder: Path) -> Iterator[tuple[Command, int, str]]:
    """Run the commands of ``page`` in ``folder``, and yield each with its exit status and output."""
    build(folder, page)
    (folder / "work").mkdir()
    with contextlib.chdir(folder):
        for command in commands(page):
            words = list(command.words)
            if words[0] == "run" and "--dry-run" not in words:
                words += ["--work-dir", str(folder / "work")]
            done = CliRunner().invoke(app, words, env={"COLUMNS": "90"})
            error = done.exception
            if error is None or isinstance(error, SystemExit):
                yield command, done.exit_code, done.output
            elif isinstance(error, FleetmarkError):
                yield command, 2, f"{done.output}\nfleetmark: {error}"
            else:
                yield command, 1, "".join(["Traceback: ", *traceback.format_exception(error)])


def _days(results: Path, year: int = 2026) -> None:
    """Record eight daily campaigns of the same hosts."""
    hosts = ("n01", "n02", "n03")
    for day in range(1, 9):
        name = f"{year}11{day:02}T010000-x"
        archive = records.record(results, name, {h: {} for h in hosts}, fleets.usual(hosts, seed=day))
        archive.save_campaign(archive.campaign() | {"created": f"{year}-11-{day:02}T01:00:00Z"})


def _servers(results: Path) -> None:
    old, new = ["o1", "o2", "o3"], ["n1", "n2", "n3"]
    records.record(results, "c-old", {h: {"gen": "h100"} for h in old}, loads.measured(old, 1.0))
    records.record(results, "c-new", {h: {"gen": "h200"} for h in new}, loads.measured(new, 3.0))
