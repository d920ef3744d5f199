"""Break campaigns at random moments over real SSH, resume them, and count how many survive without any loss.

``python -m benchmarks.faults [--rounds 20] [--seed 1] [--hosts 3] [--store FILE]`` (root). In each round, a campaign of
the self-test runs on namespace hosts, and one to three faults of ``benchmarks.faults.strikes`` strike it at random
moments. Then all faults are healed, and ``run --resume`` continues the campaign until it is complete. A round survives
if:

- every step that was finished when the first controller ended is byte-identical at the end, unless a fault damaged it
- every scheduled step passed in the end, was counted once, and has its values once
- every command ended with a documented status, without a traceback
- no process, listener or file of a job is left on any host

The seed chooses faults, moments and hosts; what they hit depends on the machine. Prints a row per fault and the rounds
that did not survive, and exits with 1 if there is one. ``--store`` writes the table as JSON.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import random
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from benchmarks.faults.strikes import ENDING, FULL_HOST, SMALL, STRIKES, WORK, Scene, prepare
from benchmarks.measuring import circumstances
from tests.fleet.command import Command
from tests.fleet.hosts import Fleet, missing
from tests.fleet.remains import programs, remains

COMMANDS, SECONDS = 12, 0.5
BEGUN = 0.8  # share of rounds in which nothing strikes before the first step has ended
SUITE = (
    f"description: faults\nrepeats: 1\nworkloads:\n  selftest: {{set: {{commands: {COMMANDS}, seconds: {SECONDS}}}}}\n"
)
RESUMES = 5
STATUSES = {0, 1, 2, 3, -signal.SIGKILL}  # docs/reference: passed, something failed, refused, interrupted; and our kill
LEFT = r"find {work} -path '*/jobs/*' -type f 2>/dev/null"


@dataclass(frozen=True, slots=True, kw_only=True)
class Round:
    """``faults``: the names of what struck. ``problems``: broken promises. ``recover_s``: from healing to completion."""

    number: int
    faults: tuple[str, ...]
    resumes: int
    recover_s: float
    problems: tuple[str, ...]


def play(fleet: Fleet, number: int, seed: int, names: Sequence[str] = (), keep: Path | None = None) -> Round:
    """Run one campaign under faults, resume it, and check it. ``names`` replaces the faults that the seed chooses; the
    results are copied to ``keep``.
    """
    rng = random.Random(f"{seed}/{number}")
    chosen = sorted(names or rng.sample(sorted(STRIKES), rng.choice((1, 1, 2, 3))), key=lambda name: name in ENDING)
    work = SMALL if FULL_HOST in chosen else WORK
    with tempfile.TemporaryDirectory(prefix="fleetmark-faults-") as folder:
        disk = Path(folder, "disk")  # results lie on a small disk of their own, which a fault can fill
        disk.mkdir()
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64m", "tmpfs", disk], check=True)
        try:
            return _played(fleet, number, chosen, rng, Command(fleet, disk), work)
        finally:
            if keep:
                shutil.copytree(disk, keep / str(number), dirs_exist_ok=True)
            subprocess.run(["umount", "-l", disk], check=True)


def _played(fleet: Fleet, number: int, chosen: Sequence[str], rng: random.Random, command: Command, work: str) -> Round:
    for host in fleet.names:
        prepare(fleet, host)
    before = programs(fleet)
    (command.root / "suite.yml").write_text(SUITE)
    words = ("--suite", str(command.root / "suite.yml"), "--work-dir", work, "--patience", "20")
    scene = Scene(fleet=fleet, command=command, work=work, controller=command.begin(*words), rng=rng)
    if rng.random() < BEGUN:
        command.until(lambda: scene.controller.poll() is not None or _counts(command.campaign)["passed"] > 0)
    for name in chosen:
        time.sleep(rng.uniform(0.2, 4))
        STRIKES[name](scene)
    try:
        scene.controller.wait(300)
    except subprocess.TimeoutExpired:
        scene.end_controller()
    problems = list(_ended(scene.controller.returncode, command.output()))
    finished = _digests(command.campaign)
    healed = time.monotonic()
    resumes = 0
    if not (command.campaign / "campaign.json").exists():
        command.run(*words)  # it struck before there was a campaign: the user types the command again
    while not _complete(command.campaign, len(fleet.names) * COMMANDS) and resumes < RESUMES:
        resumes += 1
        done = command.run("--resume", command.campaign.name, "--retry-failed")
        problems += _ended(done.returncode, done.stdout + done.stderr)
    recover_s = time.monotonic() - healed
    problems += [p for text in scene.outputs for p in _ended(0, text)]
    problems += _checked(scene, finished)
    problems += remains(fleet, before)
    for host in fleet.names:
        left = fleet.exec(host, ["sh", "-c", LEFT.format(work=work)], check=False).stdout.split()
        problems += [f"{host}: {file} is left" for file in left]
    return Round(number=number, faults=tuple(chosen), resumes=resumes, recover_s=recover_s, problems=tuple(problems))


def _ended(status: int, text: str) -> Iterator[str]:
    if status not in STATUSES:
        yield f"a command ended with status {status}: {text[-400:]}"
    if "Traceback" in text:
        yield f"a command ended with a traceback: {text[text.index('Traceback') :][:2000]}"


def _complete(campaign: Path, steps: int) -> bool:
    """Return whether all steps passed and the campaign's values are stored."""
    return _counts(campaign)["passed"] == steps and (campaign / "measurements.parquet").exists()


