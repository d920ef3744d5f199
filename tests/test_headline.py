"""Headlines through the command line: hosts with gaps, panels, mixes, single hosts, and verdicts among many."""

from __future__ import annotations

import json
import math
import re
import shlex
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.commands import refused, run
from tests.comparisons import compared, row_of
from tests.corpus import ROOT
from tests.records import IOPS, TRIAD, Bench, record

BENCHES = [Bench("spec_cpu2017", f"50{n}.job{n}_r", "base_ratio", "1", "higher", "cpu-int") for n in range(8)]
SPEEDUPS = [1.7, 1.8, 1.9, 2.0, 2.05, 2.1, 2.2, 2.3]
MLPERF = ROOT / "mlperf_published"
ASK = ("compare", "-b", "gen=old", "-c", "gen=new")


def fleets(root: Path, missing: float = 0.0, hosts: int = 6, seed: int = 1, speedups: list[float] = SPEEDUPS) -> None:
    """Two generations of ``hosts`` that differ by 2%, with a part of their figures ``missing``."""
    rng = np.random.default_rng(seed)
    measured = {}
    for side in ("old", "new"):
        for h in range(hosts):
            effect = rng.normal(0, 0.02)
            for bench, speedup in zip(BENCHES, speedups, strict=True):
                true = 5 * (speedup if side == "new" else 1) * math.exp(effect)
                if rng.random() >= missing:
                    measured[f"{side}{h}", bench] = [true * math.exp(e) for e in rng.normal(0, 0.01, 3)]
    record(root, "c1", {host: {"gen": host[:3]} for host, _ in measured}, measured)


def headline(root: Path, *words: str, class_: str = "cpu-int") -> dict[str, Any]:
    rows = json.loads(run(root, *ASK, *words, "--format", "json"))["rows"]
    (row,) = [r for r in rows if r["class"] == class_ and not r["benchmark"]]
    return dict(row)


@pytest.mark.parametrize("missing", [0.1, 0.3])
@pytest.mark.parametrize("hosts", [3, 6])
def test_missing_figures_leave_a_headline(tmp_path: Path, missing: float, hosts: int) -> None:
    fleets(tmp_path, missing, hosts, seed=hosts)
    row = headline(tmp_path)
    assert row["ratio"] == pytest.approx(math.prod(SPEEDUPS) ** (1 / 8), rel=0.06) and row["verdict"] == "better"
    assert row["benchmarks"] + row["one_sided"] == 8 and row["benchmarks"] >= 6
    assert (row["hosts_baseline"], row["hosts_candidate"]) == (hosts, hosts)
    assert row["your_workload_lo"] < row["lo"] < row["hi"] < row["your_workload_hi"]
    assert row["interval_of"] == "fleet"


def test_what_one_side_ran_takes_nothing_away(tmp_path: Path) -> None:
    fleets(tmp_path)
    only = {(host, b): [1.0, 1.1] for host, bs in (("old0", [TRIAD]), ("new0", [IOPS])) for b in bs}
    alone = Bench("spec_cpu2017", "999.alone_r", "base_ratio", "1", "higher", "cpu-int")
    record(tmp_path, "c2", {h: {"gen": h[:3]} for h in ("old0", "new0")}, {**only, ("old0", alone): [3.0]})
    row = headline(tmp_path)
    wording = r"\d\.\d\dx \(95% \d\.\d\d–\d\.\d\d\) over 8 benchmarks that both ran \(range 1\.\d+–2\.\d+\); "
    assert re.fullmatch(wording + "1 more ran on one side only", row["headline"])
    shown = run(tmp_path, *ASK)
    assert "not measured" in shown and "999.alone_r" in shown
    assert "similar program" in shown


