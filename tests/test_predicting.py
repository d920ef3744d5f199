"""``fleetmark predict`` over a record of made-up machines: predictions, what cannot be predicted, bad input."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tests.commands import refused, run
from tests.records import GCC, IOPS, MCF, NULL, TRIAD, Bench, record

LEELA = replace(MCF, case="541.leela_r")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Twelve generations whose leela follows mcf and gcc; a new one that was measured on those two only."""
    rng = np.random.default_rng(5)
    hosts, measured = {}, {}
    for n in range(13):
        speed = math.exp(rng.normal(0, 0.4))
        name = f"m{n}"
        hosts[name] = {"gen": f"g{n}"}
        truth = {MCF: 5 * speed, GCC: 6 * speed, LEELA: 4 * speed, NULL: 1e-7 / speed}
        for bench, value in truth.items():
            if n < 12 or bench in (MCF, GCC):
                measured[name, bench] = [value * math.exp(rng.normal(0, 0.01)) for _ in range(3)]
    record(tmp_path, "c", hosts, measured)
    (tmp_path / "truth.json").write_text(json.dumps(speed))
    return tmp_path


def test_what_follows_from_the_others_is_predicted(root: Path) -> None:
    speed = json.loads((root / "truth.json").read_text())
    predictions = {f["benchmark"]: f for f in json.loads(run(root, "predict", "-m", "gen=g12", "--format", "json"))}
    leela = predictions["spec_cpu2017 541.leela_r base_ratio"]
    assert leela["value"] == pytest.approx(4 * speed, rel=0.05)
    assert leela["lo"] < leela["value"] < leela["hi"] and leela["machines"] == 12
    null = predictions["lmbench lat_syscall-null null"]
    assert null["better"] == "lower" and null["lo"] < null["value"] < null["hi"]
    assert null["value"] == pytest.approx(1e-7 / speed, rel=0.05)


def test_ratios_against_a_baseline(root: Path) -> None:
    words = ("predict", "-m", "gen=g12", "-b", "gen=g0", "--target", "*leela*", "--format", "json")
    (leela,) = json.loads(run(root, *words))
    assert leela["ratio_lo"] < leela["ratio"] < leela["ratio_hi"]
    assert "541.leela_r" in run(root, "predict", "-m", "gen=g12", "-b", "gen=g0")


@pytest.mark.parametrize(
    ("change", "reason"),
    [({"unit": "B/s"}, "units clash: 1, B/s"), ({"better": "lower"}, "directions clash: higher is better, low")],
)
def test_figures_that_do_not_go_together_are_not_mixed(root: Path, change: dict[str, str], reason: str) -> None:
    other = replace(LEELA, **change)
    record(root, "d", {"x": {"gen": "gx"}}, {("x", other): [3.0], ("x", MCF): [5.0], ("x", GCC): [6.0]})
    predictions = {f["benchmark"]: f for f in json.loads(run(root, "predict", "-m", "gen=g12", "--format", "json"))}
    leela = predictions["spec_cpu2017 541.leela_r base_ratio"]
    assert leela["value"] is None and leela["why"].startswith(reason)
    assert predictions["lmbench lat_syscall-null null"]["value"]


def test_a_short_record_cannot_tell(tmp_path: Path) -> None:
    hosts = {f"m{n}": {"gen": f"g{n}"} for n in range(3)}
    measured: dict[tuple[str, Bench], list[float]] = {(h, TRIAD): [1e9] for h in hosts}
    measured |= {("m0", IOPS): [1e5], ("m1", IOPS): [2e5]}
    record(tmp_path, "c", hosts, measured)
    assert "cannot tell" in run(tmp_path, "predict", "-m", "gen=g2")


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["-m", "gen=g99"], "matches no machine"),
        (["-m", "gen=g12", "--family", "kind"], "has the label 'kind'"),
        (["-m", "gen=g0"], "has already run every recorded benchmark"),
        (["-m", "gen=g12", "--target", "nothing*"], "has already run every recorded benchmark of nothing*"),
    ],
)
def test_bad_input_is_one_sentence(root: Path, words: list[str], expected: str) -> None:
    assert expected in refused(root, "predict", *words)
