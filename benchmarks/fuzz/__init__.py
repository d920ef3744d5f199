"""Fuzz every reader of bytes from outside: ``python -m benchmarks.fuzz [--seconds 60] [--runs N] [--only NAME]``.

Each target of ``benchmarks.fuzz.targets`` runs in a process of its own, for so many seconds and inputs at most;
``--seconds NAME=600`` gives one target more time than the others. A crash
is any exception that its caller does not expect, a figure from a parser that its input does not contain, 10 s of CPU time,
or 4 GiB of memory. Coverage guides the inputs if atheris is installed (``pip install atheris``); else they are real
outputs and files with random damage. Prints a row for each target, and every crash; exits with 1 if there is one.
``--store FILE`` writes the table as JSON; rows of targets that were not run stay in it. ``--keep DIR`` keeps inputs.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.measuring import circumstances

HOUSE = Path(__file__).parents[2]
DEFAULT_S = 60
GRACE_S = 300  # for imports, seeds, and an input that takes long


def fuzz(name: str, folder: Path, runs: int, seconds: int, seed: int) -> tuple[dict[str, Any], list[dict[str, str]]]:
    """Fuzz one target. Return its row, and its crashes."""
    folder.mkdir(parents=True, exist_ok=True)
    words = [sys.executable, "-m", "benchmarks.fuzz.engine", name, str(folder)]
    words += ["--runs", str(runs), "--seconds", str(seconds), "--seed", str(seed)]
    try:
        done = subprocess.run(words, cwd=HOUSE, capture_output=True, timeout=seconds + GRACE_S, env=os.environ)
        log, status = done.stderr.decode(errors="replace"), done.returncode
    except subprocess.TimeoutExpired as error:
        log, status = (error.stderr or b"").decode(errors="replace"), -1
    (folder / "log.txt").write_text(log)
    return read(name, folder, status)


def read(name: str, folder: Path, status: int = 0) -> tuple[dict[str, Any], list[dict[str, str]]]:
    """Return the row and the crashes of a target that was fuzzed in ``folder``. ``status``: of its process."""
    log = (folder / "log.txt").read_text()
    findings = folder / "findings.jsonl"
    crashes = [json.loads(line) for line in findings.read_text().splitlines()] if findings.exists() else []
    counts = json.loads((folder / "done.json").read_text()) if (folder / "done.json").exists() else {}
    if status or not counts:
        crashes.append({"input": "", "place": f"{name}: the process ended with {status}", "traceback": log[-2000:]})
    executed = re.findall(r"stat::number_of_executed_units:\s+(\d+)", log)
    edges = [int(n) for n in re.findall(r"\bcov: (\d+)", log)]
    row = {
        "target": name,
        "inputs": int(executed[-1]) if executed else counts.get("inputs", 0),
        "accepted": counts.get("accepted", 0),
        "edges": max(edges, default=None),
        "crashes": len(crashes),
        "longest_s": round(counts.get("longest_s", 0.0), 2),
        "peak_mb": round(counts.get("peak_mb", 0.0)),
    }
    return row, crashes


def allotted(words: Sequence[str]) -> dict[str, int]:
    """Return the seconds of each target, from the words of ``--seconds``: a number for all, or ``NAME=number`` for one.

    Raises ValueError for anything else.
    """
    from benchmarks.fuzz.targets import TARGETS

    pairs = [word.rpartition("=")[::2] for word in words]
    if unknown := {name for name, _ in pairs if name} - set(TARGETS):
        raise ValueError(f"--seconds: there is no target {min(unknown)}; targets: {', '.join(TARGETS)}")
    base = [int(value) for name, value in pairs if not name]
    one = {name: int(value) for name, value in pairs if name}
    return {name: one.get(name, base[-1] if base else DEFAULT_S) for name in TARGETS}


def show(rows: Sequence[dict[str, Any]]) -> None:
    print(f"{'target':24} {'inputs':>10} {'accepted':>9} {'edges':>7} {'crashes':>8} {'longest':>8} {'memory':>8}")
    for row in rows:
        edges = row["edges"] if row["edges"] is not None else "-"
        counts = f"{row['inputs']:10,} {row['accepted']:9,} {edges:>7} {row['crashes']:8}"
        print(f"{row['target']:24} {counts} {row['longest_s']:6.2f} s {row['peak_mb']:5} MB")


def store(file: Path, rows: Sequence[dict[str, Any]]) -> None:
    """Write the table as JSON, after each target, so that an interrupted run keeps what it has."""
    from benchmarks.fuzz.targets import TARGETS

    engine = "atheris" if importlib.util.find_spec("atheris") else "mutations"
    here = circumstances()
    by_target = {row["target"]: row for row in json.loads(file.read_text())["rows"]} if file.exists() else {}
    by_target |= {row["target"]: {**row, "date": here["date"], "commit": here["commit"]} for row in rows}
    every = [by_target[name] for name in TARGETS if name in by_target]
    doc = {**here, "engine": engine, "inputs": sum(row["inputs"] for row in every), "rows": every}
    file.write_text(json.dumps(doc, indent=1) + "\n")


def main() -> None:
    from benchmarks.fuzz.targets import TARGETS

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", action="append", default=[], help="for each target, or NAME=SECONDS; repeatable")
    parser.add_argument("--runs", type=int, default=1_000_000_000, help="maximum number of inputs per target")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", action="append", choices=list(TARGETS), help="repeatable")
    parser.add_argument("--store", type=Path)
    parser.add_argument("--keep", type=Path)
    options = parser.parse_args()
    seconds, rows, crashes = allotted(options.seconds), [], []
    with tempfile.TemporaryDirectory(prefix="fleetmark-fuzz-") as temporary:
        for name in options.only or TARGETS:
            folder = (options.keep or Path(temporary)) / name.replace(" ", "-")
            row, more = fuzz(name, folder, options.runs, seconds[name], options.seed)
            rows.append({**row, "seconds": seconds[name]})
            crashes += more
            if options.store:
                store(options.store, rows)
    show(rows)
    for crash in crashes:
        print(f"\n{crash['place']} by input {crash['input']}\n{crash['traceback']}")
    sys.exit(1 if crashes else 0)