def test_benchmarks_that_disagree_lead_with_their_range(tmp_path: Path) -> None:
    fleets(tmp_path, speedups=[0.8, 1.1, 1.2, 1.3, 1.4, 1.5, 1.6, 3.0])
    row = headline(tmp_path)
    assert re.match(
        r"0\.\d+ \(500\.job0_r, 0\.\d+–0\.\d+\) to [23]\.\d+ \(507\.job7_r, [23]\.\d+–3\.\d+\); mean 1\.\d+x \(95% ",
        row["headline"],
    )
    assert row["disagree"] and row["lowest_title"] == "spec_cpu2017 500.job0_r base_ratio"
    markdown = run(tmp_path, *ASK, "--format", "md")
    assert re.search(r"benchmarks 0\.\d+–[23]\.\d+", markdown)


def test_two_hosts_are_called_two_hosts(tmp_path: Path) -> None:
    fleets(tmp_path, hosts=2)
    assert ", 2 hosts per side) over 8 benchmarks" in headline(tmp_path)["headline"]


def test_one_host_a_side_speaks_of_two_machines(tmp_path: Path) -> None:
    fleets(tmp_path)
    row = next(r for r in compared(tmp_path, "-b", "host=old0", "-c", "host=new0") if not r["benchmark"])
    assert "(95% by repeats " in row["headline"] and "these two machines, not their kinds" in row["headline"]
    assert (row["interval_of"], row["verdict"], row["p"]) == ("repeats", "cannot tell", "")
    with_kind = next(r for r in compared(tmp_path, "-b", "host=old0", "-c", "gen=new") if not r["benchmark"])
    assert "one machine of old0, not its kind" in with_kind["headline"] and with_kind["verdict"] == "cannot tell"


@pytest.mark.skipif(not MLPERF.is_dir(), reason=f"corpus absent: no {MLPERF} (set FLEETMARK_CORPUS)")
def test_published_rows_with_gaps_have_a_headline(tmp_path: Path) -> None:
    """MLPerf Inference v5.1, 8 x H200 against 8 x B200, submitters as hosts: none of them ran everything. The issue's
    reference has 2.11 (2.04–2.17) over 1.28 to 2.98 where llama2-70b-99 and 99.9 count once.
    """
    run(tmp_path, "import", "mlperf", str(MLPERF / "inference_v5.1_summary_results.json"))
    every = "round=v5.1,division=closed,availability=available,has_power=false,accelerators=8,nodes=1"
    sides = [f"{every},accelerator=NVIDIA {name}" for name in ("H200-SXM-141GB", "B200-SXM-180GB")]
    ask = ("compare", "-b", sides[0], "-c", sides[1], "--by", "submitter", "--format", "json")
    rows = [r for r in json.loads(run(tmp_path, *ask))["rows"] if not r["benchmark"]]
    assert len(rows) >= 2 and all(r["lo"] < r["ratio"] < r["hi"] and r["verdict"] == "better" for r in rows)
    (offline,) = [r for r in rows if r["class"] == "gpu-offline"]
    assert offline["ratio"] == pytest.approx(2.15, abs=0.1) and offline["hi"] / offline["lo"] < 1.1
    wording = (
        r"1\.28 \(whisper, 1\.22–1\.34\) to 2\.98 \(llama3\.1-405b, 2\.74–3\.23\); mean 2\.\d+x "
        r"\(95% 2\.\d+–2\.\d+\) over \d benchmarks that both ran; "
    )
    assert re.match(wording + r"\d+ more ran on one side only", offline["headline"])


