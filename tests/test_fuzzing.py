"""A sample of ``benchmarks.fuzz``: damaged files of every kind end in a sentence, and a crash is found and kept."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest

from benchmarks.fuzz.engine import Findings, mutated
from benchmarks.fuzz.targets import TARGETS, Target, accepts
from fleetmark.base.errors import FleetmarkError

INPUTS = {"workbooks": 3, "archives and Parquet": 10, "YAML": 10, "CSV and JSON tables": 10}
OFTEN = 40  # inputs of the other, faster targets


@pytest.mark.parametrize("name", TARGETS)
def test_damaged_input_is_refused_in_a_sentence(name: str, tmp_path: Path) -> None:
    findings, pick = Findings(TARGETS[name], tmp_path), random.Random(40)
    seeds = TARGETS[name].seeds()
    assert len(seeds) > 5
    for _ in range(INPUTS.get(name, OFTEN)):
        seed = pick.choice(seeds)
        findings.run(seed)
        findings.run(mutated(seed, pick))
    assert findings.places == set(), (tmp_path / "findings.jsonl").read_text()
    assert findings.accepted > 0, "undamaged input is read"


def test_a_crash_is_kept_once_with_its_input(tmp_path: Path) -> None:
    def crash(data: bytes) -> bool:
        return accepts(lambda: dict[bytes, int]()[data], FleetmarkError)

    findings = Findings(Target("x", crash, lambda: [b"a"]), tmp_path)
    findings.run(b"a")
    findings.run(b"b")
    (line,) = (tmp_path / "findings.jsonl").read_text().splitlines()
    finding = json.loads(line)
    assert finding["place"].startswith("KeyError at ") and "Traceback" in finding["traceback"]
    assert (tmp_path / finding["input"]).read_bytes() == b"a" and findings.inputs == 2


def test_an_error_without_a_sentence_is_a_crash(tmp_path: Path) -> None:
    def speechless(data: bytes) -> bool:
        def read() -> None:
            raise FleetmarkError("\n".join(["fault"] * 12) if data else "")

        return accepts(read, FleetmarkError)

    findings = Findings(Target("x", speechless, list), tmp_path)
    findings.run(b"")
    findings.run(b"a")
    assert len(findings.places) == 1 and findings.accepted == 0
