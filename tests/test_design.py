"""``fleetmark design`` over a record of made-up machines: decisions, the next run, and bad input."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tests.commands import refused, run
from tests.records import GCC, MCF, record

NAMES = ("541.leela_r", "523.xalancbmk_r", "531.deepsjeng_r", "525.x264_r")
BENCHES = (MCF, GCC, *(replace(MCF, case=name) for name in NAMES))
HALF = BENCHES[:2]
RARE = replace(MCF, case="548.exchange2_r")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Twelve generations that ran six benchmarks, and five of them a seventh; ``new`` and ``next`` ran two of the six.

    Each has two hosts.
    """
    random = np.random.default_rng(5)
    hosts, measured = {}, {}
    speeds = {f"g{n}": math.exp(random.normal(0, 0.4)) for n in range(12)} | {"base": 1.0, "new": 2.0, "next": 1.98}
    for gen, speed in speeds.items():
        profile = np.exp(random.normal(0, 0.05, len(BENCHES)))
        for host in (f"{gen}-a", f"{gen}-b"):
            hosts[host] = {"gen": gen}
            for bench, factor in zip(BENCHES, profile, strict=True):
                if gen not in ("new", "next") or bench in HALF:
                    measured[host, bench] = [5 * speed * factor * math.exp(random.normal(0, 0.01)) for _ in range(2)]
            if gen in ("g0", "g1", "g2", "g3", "g4"):
                measured[host, RARE] = [5 * speed] * 2
    record(tmp_path, "c", hosts, measured)
    return tmp_path


def test_a_clear_case_is_decided_by_two_of_six_benchmarks(root: Path) -> None:
    words = ("design", "-b", "gen=base", "-c", "gen=new", "--at-least", "1.3")
    shown = run(root, *words)
    assert shown.startswith("Yes: one gen=new replaces 2.")
    data = json.loads(run(root, *words, "--format", "json"))
    (candidate,) = data["candidates"]
    assert data["decided"] and data["doubt"] < 0.01 and len(candidate["benchmarks"]) == 2
    assert candidate["lo"] < 2.0 < candidate["hi"] and data["panel"]["families"] == 12
    assert run(root, *words[:-1], "4").startswith("No: one gen=new replaces")


def test_a_close_case_says_what_to_run_next(root: Path) -> None:
    words = ("design", "-b", "gen=base", "-c", "gen=new", "--at-least", "2")
    shown = run(root, *words, status=1)
    assert shown.startswith("Not decided") and "Run next on gen=" in shown and "fleetmark run -s spec_cpu2017" in shown
    data = json.loads(run(root, *words, "--format", "json", status=1))
    left = {f"spec_cpu2017 {name} base_ratio" for name in NAMES}
    assert data["next"]["steps"] and {step["benchmark"] for step in data["next"]["steps"]} <= left


@pytest.mark.parametrize(
    ("workload", "sentence"),
    [
        ("published", "Fleetmark has no workload that measures published 541.leela_r"),
        ("stream", "or run `fleetmark run -s stream` on a machine of this type"),
    ],
)
def test_imported_machines_get_no_command_that_cannot_run(tmp_path: Path, workload: str, sentence: str) -> None:
    random = np.random.default_rng(7)
    lines = ["machine,workload,benchmark,value,unit,better,class,kind,family"]
    for n in range(12):
        speed = math.exp(random.normal(0, 0.4))
        for name in NAMES if n else NAMES[1:]:
            lines.append(
                f"m{n},{workload},{name},{speed * math.exp(random.normal(0, 0.2)):.6f},1,higher,cpu-int,capacity,f{n}"
            )
    (tmp_path / "table.csv").write_text("\n".join(lines))
    root = tmp_path / "results"
    run(root, "import", "table", str(tmp_path / "table.csv"))
    shown = run(root, "design", "--family", "family", "-c", "host=m0", "-c", "host=m1", status=1)
    flat = " ".join(shown.split())
    assert sentence in flat and "on 1 host (" in flat


def test_the_best_of_several(root: Path) -> None:
    assert run(root, "design", "-c", "gen=base", "-c", "gen=new").startswith("gen=new is the best")
    assert run(root, "design", "-c", "gen=next", "-c", "gen=new", status=1).startswith("Not decided")


def test_benchmarks_that_few_families_ran_count_only_if_they_are_named(root: Path) -> None:
    words = ("design", "-c", "gen=next", "-c", "gen=new", "--format", "json")
    left = {f"spec_cpu2017 {name} base_ratio" for name in NAMES}
    steps = json.loads(run(root, *words, status=1))["next"]["steps"]
    assert {step["benchmark"] for step in steps} <= left
    panel = json.loads(run(root, *words, "--only", "spec_cpu2017/*/*", status=1))["panel"]
    assert panel["families"] == 5


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("-c", "gen=new"), "give --baseline and --at-least, or two or more"),
        (("-c", "gen=new", "-b", "gen=base"), "--baseline and --at-least: give both"),
        (("-c", "gen=new", "-b", "gen=base", "--at-least", "0"), "give a number above 0"),
        (("-c", "gen=new", "-c", "gen=next", "-b", "gen=base", "--at-least", "2"), "needs exactly one candidate"),
        (("-c", "gen=nothing", "-b", "gen=base", "--at-least", "2"), "matches no machine"),
        (("-c", "gen=new", "-c", "gen=next", "--family", "site"), "has the label 'site'"),
        (("-c", "gen=new", "-c", "gen=next", "--only", "*/*mcf*/*"), "at least 3 are needed"),
    ],
)
def test_bad_questions(root: Path, words: tuple[str, ...], sentence: str) -> None:
    assert sentence in refused(root, "design", *words)