@pytest.mark.skipif(not MLPERF.is_dir(), reason=f"corpus absent: no {MLPERF} (set FLEETMARK_CORPUS)")
def test_published_results_of_several_sizes_have_a_command_for_one(tmp_path: Path) -> None:
    """H200 results have 8 or 16 accelerators and B200 results 1 or 8: 8 count. GB200 results have 4 or 72: none does."""
    run(tmp_path, "import", "mlperf", str(MLPERF / "inference_v5.1_summary_results.json"))
    sides = [
        f"round=v5.1,division=closed,accelerator=NVIDIA {name}"
        for name in ("H200-SXM-141GB", "B200-SXM-180GB", "GB200")
    ]
    shown = run(tmp_path, "compare", "-b", sides[0], "-c", sides[1])
    assert "8 accelerators only" in " ".join(shown.split()) and "numbers of accelerators" not in shown
    (line,) = [row.strip() for row in shown.splitlines() if row.startswith("  fleetmark compare")]
    words = shlex.split(line)[1:]
    assert words[2] == f"{sides[0]},accelerators=8" and words[4] == f"{sides[1]},accelerators=8"
    one, again = (
        {
            (r["class"], r["benchmark"]): r["ratio"]
            for r in json.loads(run(tmp_path, *ask, "--format", "json"))["rows"]
            if r["ratio"]
        }
        for ask in (("compare", "-b", sides[0], "-c", sides[1]), words)
    )
    assert one.keys() == again.keys() and [one[key] for key in one] == pytest.approx([again[key] for key in one])
    none = run(tmp_path, "compare", "-b", sides[0], "-c", sides[2])
    assert none.startswith("There is no overall figure: the sides share no size (number of accelerators)")
    (line,) = [row.strip() for row in none.splitlines() if row.startswith("  fleetmark compare")]
    matrix = " ".join(none.partition("Coverage by side")[2].partition("Benchmarks not compared")[0].split())
    assert matrix.count("[1]") == 4 and matrix.count("sides mix sizes") == 1, "a mark in three cells, and one note"
    assert "--per gpu" in line and run(tmp_path, *shlex.split(line)[1:]).startswith("One GPU of GB200 does ")


# --- a panel ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "benchmarks"),
    [
        (("--panel", "job1", "--panel", "507.job7_r"), 2),
        (("--panel", "job1, job2,spec_cpu2017 503.job3_r base_ratio"), 3),
        (("--panel", "*job?_r*"), 8),
    ],
)
def test_a_panel_is_what_the_headline_is_over(tmp_path: Path, words: tuple[str, ...], benchmarks: int) -> None:
    fleets(tmp_path, 0.1)
    row = headline(tmp_path, *words)
    assert row["benchmarks"] == benchmarks and f"over {benchmarks} benchmarks of the panel" in row["headline"]


def test_a_panel_that_makes_no_sense(tmp_path: Path) -> None:
    fleets(tmp_path, hosts=2)
    nobody = refused(tmp_path, *ASK, "--panel", "linpack")
    assert nobody.startswith(
        "--panel linpack: no machine ran this benchmark; use one of spec_cpu2017 500.job0_r base_ratio; "
    )
    assert nobody.endswith("; and 2 more")
    assert "is part of 8 benchmarks: " in refused(tmp_path, *ASK, "--panel", "job")
    both = refused(tmp_path, *ASK, "--panel", "job1", "--mix", "cpu-int=1")
    assert both == "--panel and --mix: a mix already selects benchmarks; omit one of the options"


def test_a_panel_that_one_side_lacks_is_refused_with_what_would_do(tmp_path: Path) -> None:
    fleets(tmp_path)
    alone = Bench("spec_cpu2017", "999.alone_r", "base_ratio", "1", "higher", "cpu-int")
    record(tmp_path, "c2", {"old0": {"gen": "old"}}, {("old0", alone): [3.0]})
    row = headline(tmp_path, "--panel", "job1,alone")
    assert row["ratio"] is None and row["headline"] == ""
    assert "999.alone_r base_ratio, not measured on both sides: measure what is missing, or name" in row["note"]


# --- a mix ------------------------------------------------------------------------------------------------------------


