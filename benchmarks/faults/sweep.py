"""Damage an archive at each place in turn, resume it, and count the places at which nothing is lost.

``python -m benchmarks.faults.sweep [--store FILE]`` (root). The journal of a campaign whose controller was killed is cut
at every byte of its last record; each cut journal is read, and two of sixteen are resumed. Every file of a complete campaign is emptied, cut and replaced by random bytes. Each
damaged copy is resumed on a namespace host. A place survives if:

- every command ends with a documented status, without a traceback
- every finished step outside the damage is byte-identical; if the journal itself is damaged, the files that it no longer
  lists are kept in ``superseded/``
- the campaign is complete and every step is counted once; or else the damage is reported, by ``run --resume`` or by
  ``fleetmark verify``, and ``run --resume`` completes the campaign once the file is restored
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from benchmarks.faults.checks import checked, counts, digests, ended
from benchmarks.faults.strikes import DAMAGES, WORK
from benchmarks.measuring import circumstances
from fleetmark.record.archive import Archive
from tests.fleet.command import FLEETMARK, Command
from tests.fleet.hosts import Fleet, missing

COMMANDS, SECONDS = 3, 0.2
SUITE = (
    f"description: sweep\nrepeats: 1\nworkloads:\n  selftest: {{set: {{commands: {COMMANDS}, seconds: {SECONDS}}}}}\n"
)
CUT = "journal truncated in its last record, then resumed"
READ = "journal truncated at each byte of its last record, then read"
JOURNAL = "journal.jsonl"
LOCK = "controller.lock"  # says nothing once its controller has ended


@dataclass(frozen=True, slots=True, kw_only=True)
class Damage:
    """``kind``: a row of the table. ``content``: what the file holds after the damage."""

    kind: str
    file: str
    content: bytes


def cuts(archive: Path) -> Iterator[Damage]:
    """Yield a campaign's journal, truncated at each byte of its last record."""
    journal = (archive / "journal.jsonl").read_bytes()
    begin = journal.rstrip(b"\n").rfind(b"\n") + 1
    for position in range(begin, len(journal)):
        yield Damage(kind=READ, file=JOURNAL, content=journal[:position])
        if (position - begin) % 16 in (0, 1) or position == len(journal) - 1:
            yield Damage(kind=CUT, file=JOURNAL, content=journal[:position])


def misread(archive: Path, content: bytes) -> list[str]:
    """Return what a campaign whose journal is cut says other than the whole records in it."""
    (archive / JOURNAL).write_bytes(content)
    expected = [json.loads(line) for line in content.splitlines(keepends=True) if line.endswith(b"\n")]
    if content and not content.endswith(b"\n"):
        with contextlib.suppress(ValueError):  # all of the last record but its end of line
            expected.append(json.loads(content.splitlines()[-1]))
    events = list(Archive.open(archive).journal())
    return [] if events == expected else [f"{len(events)} events are read instead of {len(expected)}"]


def damages(archive: Path) -> Iterator[Damage]:
    """Yield every damage of every file of a campaign."""
    rng = random.Random(1)
    for file in sorted(f for f in archive.rglob("*") if f.is_file() and f.name != LOCK):
        for kind, damage in DAMAGES.items():
            content = file.read_bytes()
            if (changed := damage(content, rng)) != content:
                yield Damage(kind=f"file {kind}", file=str(file.relative_to(archive)), content=changed)


