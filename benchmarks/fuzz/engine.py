"""Fuzz one target in this process: by atheris, whose coverage guides it, or without it by mutations alone.

Parents run ``python -m benchmarks.fuzz.engine TARGET FOLDER --runs N --seconds S``. What was found is written to FOLDER
as it is found: an input, and ``findings.jsonl`` with its traceback. ``done.json`` counts inputs.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import importlib
import importlib.util
import json
import pkgutil
import random
import resource
import sys
import time
import traceback
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

MOST_S = 10.0  # CPU seconds of one input; a workbook of 64 KiB takes about one
MOST_MEMORY = 4 << 30  # bytes of this process
MOST_INPUT = 64 << 10  # bytes
EVERY = 200  # inputs between two counts on disk


class Findings:
    """Run a target, and store each different failure once, with the first input that led to it."""

    def __init__(self, target: Any, folder: Path) -> None:
        self.target, self.folder = target, folder
        self.inputs = self.accepted = 0
        self.longest_s = 0.0
        self.places: set[str] = set()

    def run(self, data: bytes) -> None:
        """Run one input; a failure is stored, and the next input follows."""
        began = time.process_time()
        try:
            self.accepted += self.target.run(data)
        except Exception as error:  # noqa: BLE001  # whatever it is, it is what this program looks for
            self.store(data, error)
        took_s = time.process_time() - began
        self.longest_s = max(self.longest_s, took_s)
        if took_s > MOST_S:
            self.store(data, TimeoutError(f"took {took_s:.0f} s of CPU time"))
        self.inputs += 1
        if self.inputs % EVERY == 0 or self.inputs < EVERY:  # slow targets run few
            self.count()

    def store(self, data: bytes, error: Exception) -> None:
        """Write a failure, unless another one at the same place is stored already."""
        frames = traceback.extract_tb(error.__traceback__)
        place = f"{type(error).__name__} at {frames[-1].filename}:{frames[-1].lineno}" if frames else str(error)
        if place in self.places:
            return
        self.places.add(place)
        name = hashlib.sha256(data).hexdigest()[:16]
        (self.folder / name).write_bytes(data)
        text = "".join(traceback.format_exception(error))[-4000:]
        with (self.folder / "findings.jsonl").open("a") as file:
            file.write(json.dumps({"input": name, "place": place, "traceback": text}) + "\n")

    def count(self) -> None:
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1000
        doc = {"inputs": self.inputs, "accepted": self.accepted, "longest_s": self.longest_s, "peak_mb": peak}
        (self.folder / "done.json").write_text(json.dumps(doc))


def import_all(package: str) -> None:
    """Import every module of a package, so that coverage is measured in modules that are loaded late."""
    root = importlib.import_module(package)
    for module in pkgutil.walk_packages(root.__path__, f"{package}."):
        with contextlib.suppress(ImportError):
            importlib.import_module(module.name)


def load(name: str, atheris: ModuleType | None) -> Any:
    """Return the target; with atheris, what it calls is instrumented."""
    if atheris is None:
        return importlib.import_module("benchmarks.fuzz.targets").TARGETS[name]
    with atheris.instrument_imports(include=["fleetmark"]):
        for package in ("fleetmark.parsers", "fleetmark.demand", "fleetmark.record", "fleetmark.workloads"):
            import_all(package)
        return importlib.import_module("benchmarks.fuzz.targets").TARGETS[name]


def mutated(data: bytes, pick: random.Random) -> bytes:
    """Return an input changed to resemble damaged output; its first byte, which chooses a reader, stays."""
    mutations = importlib.import_module("tests.parsers.damage").MUTATIONS
    body = data[1:]
    for _ in range(pick.randint(1, 4)):
        body = pick.choice(mutations)(body, pick)
    return (data[:1] + body)[:MOST_INPUT]


def by_coverage(atheris: ModuleType, findings: Findings, seeds: Sequence[bytes], runs: int, seconds: int) -> None:
    """Let libFuzzer choose inputs, half of them mutated by libFuzzer and half changed to resemble damaged output. Does not return."""
    corpus = findings.folder / "corpus"
    corpus.mkdir(exist_ok=True)
    for number, seed in enumerate(seeds):
        (corpus / f"seed-{number:04}").write_bytes(seed)

    def mutate(data: bytes, limit: int, seed: int) -> bytes:
        pick = random.Random(seed)
        return mutated(data, pick)[:limit] if pick.random() < 0.5 else bytes(atheris.Mutate(data, len(data)))

    options = [f"-runs={runs}", f"-max_total_time={seconds}", f"-max_len={MOST_INPUT}", "-rss_limit_mb=0"]
    words = [sys.argv[0], *options, "-timeout=120", f"-artifact_prefix={findings.folder}/", "-print_final_stats=1"]
    atheris.Setup([*words, str(corpus)], findings.run, custom_mutator=mutate)
    atheris.Fuzz()


def by_mutation(findings: Findings, seeds: Sequence[bytes], runs: int, seconds: int, seed: int) -> None:
    """Run the seeds, then mutated seeds."""
    pick, until = random.Random(seed), time.monotonic() + seconds
    for data in seeds[:runs]:
        findings.run(data)
    while findings.inputs < runs and time.monotonic() < until:
        findings.run(mutated(pick.choice(seeds), pick))
    findings.count()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("target")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--runs", type=int, required=True)
    parser.add_argument("--seconds", type=int, required=True)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    resource.setrlimit(resource.RLIMIT_AS, (MOST_MEMORY, MOST_MEMORY))
    atheris = importlib.import_module("atheris") if importlib.util.find_spec("atheris") else None
    target = load(options.target, atheris)
    findings = Findings(target, options.folder)
    if atheris:
        by_coverage(atheris, findings, target.seeds(), options.runs, options.seconds)
    else:
        by_mutation(findings, target.seeds(), options.runs, options.seconds, options.seed)


if __name__ == "__main__":
    main()