def test_equal_work_carries_the_verdict_of_a_mix(tmp_path: Path) -> None:
    """A geometric mean of 1.26 "better" stood over an equal-work ratio of 0.90 once."""
    rng = np.random.default_rng(4)
    base = {("old", TRIAD): 1e11, ("new", TRIAD): 3e11, ("old", IOPS): 1e5, ("new", IOPS): 0.53e5}
    measured = {
        (f"{gen}{n}", bench): [value * math.exp(e) for e in rng.normal(0, 0.004, 3)]
        for (gen, bench), value in base.items()
        for n in range(6)
    }
    record(tmp_path, "c1", {host: {"gen": host[:3]} for host, _ in measured}, measured)
    mix = ("--mix", "stream *=.5,fio *=.5")
    row = headline(tmp_path, *mix, class_="work mix")
    assert row["ratio"] == row["work"] == pytest.approx(2 / (1 / 3 + 1 / 0.53), rel=0.01)
    assert (row["verdict"], row["geometric"]) == ("worse", pytest.approx(math.sqrt(3 * 0.53), rel=0.01))
    assert (
        "for the same jobs over 2 benchmarks of the mix" in row["headline"] and "depends on the mix" in row["headline"]
    )
    terminal = run(tmp_path, *ASK, *mix)
    assert re.search(r"your mix +.*0\.9\d \(0\.\d+–0\.\d+\)", terminal) and "The result depends on the mix" in terminal
    assert "The result depends on the mix" in run(tmp_path, *ASK, *mix, "--format", "md")
    csv_row = row_of(compared(tmp_path, "-b", "gen=old", "-c", "gen=new", *mix), "work mix")
    assert csv_row["verdict"] == "worse"


# --- many verdicts ----------------------------------------------------------------------------------------------------


def test_verdicts_count_how_many_there_are(tmp_path: Path) -> None:
    """Of 200 benchmarks without a difference some look like one by themselves, and hardly any among all."""
    rng = np.random.default_rng(6)
    benches = [Bench("app", f"case{n}", "rate", "1/s", "higher", "app") for n in range(200)]
    measured = {
        (f"{gen}{h}", bench): [math.exp(rng.normal(0, 0.03))]
        for gen in ("old", "new")
        for h in range(4)
        for bench in benches
    }
    record(tmp_path, "c1", {host: {"gen": host[:3]} for host, _ in measured}, measured)
    rows = [r for r in json.loads(run(tmp_path, *ASK, "--format", "json"))["rows"] if r["benchmark"]]
    differs = [sum(r[name] in ("better", "worse") for r in rows) for name in ("verdict_raw", "verdict")]
    assert differs[0] >= 5 and differs[1] <= 1
    assert all(r["p"] <= r["p_adjusted"] for r in rows)
    assert {"p", "p_adjusted", "verdict", "verdict_raw"} <= set(compared(tmp_path, "-b", "gen=old", "-c", "gen=new")[0])


def test_verdicts_of_classes_count_how_many_classes_there_are(tmp_path: Path) -> None:
    """Of 60 classes without a difference some look like one by themselves, and hardly any among all."""
    rng = np.random.default_rng(11)
    benches = [Bench("app", f"case{n}", "rate", "1/s", "higher", f"own{n // 2}") for n in range(120)]
    measured = {
        (f"{gen}{h}", bench): [math.exp(rng.normal(0, 0.03))]
        for gen in ("old", "new")
        for h in range(4)
        for bench in benches
    }
    record(tmp_path, "c1", {host: {"gen": host[:3]} for host, _ in measured}, measured)
    rows = [r for r in json.loads(run(tmp_path, *ASK, "--format", "json"))["rows"] if not r["benchmark"]]
    assert len(rows) == 60
    differs = [sum(r[name] in ("better", "worse") for r in rows) for name in ("verdict_raw", "verdict")]
    assert differs[0] >= 2 and differs[1] <= 1
    ps = sorted(r["p"] for r in rows)
    least = min(rows, key=lambda r: r["p"])
    assert least["p_adjusted"] == pytest.approx(min(*(p * 60 / (n + 1) for n, p in enumerate(ps)), 1))


def test_a_reference_is_no_machine(tmp_path: Path) -> None:
    fleets(tmp_path)
    run(tmp_path, "reference", "save", "old", "--from", "gen=old")
    one = next(r for r in compared(tmp_path, "--reference", "old", "-c", "host=new0") if not r["benchmark"])
    assert one["headline"].endswith("one machine of new0, not its kind") and one["verdict"] == "cannot tell"
    fleet = next(r for r in compared(tmp_path, "--reference", "old", "-c", "gen=new") if not r["benchmark"])
    assert "not its kind" not in fleet["headline"] and fleet["verdict"] == "better"


