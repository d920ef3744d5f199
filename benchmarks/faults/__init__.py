"""Break campaigns at random moments over real SSH or Slurm, resume them, and count how many survive without any loss.

``python -m benchmarks.faults [--over ssh|store|slurm] [--rounds 20] [--seed 1] [--hosts 3] [--log FILE] [--store FILE]``
(root). In each round, a campaign of the self-test runs on namespace hosts, and one to three faults of
``benchmarks.faults.strikes`` strike it: at a random moment, as it begins, in the middle, or at its end. Then all faults
are healed, and ``run --resume`` continues the campaign until it is complete. A round survives if:

- every step that was finished when the first controller ended is byte-identical at the end, unless a fault damaged it
- every scheduled step finally passed, was counted once, and has its values once
- an object store has the same files as its local copy
- every command ended with a documented status, without a traceback
- no process, listener or file of a job is left on any host, or on a Slurm node that was off, after its next job

The seed chooses faults, moments and hosts; what they hit depends on the machine. Prints a row per fault and the rounds
that did not survive, and exits with 1 if there is one. ``--log`` adds each round to a file, so that runs with different
``--first`` and ``--over`` join into the table of all of them, which ``--store`` writes as JSON beside the
totals of earlier tables with other seeds (``earlier``). ``python -m benchmarks.faults.sweep`` damages an archive at each place in turn.
"""

from __future__ import annotations

import argparse
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
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from benchmarks.faults import clocks
from benchmarks.faults.checks import checked, counts, digests, ended, is_complete, reported
from benchmarks.faults.places import OVER, Place, placed
from benchmarks.faults.strikes import CLOCKS, FULL_HOST, PATIENCE_S, SMALL, STRIKES, WORK, Scene, prepare
from benchmarks.measuring import circumstances
from tests.fleet.hosts import Fleet, missing
from tests.fleet.remains import programs, remains
from tests.fleet.slurm import missing as missing_slurm

COMMANDS, SECONDS = 12, 0.5
MOMENTS = {
    "at any time": 2,
    "after the first step": 4,
    "in the middle": 2,
    "after the last step": 2,
}  # and their weights
SUITE = (
    f"description: faults\nrepeats: 1\nworkloads:\n  selftest: {{set: {{commands: {COMMANDS}, seconds: {SECONDS}}}}}\n"
)
RESUMES = 5
SIZES = {"ssh": "64m", "slurm": "64m", "store": "1200m"}  # of the disk for results; a copy of a store leaves 1 GiB free
LEFT = r"find {work} -path '*/jobs/*' -type f 2>/dev/null"


@dataclass(frozen=True, slots=True, kw_only=True)
class Round:
    """``faults``: the names of what struck. ``problems``: broken promises. ``recover_s``: from healing to completion."""

    over: str
    seed: int
    number: int
    moment: str
    faults: tuple[str, ...]
    resumes: int
    recover_s: float
    problems: tuple[str, ...]


def play(place: Place, number: int, seed: int, names: Sequence[str] = (), keep: Path | None = None) -> Round:
    """Run one campaign under faults, resume it, and check it. ``names`` replaces the faults that the seed chooses; the
    results are copied to ``keep``.
    """
    rng = random.Random(f"{seed}/{number}")
    known = sorted(name for name, strike in STRIKES.items() if place.over in strike.over)
    chosen = sorted(names or rng.sample(known, rng.choice((1, 1, 2, 3))), key=lambda name: STRIKES[name].ends)
    stepped = not set(chosen).isdisjoint(CLOCKS)
    with tempfile.TemporaryDirectory(prefix="fleetmark-faults-") as folder:
        disk = Path(folder, "disk")  # results lie on a small disk of their own, which a fault can fill
        disk.mkdir()
        subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={SIZES[place.over]}", "tmpfs", disk], check=True)
        try:
            for host in place.fleet.names if stepped else ():
                clocks.lend(place.fleet, host)
            return _played(place, seed, number, chosen, rng, disk)
        finally:
            for host in place.fleet.names if stepped else ():
                clocks.take_back(place.fleet, host)
            if keep:
                shutil.copytree(disk, keep / str(number), dirs_exist_ok=True)
            subprocess.run(["umount", "-l", disk], check=True)