def tried(command: Command, archive: Path, damage: Damage) -> tuple[str, list[str]]:
    """Resume a damaged copy of an archive. Return ``repaired`` or ``reported``, and the broken promises."""
    campaign = command.root / archive.name
    shutil.rmtree(campaign, ignore_errors=True)
    shutil.copytree(archive, campaign)
    (campaign / damage.file).write_bytes(damage.content)
    if damage.kind == READ:
        return "repaired", misread(campaign, damage.content)
    damaged = {(campaign / damage.file).parent}
    finished = {campaign / file.relative_to(archive): digest for file, digest in digests(archive).items()}
    if damage.kind == CUT:  # the step of the record that is cut is measured again
        damaged |= {file.parent for file in finished.keys() - digests(campaign).keys()}
    done = command.run("--resume", archive.name, "--retry-failed")
    problems = list(ended(done.returncode, done.stdout + done.stderr))
    status = done.returncode
    if damage.kind != CUT and status == 0:
        words = [FLEETMARK, "verify", archive.name]
        verified = subprocess.run(words, capture_output=True, text=True, env=command.env, timeout=600)
        problems += ended(verified.returncode, verified.stdout + verified.stderr)
        status = verified.returncode
    if status == 0:
        if damage.file == JOURNAL:
            finished = {f: d for f, d in finished.items() if f.parent in damaged or not _is_kept(f, d, campaign)}
        return "repaired", problems + list(checked(command, finished, damaged, COMMANDS))
    shutil.copyfile(archive / damage.file, campaign / damage.file)
    again = command.run("--resume", archive.name, "--retry-failed")
    if again.returncode:
        problems.append(f"after the file was restored: {(again.stdout + again.stderr)[-400:]}")
    return "reported", problems + list(checked(command, finished, damaged, COMMANDS))


def _is_kept(file: Path, digest: str, campaign: Path) -> bool:
    """Return whether the files that were set aside include this one."""
    name = str(file.relative_to(campaign / "raw"))
    kept = [f for f in (campaign / "superseded").glob(f"*/{name}") if f.is_file()]
    return any(hashlib.sha256(f.read_bytes()).hexdigest() == digest for f in kept)


def _archives(fleet: Fleet, root: Path) -> tuple[Path, Path]:
    """Return a campaign whose controller was killed, and a complete one."""
    (root / "suite.yml").write_text(SUITE)
    words = ("--suite", str(root / "suite.yml"), "--work-dir", WORK)
    copies = []
    for is_killed in (True, False):
        folder = root / ("killed" if is_killed else "complete")
        folder.mkdir()
        command = Command(fleet, folder)
        controller = command.begin(*words)
        if is_killed:
            command.until(lambda command=command: counts(command.campaign)["passed"] >= COMMANDS - 1)  # type: ignore[misc]
            os.killpg(controller.pid, signal.SIGKILL)
        controller.wait(600)
        copies.append(shutil.copytree(command.campaign, root / "archives" / command.campaign.name))
        if command.run("--resume", command.campaign.name).returncode:
            raise SystemExit(f"benchmarks.faults.sweep: the campaign failed: {command.output()}")
    return copies[0], copies[1]


def main() -> None:
    parser = argparse.ArgumentParser(description="Damage an archive at each place in turn, resume it, and check it.")
    parser.add_argument("--store", type=Path, help="a JSON file for the table")
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # take the hosts down
    if reason := missing():
        raise SystemExit(f"benchmarks.faults.sweep: {reason}")
    places, ways, lost = Counter[str](), Counter[tuple[str, str]](), Counter[str]()
    with tempfile.TemporaryDirectory(prefix="fleetmark-sweep-") as folder, Fleet(1) as fleet:
        killed, complete = _archives(fleet, Path(folder))
        command = Command(fleet, Path(folder, "damaged"))
        command.root.mkdir()
        for archive, damage in [(complete, d) for d in damages(complete)] + [(killed, d) for d in cuts(killed)]:
            way, problems = tried(command, archive, damage)
            places[damage.kind] += 1
            ways[damage.kind, way] += 1
            lost[damage.kind] += bool(problems)
            print(f"{damage.kind}: {damage.file}, {len(damage.content)} B: {'; '.join(problems) or way}", flush=True)
            shutil.rmtree(command.root / archive.name)
    rows = [[k, f"{n}", f"{ways[k, 'repaired']}", f"{ways[k, 'reported']}", f"{lost[k]}"] for k, n in places.items()]
    if options.store:
        document = {
            "section": "How reliable it is",
            "title": "Every place of an archive",
            "description": "Each damaged copy of a campaign is resumed. Damage is repaired by measuring again, or reported "
            "by `run --resume` or `verify` until the file is restored.",
            "command": "python -m benchmarks.faults.sweep",
            **circumstances(),
            "columns": ["damage", "places", "repaired", "reported", "lost"],
            "rows": rows,
        }
        options.store.write_text(json.dumps(document, indent=1) + "\n")
    print("\n".join(map(str, rows)))
    sys.exit(1 if lost.total() else 0)


if __name__ == "__main__":
    main()