def _counts(campaign: Path) -> Counter[str]:
    """Return how many steps ended with each status."""
    return Counter({(e["host"], e["case"], e["repeat"]): e["status"] for e in _outcomes(campaign)}.values())


def _digests(campaign: Path) -> dict[Path, str]:
    """Return the SHA-256 of each file of each step that passed, by its path."""
    passed = {(e["host"], e["workload"], e["case"], str(e["repeat"])) for e in _passed(campaign)}
    files = [f for f in (campaign / "raw").rglob("*") if f.is_file()]
    return {
        f: hashlib.sha256(f.read_bytes()).hexdigest()
        for f in files
        if f.relative_to(campaign / "raw").parts[:4] in passed
    }


def _outcomes(campaign: Path) -> list[dict[str, Any]]:
    """Return the events of the journal that say how steps ended; a record that is cut is left out."""
    events = []
    journal = campaign / "journal.jsonl"
    for line in journal.read_bytes().splitlines() if journal.exists() else ():
        try:
            event = json.loads(line)
        except ValueError:
            continue
        if event["e"] == "outcome":
            events.append(event)
    return events


def _passed(campaign: Path) -> list[dict[str, Any]]:
    return [event for event in _outcomes(campaign) if event["status"] == "passed"]


def _checked(scene: Scene, finished: dict[Path, str]) -> Iterator[str]:
    """Yield what was lost, changed or counted twice."""
    campaign = scene.command.campaign
    for file, digest in finished.items():
        if file.parent in scene.damaged:
            continue
        if not file.exists() or hashlib.sha256(file.read_bytes()).hexdigest() != digest:
            yield f"{file.relative_to(campaign)} of a finished step changed"
    steps = len(scene.fleet.names) * COMMANDS
    words = [scene.command.words()[0], "report", str(campaign), "--format", "json"]
    report = subprocess.run(words, capture_output=True, text=True, env=scene.command.env)
    counts = Counter(o["status"] for o in json.loads(report.stdout)["outcomes"]) if report.stdout else report.stderr
    if counts != {"passed": steps}:
        yield f"of {steps} steps, the report says {counts}"
    values = campaign / "measurements.parquet"
    if not values.exists():
        yield "there is no measurements.parquet"
        return
    frame = pd.read_parquet(values)
    frame = frame[frame["metric"] == "uptime"]
    if len(frame) != steps or frame.duplicated(["host", "case", "repeat", "subject"]).any():
        yield f"{len(frame)} values of {steps} steps"
    kept = {
        (p.relative_to(campaign / "raw").parts[0], p.relative_to(campaign / "raw").parts[2])
        for p in finished
        if p.parent not in scene.damaged
    }
    times = Counter((e["host"], e["case"]) for e in _passed(campaign))
    yield from (
        f"{host} {case} passed {times[host, case]} times" for host, case in sorted(kept) if times[host, case] != 1
    )


def table(rounds: Sequence[Round]) -> list[dict[str, Any]]:
    """Return a row per fault: how often it struck, how many rounds with it survived, and the times to recover."""
    by_fault: dict[str, list[Round]] = defaultdict(list)
    for r in rounds:
        for name in r.faults:
            by_fault[name].append(r)
    return [
        {
            "fault": name,
            "struck": len(mine),
            "survived": sum(not r.problems for r in mine),
            "recover_s": round(statistics.median(r.recover_s for r in mine), 1),
            "most_s": round(max(r.recover_s for r in mine), 1),
        }
        for name, mine in sorted(by_fault.items())
    ]


def main() -> None:
    parser = argparse.ArgumentParser(
        description="Break campaigns at random moments, resume them, and check the record."
    )
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--hosts", type=int, default=3)
    parser.add_argument("--first", type=int, default=0, help="the number of the first round, to repeat one")
    parser.add_argument("--keep", type=Path, help="a folder for the results of all rounds")
    parser.add_argument("--store", type=Path, help="a JSON file for the table")
    options = parser.parse_args()
    if reason := missing():
        raise SystemExit(f"benchmarks.faults: {reason}")
    rounds = []
    with Fleet(options.hosts) as fleet:
        for number in range(options.first, options.first + options.rounds):
            rounds.append(play(fleet, number, options.seed, keep=options.keep))
            print(
                f"round {number}: {', '.join(rounds[-1].faults)}: {'; '.join(rounds[-1].problems) or 'survived'}",
                flush=True,
            )
    rows = table(rounds)
    print(pd.DataFrame(rows).to_string(index=False))
    lost = [r for r in rounds if r.problems]
    print(f"{len(rounds)} rounds, {len(rounds) - len(lost)} survived, load {os.getloadavg()[0]:.1f}")
    if options.store:
        document = {**circumstances(), "seed": options.seed, "rounds": len(rounds), "lost": len(lost), "rows": rows}
        options.store.write_text(json.dumps(document, indent=1) + "\n")
    sys.exit(1 if lost else 0)