def test_a_reference_counts_with_the_error_of_its_own_hosts(tmp_path: Path) -> None:
    """The interval against a pinned fleet is that against the fleet, gaps and all; one host has none of its own."""
    fleets(tmp_path, missing=0.3)
    run(tmp_path, "reference", "save", "old", "--from", "gen=old")
    fleet, pinned = (
        {(r["class"], r["benchmark"]): [r["ratio"], r["lo"], r["hi"], r["verdict"]] for r in compared(tmp_path, *words)}
        for words in (("-b", "gen=old", "-c", "gen=new"), ("--reference", "old", "-c", "gen=new"))
    )
    assert pinned.keys() == fleet.keys()
    for key, (*numbers, verdict) in fleet.items():
        assert pinned[key][:3] == pytest.approx(numbers) and pinned[key][3] == verdict
    notes = json.loads(run(tmp_path, "compare", "--reference", "old", "-c", "gen=new", "--format", "json"))["notes"]
    assert "intervals include the spread of the hosts of old@1" in notes
    assert "one figure without an error" in run(tmp_path, "reference", "save", "one", "--from", "host=old0")
    notes = json.loads(run(tmp_path, "compare", "--reference", "one", "-c", "gen=new", "--format", "json"))["notes"]
    assert "one@1 is one figure without an error, so intervals include only the candidate's hosts" in notes
    file = tmp_path / "references" / "old.1.json"
    earlier = json.loads(file.read_text())
    for row in earlier["benchmarks"]:
        del row["of_hosts"]
    file.write_text(json.dumps(earlier))
    notes = json.loads(run(tmp_path, "compare", "--reference", "old", "-c", "gen=new", "--format", "json"))["notes"]
    assert any("old@1 is treated as exact" in note and "pin it again" in note for note in notes)


def test_what_one_host_of_several_ran_is_never_silent(tmp_path: Path) -> None:
    """An interval by that host's repeats, called so; where it ran once there is none, and the row says why."""
    rng = np.random.default_rng(3)
    benches = [Bench("app", name, "rate", "1/s", "higher", "app") for name in ("all", "one", "once")]
    measured = {
        (f"{gen}{h}", bench): [math.exp(rng.normal(0, 0.01)) for _ in range(1 if bench.case == "once" else 5)]
        for gen in ("old", "new")
        for h in range(3)
        for bench in benches
        if gen == "old" or h == 0 or bench.case == "all"
    }
    record(tmp_path, "c1", {host: {"gen": host[:3]} for host, _ in measured}, measured)
    rows = {
        r["benchmark"].split()[1]: r for r in compared(tmp_path, "-b", "gen=old", "-c", "gen=new") if r["benchmark"]
    }
    assert (rows["all"]["interval_of"], rows["all"]["note"]) == ("fleet", "")
    one, once = rows["one"], rows["once"]
    assert one["lo"] < one["ratio"] < one["hi"] and (one["interval_of"], one["verdict"]) == ("repeats", "cannot tell")
    assert one["note"] == "one host of new ran it: the interval comes from its repeats"
    assert once["lo"] == "" and once["note"] == "one host of new ran it, with too few repeats: no interval"