def _played(place: Place, seed: int, number: int, chosen: Sequence[str], rng: random.Random, disk: Path) -> Round:
    fleet, command, work = place.fleet, place.command(disk, number), SMALL if FULL_HOST in chosen else WORK
    clock = disk.parent / "clock"
    if not set(chosen).isdisjoint(CLOCKS):
        command.env |= clocks.stepped(clock)
    for host in fleet.names:
        prepare(fleet, host)
    before = programs(fleet)
    (disk / "suite.yml").write_text(SUITE)
    words = ["--suite", str(disk / "suite.yml"), "--patience", str(PATIENCE_S), *place.words(work)]
    controller = command.begin(*words)
    scene = Scene(place=place, command=command, work=work, clock=clock, controller=controller, rng=rng)
    steps = len(fleet.names) * COMMANDS
    moment = rng.choices(list(MOMENTS), list(MOMENTS.values()))[0]
    passed = {"at any time": 0, "after the first step": 1, "in the middle": steps // 2}.get(moment, steps)
    command.until(lambda: controller.poll() is not None or counts(command.campaign)["passed"] >= passed)
    for name in chosen:
        time.sleep(rng.uniform(0, 0.8) if passed == steps else rng.uniform(0.2, 4))
        STRIKES[name].act(scene)
    try:
        controller.wait(300)
    except subprocess.TimeoutExpired:
        scene.end_controller()
    problems = list(ended(controller.returncode, command.output()))
    finished = digests(command.campaign)
    healed = time.monotonic()
    resumes, status = 0, controller.returncode
    if not (command.campaign / "campaign.json").exists():
        done = command.run(*words)  # it struck before there was a campaign: the user types the command again
        status = done.returncode
    is_struck = any(STRIKES[name].ends for name in chosen)  # even if the campaign was complete before that
    while (status or (is_struck and not resumes) or not is_complete(command.campaign, steps)) and resumes < RESUMES:
        resumes += 1
        done = command.run("--resume", command.campaign.name, "--retry-failed")
        status = done.returncode
        problems += ended(status, done.stdout + done.stderr)
    if status:
        problems.append(f"the last command ended with status {status}: {(done.stdout + done.stderr)[-400:]}")
    recover_s = time.monotonic() - healed
    problems += [p for status, text in scene.ended for p in ended(status, text)]
    problems += checked(command, finished, scene.damaged, steps)
    problems += reported(command, steps)
    problems += place.lost_objects(command.campaign, number)
    problems += place.left()
    problems += remains(fleet, before, daemons=place.daemons, ports=place.ports)
    left = _left(fleet, work)
    if left and place.cluster:  # a node that was off while its job ended keeps the files until its next job
        (disk / "suite.yml").write_text(SUITE.replace(f"commands: {COMMANDS}", "commands: 1"))
        done = command.run(*words)
        problems += ended(done.returncode, done.stdout + done.stderr)
        left = _left(fleet, work)
    problems += left
    for host in fleet.names if left else ():  # the next round must not find them
        fleet.exec(host, ["rm", "-rf", work], check=False)
    return Round(
        over=place.over,
        seed=seed,
        number=number,
        moment=moment,
        faults=tuple(chosen),
        resumes=resumes,
        recover_s=round(recover_s, 2),
        problems=tuple(problems),
    )


def _left(fleet: Fleet, work: str) -> list[str]:
    """Return the files of jobs that are left on hosts."""
    find = ["sh", "-c", LEFT.format(work=work)]
    return [f"{h}: {file} is left" for h in fleet.names for file in fleet.exec(h, find, check=False).stdout.split()]


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


def read(log: Path) -> list[Round]:
    """Return the rounds of a log. If a round was repeated, only the last attempt counts."""
    rounds = [Round(**json.loads(line)) for line in log.read_text().splitlines()]
    return list({(r.over, r.seed, r.number): r for r in rounds}.values())


def document(rounds: Sequence[Round]) -> dict[str, Any]:
    """Return the result that docs/reference/performance.md shows."""
    return {
        **circumstances(),
        "load": f"{os.getloadavg()[0]:.0f}",
        "seeds": sorted({r.seed for r in rounds}),
        "over": dict(Counter(r.over for r in rounds)),
        "rounds": len(rounds),
        "lost": sum(bool(r.problems) for r in rounds),
        "rows": table(rounds),
    }


def earlier(stored: Mapping[str, Any], new: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the totals of the tables that a new one follows: those in the ``stored`` table, and its own.

    A table that shares a seed with the new one is replaced by it, because rounds may be in both.
    """
    totals = list(stored.get("earlier", []))
    if stored and set(stored["seeds"]).isdisjoint(new["seeds"]):
        totals.append({**{name: stored[name] for name in ("rounds", "lost", "commit")}, "remark": ""})
    return totals


def main() -> None:
    parser = argparse.ArgumentParser(
        description="Break campaigns at random moments, resume them, and check the record."
    )
    parser.add_argument("--over", choices=OVER, default="ssh", help="what reaches the hosts, or where results go")
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--hosts", type=int, default=3)
    parser.add_argument("--first", type=int, default=0, help="the number of the first round, to repeat one")
    parser.add_argument("--keep", type=Path, help="a folder for the results of all rounds")
    parser.add_argument("--log", type=Path, help="a file to which each round is added; the table has all its rounds")
    parser.add_argument("--store", type=Path, help="a JSON file for the table")
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # take the hosts down
    if reason := missing() or (options.over == "slurm" and missing_slurm()):
        raise SystemExit(f"benchmarks.faults: {reason}")
    rounds = _rounds(options) if options.rounds else []
    if options.log:
        rounds = read(options.log)
    if not rounds:
        raise SystemExit("benchmarks.faults: no rounds; name --rounds, or a --log that has some")
    print(pd.DataFrame(table(rounds)).to_string(index=False))
    lost = [r for r in rounds if r.problems]
    print(f"{len(rounds)} rounds, {len(rounds) - len(lost)} survived, load {os.getloadavg()[0]:.1f}")
    if options.store:
        stored = json.loads(options.store.read_text()) if options.store.exists() else {}
        new = document(rounds)
        options.store.write_text(json.dumps(new | {"earlier": earlier(stored, new)}, indent=1) + "\n")
    sys.exit(1 if lost else 0)


def _rounds(options: argparse.Namespace) -> list[Round]:
    rounds = []
    with placed(options.over, options.hosts) as place:
        for number in range(options.first, options.first + options.rounds):
            r = play(place, number, options.seed, keep=options.keep)
            rounds.append(r)
            problems = "; ".join(r.problems) or "survived"
            print(f"round {number}: {r.moment}: {', '.join(r.faults)}: {problems}", flush=True)
            if options.log:
                with options.log.open("a") as log:
                    log.write(json.dumps(asdict(r)) + "\n")
    return rounds
