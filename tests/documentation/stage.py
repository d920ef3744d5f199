"""Run the commands of the documentation's pages as they are written, with small sizes.

A page's commands run one after another in a folder that has the files that the page shows (code blocks after "Save
this as `NAME`"), the files of its folder, an inventory, published tables, and results on record: campaigns of three
generations, a campaign in which two hosts are slow, campaigns of several days, guests and metal, or LLM servers.

Sizes become small by these rules, and by nothing else:

- `run` is previewed as it is written (`--dry-run`). Then `openssl_speed` runs once for a second instead of its suite.
- Inventories contain this machine alone.
- The example of `plan init` is a question with one workload, and `plan` simulates 100 futures and accepts a gap of 20%.
- `make` and `ansible` only print what they would do (`-n`, `--list-hosts`). `kubectl` prints its arguments.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import traceback
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from unittest import mock

from typer.testing import CliRunner

from fleetmark.base.errors import FleetmarkError
from fleetmark.cli.app import app
from fleetmark.demand import question
from tests import demands, fleets, profiles, records
from tests.corpus import ROOT as CORPUS
from tests.documentation.pages import Command, commands
from tests.documentation.text import HOUSE
from tests.reports import fleet, loads
from tests.schedules import facts

FILE = re.compile(
    r"(?:Save (?:this|these|the)[^.]*?as|in) `([\w-]+\.(?:yml|csv))`[^`]*?```(?:yaml|csv)\n(.*?)^```",
    re.DOTALL | re.MULTILINE,
)
SMALL_RUN = ["--repeats", "1", *(f"--set=openssl_speed.{s}" for s in ("seconds=1", "algorithms=sha256", "processes=1"))]
SMALL_PLAN = ["--draws", "100", "--gap", "0.2"]
INVENTORY = "all:\n  hosts:\n    n03: {ansible_connection: local, fleetmark_generation: icelake}\n"
INVENTORIES = ("hosts.yml", "rack.yml", "fleet.yml", "llm.yml")
SLOW_HOSTS = ("find-slow-hosts", "sick-node", "gate", "health-checks-as-a-gate", "accept-a-rack", "try-a-setting")
RESUMES = ("fix-broken-hosts", "reliability")
TABLES = {
    "CINT2017rate.csv": "spec_published/cpu2017_int_speed_rate_joined_202507.csv",
    "summary_results.json": "mlperf_published/inference_v5.1_summary_results.json",
    "sc_servers.csv": "sparecores_published/sc_servers.csv",
    "c16.json": "vllm_bench/here_serve_0.32_tiny.json",
}
LOAD = {  # of c16.json, for the client of another engine
    "random_input_len": 128,
    "random_output_len": 32,
    "request_rate": "inf",
    "max_concurrency": 4,
    "completed": 40,
    "total_input_tokens": 5131,
    "total_output_tokens": 1280,
    "server_info": {"model_path": "tiny"},
}
SGLANG = HOUSE / "tests" / "parsers" / "fixtures" / "sglang_bench" / "schema.jsonl"


@dataclass(frozen=True, slots=True)
class Done:
    """What a command of a page did: its exit status and its output."""

    command: Command
    status: int
    output: str


def small(words: list[str]) -> list[str]:
    """Return the words after `fleetmark` with small sizes (see above)."""
    if words[0] == "plan" and "init" not in words:
        return [*words, *SMALL_PLAN]
    if words[0] != "run" or "-i" not in words:
        return [word.replace("/shared/fleetmark/", "") for word in words]
    kept, skip = [], False
    for number, word in enumerate(words):
        if skip:
            skip = False
        elif word in ("--set", "--repeats"):
            skip = True
        elif word not in ("--become", "--dry-run"):
            kept.append("openssl_speed" if number and words[number - 1] in ("--suite", "-s") else word)
    suite = [] if {"--suite", "-s"} & set(kept) else ["--suite", "openssl_speed"]
    return [*kept, *suite, *SMALL_RUN]


def tables(page: Path) -> list[str]:
    """Return the names of the published tables that a page imports."""
    return [name for name in TABLES if re.search(rf"{re.escape(name)}(?!l)", page.read_text("utf-8"))]


def build(folder: Path, page: Path) -> None:
    """Write the files and results that the commands of ``page`` need into ``folder``."""
    for near in page.parent.glob("*.csv"):
        shutil.copy(near, folder)
    for name in INVENTORIES:
        (folder / name).write_text(INVENTORY)
    for name, text in FILE.findall(page.read_text("utf-8")):
        if name not in INVENTORIES:
            (folder / name).write_text(text)
    if not (folder / "rules.yml").exists():
        (folder / "rules.yml").write_text("rules:\n  - {name: a, metric: stream/*/triad, at_least: 1 GB/s}\n")
    for name in tables(page):
        shutil.copy(CORPUS / TABLES[name], folder / name)
    (folder / "c16.jsonl").write_text(json.dumps(json.loads(SGLANG.read_text().splitlines()[0]) | LOAD))
    (folder / "fleetmark-results" / "ID").mkdir(parents=True)
    (folder / "fleetmark-results" / "ID" / "failed.hosts").write_text("n03\n")
    (folder / "dear.yml").write_text("energy_price: 0.30\n")
    (folder / "example.yml").write_text(demands.SMALL)
    for program, script in (("kubectl", 'echo "$@"'), ("make", f'exec {shutil.which("make")} -n -C "{HOUSE}" "$@"')):
        (folder / "bin").mkdir(exist_ok=True)
        (folder / "bin" / program).write_text(f"#!/bin/sh\n{script}\n")
        (folder / "bin" / program).chmod(0o755)
    _record(folder / "fleetmark-results", page.stem)


def perform(page: Path, folder: Path) -> Iterator[Done]:
    """Run the commands of ``page`` that have no mark in ``folder``, and yield what each did."""
    build(folder, page)
    (folder / "work").mkdir()
    example = mock.patch.object(question, "EXAMPLE", folder / "example.yml") if SMALL_PLAN else contextlib.nullcontext()
    with contextlib.chdir(folder), example:
        if page.stem in RESUMES:
            _fleetmark(["run", "-i", "hosts.yml", "-s", "selftest"], folder)
        for command in commands(page):
            if command.is_staged:
                yield Done(command, *_perform(command.line, folder))


def _perform(line: str, folder: Path) -> tuple[int, str]:
    words = shlex.split(line)
    if Path(words[0]).name != "fleetmark" or "|" in words:
        return _shell(line, folder)
    if words[1] == "run" and "--dry-run" not in words and "--resume" not in words:
        status, output = _fleetmark([*words[1:], "--dry-run"], folder)
        if status:
            return status, output
    return _fleetmark(words[1:] if "--dry-run" in words else small(words[1:]), folder)


def _fleetmark(words: list[str], folder: Path) -> tuple[int, str]:
    """Run Fleetmark in this process, which is cheaper than another one."""
    if words[0] == "clean" or (words[0] == "run" and "--resume" not in words):
        words = [*words, "--work-dir", str(folder / "work")]
    done = CliRunner().invoke(app, words, env={"COLUMNS": "90"})
    error = done.exception
    if error is None or isinstance(error, SystemExit):
        return done.exit_code, done.output
    if isinstance(error, FleetmarkError):
        return 2, f"{done.output}\nfleetmark: {error}"
    return 1, "".join(["Traceback: ", *traceback.format_exception(error)])


def _shell(line: str, folder: Path) -> tuple[int, str]:
    """Run a command of another program."""
    line = f"{line} --list-hosts" if line.startswith("ansible ") else line
    path = f"{folder / 'bin'}:{Path(sys.executable).parent}:{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", line],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env={**os.environ, "PATH": path},
    )
    return done.returncode, done.stdout


def _record(results: Path, stem: str) -> None:
    """Write the results that the commands of a page read."""
    if stem == "find-bottlenecks":
        profiles.record_generations(results)
    elif stem == "llm-servers":
        _servers(results)
    elif stem in SLOW_HOSTS:
        _days(results, 2025)  # so that the campaign with slow hosts is the last
        fleets.sick(results).save_facts("n03", facts(governor="powersave"), {})
    elif stem == "review-a-delivery":
        fleet.fleet(results)  # the last campaign is the delivery
    elif stem == "containers":
        _days(results)
        _guests(results)
    elif stem == "compare-engines":
        _days(results)
    elif stem == "which-server":
        pass  # imports a table
    else:
        fleet.fleet(results)
        _days(results, hosts=("n01",) if stem == "reports" else ("n01", "n02", "n03"))  # each host is a page of a PDF


def _days(results: Path, year: int = 2026, hosts: tuple[str, ...] = ("n01", "n02", "n03")) -> None:
    """Record eight daily campaigns of the same hosts."""
    for day in range(1, 9):
        name = f"{year}11{day:02}T010000-x"
        archive = records.record(results, name, {h: {} for h in hosts}, fleets.usual(hosts, seed=day))
        archive.save_campaign(archive.campaign() | {"created": f"{year}-11-{day:02}T01:00:00Z"})


def _guests(results: Path) -> None:
    """Record three guests and three hosts without a hypervisor, all of one kind."""
    for gen in ("metal", "kvm"):
        hosts = tuple(f"{gen}{n}" for n in (1, 2, 3))
        labels = {"gen": gen, "kind": "r7615"}
        records.record(results, f"c-{gen}", dict.fromkeys(hosts, labels), fleets.usual(hosts))


def _servers(results: Path) -> None:
    """Record two generations of LLM servers, one of them three times as fast."""
    old, new = ["o1", "o2", "o3"], ["n1", "n2", "n3"]
    records.record(results, "c-old", {h: {"gen": "h100"} for h in old}, loads.measured(old, 1.0))
    records.record(results, "c-new", {h: {"gen": "h200"} for h in new}, loads.measured(new, 3.0))