def test_batches_count_instead_of_hosts_that_resemble_each_other(tmp_path: Path) -> None:
    """Write four batches of three hosts per side: batches differ by 5%, hosts of a batch by 0.5%."""
    rng = np.random.default_rng(7)
    measured, labels = {}, {}
    for side, speedup in (("old", 1.0), ("new", 2.0)):
        for batch, effect in enumerate(rng.normal(0, 0.05, 4)):
            for h in range(3):
                host = f"{side}{batch}{h}"
                labels[host] = {"gen": side, "batch": f"b{batch}", "rack": f"r{h}"}
                gain = effect + rng.normal(0, 0.005)
                measured |= {
                    (host, b): [5 * speedup * math.exp(gain + e) for e in rng.normal(0, 0.01, 3)] for b in BENCHES
                }
    record(tmp_path, "c1", labels, measured)
    row = headline(tmp_path)
    assert row["hosts_baseline"] == row["hosts_candidate"] == 12
    without = {host: {"gen": host_labels["gen"]} for host, host_labels in labels.items()}
    record(tmp_path / "plain", "c1", without, measured)
    plain = headline(tmp_path / "plain")
    assert row["ratio"] == pytest.approx(plain["ratio"])
    assert row["hi"] / row["lo"] > (plain["hi"] / plain["lo"]) ** 1.5
    shown = " ".join(run(tmp_path, *ASK).split())
    for side in ("old", "new"):
        assert f"the interval counts 4 batches of {side}; hosts with the same batch are similar (ICC " in shown
    book = tmp_path / "c.xlsx"
    run(tmp_path, *ASK, "--xlsx", str(book))
    assert book.exists()


def test_firmware_of_hosts_is_a_grouping(tmp_path: Path) -> None:
    """Make hosts with the older microcode 10% slower."""
    measured = {
        (f"{side}{h}", b): [speedup * (1.1 if h % 2 else 1.0) * (1 + 0.001 * h)]
        for side, speedup in (("old", 1.0), ("new", 2.0))
        for h in range(6)
        for b in BENCHES
    }
    archive = record(tmp_path, "c1", {host: {"gen": host[:3]} for host, _ in measured}, measured)
    for host, facts in archive.facts().items():
        cpu = facts.cpu.model_copy(update={"microcode": "0x2b" if int(host[-1]) % 2 else "0x1a"})
        archive.save_facts(host, facts.model_copy(update={"cpu": cpu}), {})
    shown = " ".join(run(tmp_path, *ASK).split())
    assert "the interval counts 2 microcode versions of old; hosts with the same microcode version are similar" in shown


def test_halves_of_a_class_that_no_host_ran_together(tmp_path: Path) -> None:
    measured = {
        (f"{side}{h}", b): [speedup * (1 + 0.01 * h)]
        for side, speedup in (("old", 1.0), ("new", 2.0))
        for h in range(4)
        for n, b in enumerate(BENCHES)
        if side == "old" or (n < 4) == (h < 2)
    }
    record(tmp_path, "c1", {host: {"gen": host[:3]} for host, _ in measured}, measured)
    shown = " ".join(run(tmp_path, *ASK).split())
    assert re.search(r"no host of new ran both .*500\.job0_r.* and .*504\.job4_r", shown)


def test_a_class_of_two_benchmarks_says_nothing_of_other_work(tmp_path: Path) -> None:
    fleets(tmp_path)
    two = ("--panel", "500.job0", "--panel", "501.job1")
    row = headline(tmp_path, *two)
    assert (
        row["your_workload_lo"] is None
        and row["your_workload_why"] == "fewer than 3 families of benchmarks were measured"
    )
    shown = " ".join(run(tmp_path, *ASK, *two).split())
    assert (
        "No estimate for other programs in integer: fewer than 3 families of benchmarks were measured. Run your program on both sides."
        in shown
    )


def test_a_pinned_host_is_not_its_kind(tmp_path: Path) -> None:
    fleets(tmp_path)
    run(tmp_path, "reference", "save", "one", "--from", "host=old0")
    rows = json.loads(run(tmp_path, "compare", "--reference", "one", "-c", "gen=new", "--format", "json"))["rows"]
    assert {r["verdict"] for r in rows} == {"cannot tell"} and {r["p"] for r in rows} == {None}
    (head,) = [r for r in rows if not r["benchmark"]]
    assert head["lo"] > 1.5 and head["headline"].endswith("one machine of one@1, not its kind")
    assert head["your_workload_lo"] is None
