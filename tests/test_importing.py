"""Test ``fleetmark import`` and comparisons of imported results against published figures."""

from __future__ import annotations

import csv
import json
import os
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from scipy import stats
from typer.testing import CliRunner, Result

from fleetmark.base.errors import FleetmarkError
from fleetmark.cli.app import app
from fleetmark.record.machines import machines as on_record
from fleetmark.record.select import choose
from tests.corpus import ROOT
from tests.records import IOPS, record

MLPERF, SPEC = ROOT / "mlperf_published", ROOT / "spec_published"
absent = pytest.mark.skipif(not MLPERF.is_dir(), reason=f"corpus absent: no {MLPERF} (set FLEETMARK_CORPUS)")
TABLE = """machine,benchmark,value,unit,gen,watts
a1,nginx,100,requests/s,old,200
a1,nginx,102,requests/s,old,200
a2,nginx,104,requests/s,old,200
b1,nginx,210,requests/s,new,300
b2,nginx,206,requests/s,new,300
b2,boot,0,s,new,300
"""


def invoke(root: Path, *words: str) -> Result:
    return CliRunner().invoke(app, [*words, "--results", str(root)], catch_exceptions=False)


def run(root: Path, *words: str) -> str:
    done = invoke(root, *words)
    assert done.exit_code == 0, done.output
    return done.stdout


def refused(root: Path, *words: str) -> str:
    with pytest.raises(FleetmarkError) as error:
        invoke(root, *words)
    assert "\n" not in str(error.value)
    return str(error.value)


def compared(root: Path, baseline: str, candidate: str, *words: str) -> dict[str, Any]:
    comparison: dict[str, Any] = json.loads(
        run(root, "compare", "-b", baseline, "-c", candidate, *words, "--format", "json")
    )
    return comparison


def row_of(comparison: dict[str, Any], benchmark: str) -> dict[str, Any]:
    (row,) = [r for r in comparison["rows"] if benchmark in r["benchmark"] or (not benchmark and not r["benchmark"])]
    return dict(row)


@pytest.fixture
def tidy(tmp_path: Path) -> Path:
    file = tmp_path / "tidy figures.csv"
    file.write_text(TABLE)
    return file


# ------------------------------------------------------------ the command


def test_an_import_is_on_record_and_no_campaign(tmp_path: Path, tidy: Path) -> None:
    output = run(tmp_path, "import", "table", str(tidy))
    assert "5 figures of 4 machines from 6 rows" in output
    assert "left out: 1: zero" in output and "select by host, gen (2), watts (2)" in output
    (folder,) = (tmp_path / "imports").iterdir()
    assert folder.name.startswith("table-tidy-figures-")
    document = json.loads((folder / "import.json").read_text())
    assert document["source"] == str(tidy) and len(document["sha256"]) == 64
    assert (document["kind"], document["rows"], document["figures"], document["left_out"]) == (
        "table",
        6,
        5,
        {"zero": 1},
    )
    assert document["machines"]["b1"] == {"gen": "new", "watts": "300"}
    assert json.loads(run(tmp_path, "campaigns", "--format", "json")) == []
    (row,) = csv.DictReader(run(tmp_path, "import", "table", str(tidy), "--format", "csv").splitlines())
    assert (row["source"], row["machines"], row["figures"], row["rows"]) == (str(tidy), "4", "5", "6")


def test_the_same_file_again_says_that_it_is_there(tmp_path: Path, tidy: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "1000")
    run(tmp_path, "import", "table", str(tidy))
    other = tidy.with_name("other name.csv")
    other.write_bytes(tidy.read_bytes())
    for file in (tidy, other):
        text = run(tmp_path, "import", "table", str(file))
        assert f"{tidy} is already imported" in text and f"{tmp_path}/imports/table-tidy-figures-" in text
    assert len(list((tmp_path / "imports").iterdir())) == 1
    (doc,) = json.loads(run(tmp_path, "import", "table", str(tidy), "--format", "json"))
    assert (doc["new"], doc["machines"], doc["labels"]) == (False, 4, {"gen": 2, "watts": 2})


def test_machines_of_a_table_are_compared_like_hosts(tmp_path: Path, tidy: Path) -> None:
    run(tmp_path, "import", "table", str(tidy))
    row = row_of(compared(tmp_path, "gen=old", "gen=new"), "nginx")
    truth = np.sqrt(210 * 206) / np.sqrt(np.sqrt(100 * 102) * 104)  # mean over repeats first, then over machines
    assert row["ratio"] == pytest.approx(truth)
    assert (row["benchmark"], row["hosts_baseline"], row["hosts_candidate"]) == ("table nginx rate of=requests", 2, 2)
    per_watt = row_of(compared(tmp_path, "gen=old", "gen=new", "--per", "watt"), "nginx")
    assert per_watt["ratio"] == pytest.approx(truth / 1.5)


def test_arithmetic_means_have_fiellers_interval(tmp_path: Path) -> None:
    figures = [*(("old", v) for v in (9, 10, 11)), *(("new", v) for v in (19, 20, 21))]
    lines = [f"{g}{v},{g},nginx,rate,{v},requests/s,higher" for g, v in figures]
    (tmp_path / "t.csv").write_text("\n".join(["machine,gen,benchmark,metric,value,unit,better", *lines]))
    run(tmp_path, "import", "table", str(tmp_path / "t.csv"))
    row = row_of(compared(tmp_path, "gen=old", "gen=new"), "nginx")
    ends = (row["arithmetic"], row["arithmetic_lo"], row["arithmetic_hi"])
    assert ends == pytest.approx((2.0, 1.6858, 2.4197), abs=5e-5) and row["fieller_g"] == pytest.approx(
        0.025695, abs=5e-7
    )
    assert row["ratio"] == pytest.approx((19 * 20 * 21 / (9 * 10 * 11)) ** (1 / 3))  # the headline stays geometric


def test_imports_and_campaigns_are_chosen_together_and_apart(tmp_path: Path, tidy: Path) -> None:
    run(tmp_path, "import", "table", str(tidy))
    record(tmp_path, "c1", {"h1": {"gen": "old"}}, {("h1", IOPS): [1e5]})
    every = on_record(tmp_path)
    assert [m.host for m in choose(every, "gen=old")] == ["h1", "a1", "a2"]
    assert [m.host for m in choose(every, "gen=old,campaign=imports/*")] == ["a1", "a2"]
    assert [m.host for m in choose(every, "gen=old,campaign!=imports/*")] == ["h1"]
    with pytest.raises(FleetmarkError, match="matches no machine"):
        choose(every, "cpu.cores>=4,gen=new")  # tables have labels, but no facts


def test_rates_of_different_things_are_no_ratio(tmp_path: Path) -> None:
    file = tmp_path / "t.csv"
    file.write_text("machine,benchmark,value,unit,gen\na,gptj,100,samples/s,x\nb,gptj,7000,tokens/s,y\n")
    run(tmp_path, "import", "table", str(file))
    assert "share no benchmark" in refused(tmp_path, "compare", "-b", "gen=x", "-c", "gen=y")


def test_one_bad_file_among_several_does_not_stop_the_others(tmp_path: Path, tidy: Path) -> None:
    empty = tmp_path / "empty.csv"
    empty.touch()
    done = invoke(tmp_path, "import", "table", str(empty), str(tidy))
    assert done.exit_code == 2
    assert f"fleetmark: {empty}: the file is empty" in done.stderr
    assert len(list((tmp_path / "imports").iterdir())) == 1


@pytest.mark.parametrize(
    ("kind", "content", "expected"),
    [
        (
            "mlprf",
            TABLE,
            "import mlprf (did you mean mlperf?): there are mlperf, spec, sparecores, table, inferencex, vllm_bench",
        ),
        ("table", None, "t.csv: No such file or directory; give a file to import"),
        ("table", "", "t.csv: the file is empty; fetch it again"),
        ("mlperf", TABLE, "t.csv: no table of MLPerf results: there are MLPerf Inference results"),
        ("spec", TABLE, "this file has machine, benchmark, value, unit"),
        ("table", TABLE.replace("unit", "units"), "lacks the column unit"),
        ("table", TABLE.replace("requests/s", "", 1), "line 2 (a1, nginx): no unit"),
        ("table", "[{", "t.csv: the JSON is damaged or incomplete"),
    ],
)
def test_bad_input_is_one_sentence(tmp_path: Path, kind: str, content: str | None, expected: str) -> None:
    file = tmp_path / "t.csv"
    if content is not None:
        file.write_text(content)
    assert expected in refused(tmp_path, "import", kind, str(file))
    assert not (tmp_path / "imports").exists()


def test_columns_that_a_selector_has_other_words_for(tmp_path: Path) -> None:
    file = tmp_path / "t.csv"
    file.write_text("machine,benchmark,value,unit,host,campaign,gen\na,x,1,score,h,c,g\n".replace("score", "GB/s"))
    assert "the column host is left out: in a selector, host stands for the machine" in run(
        tmp_path, "import", "table", str(file)
    )
    (machine,) = on_record(tmp_path)
    assert dict(machine.labels) == {"gen": "g"} and machine.values("host") == ["a"]


def test_a_moment_beyond_the_calendar_and_a_workbook(tmp_path: Path) -> None:
    far = pa.table({"machine": ["a"], "benchmark": ["x"], "value": [1.0], "unit": ["s"], "at": pa.array([10**15])})
    far = far.set_column(4, "at", far["at"].cast(pa.timestamp("s")))
    pq.write_table(far, tmp_path / "far.parquet")
    assert "far.parquet: the Parquet file is damaged" in refused(
        tmp_path, "import", "table", str(tmp_path / "far.parquet")
    )
    (tmp_path / "t.xlsx").write_bytes(b"PK\x03\x04 and so on")
    assert "save its sheet as CSV" in refused(tmp_path, "import", "table", str(tmp_path / "t.xlsx"))


def test_a_name_that_is_no_text(tmp_path: Path, tidy: Path) -> None:
    odd = Path(os.fsdecode(bytes(tmp_path) + b"/odd\xff.csv"))
    odd.write_bytes(tidy.read_bytes())
    run(tmp_path, "import", "table", str(odd))
    (folder,) = (tmp_path / "imports").iterdir()
    assert json.loads((folder / "import.json").read_text())["source"].endswith("/odd\ufffd.csv")


def test_a_folder_is_no_file(tmp_path: Path) -> None:
    assert "Is a directory" in refused(tmp_path, "import", "table", str(tmp_path))


@pytest.mark.parametrize("text", ["{", "[]", '{"schema": 1}', '{"schema": 9, "machines": {}}'])
def test_a_damaged_import_says_what_to_do(tmp_path: Path, tidy: Path, text: str) -> None:
    run(tmp_path, "import", "table", str(tidy))
    (file,) = (tmp_path / "imports").glob("*/import.json")
    file.write_text(text)
    error = refused(tmp_path, "compare", "-b", "gen=old", "-c", "gen=new")
    assert str(file) in error and ("import again" in error or "schema 9" in error)


def test_a_name_that_a_selector_would_misread(tmp_path: Path, tidy: Path) -> None:
    file = tmp_path / "a,b=[c] d\u00e9.tar.csv.gz"
    file.write_bytes(tidy.read_bytes())
    run(tmp_path, "import", "table", str(file))
    (machine,) = on_record(tmp_path)[:1]
    assert machine.campaign.startswith("imports/table-a-b-c-d-.tar-")
    assert choose(on_record(tmp_path), f"campaign={machine.campaign}")


def test_per_watt_is_by_the_power_that_mlperf_measured(tmp_path: Path) -> None:
    row: dict[str, Any] = {
        "Organization": "Acme",
        "Division": "closed",
        "Model": "bert-99",
        "Scenario": "Offline",
        "version": "v4.1",
    }
    row |= {"Units": "Samples/s", "has_power": True, "git_url": "https://github.com/mlcommons/inference_results_v4.1"}
    old = {"Platform": "old", "Result": 100, "Result_Power": 1000, "Result_Power_Units": "Watts"}
    new = {"Platform": "new", "Result": 600, "Result_Power": 2000, "Result_Power_Units": "Watts"}
    file = tmp_path / "t.json"
    file.write_text(json.dumps([row | old, row | new]))
    run(tmp_path, "import", "mlperf", str(file))
    assert row_of(compared(tmp_path, "platform=old", "platform=new"), "bert-99")["ratio"] == pytest.approx(6)
    assert row_of(compared(tmp_path, "platform=old", "platform=new", "--per", "watt"), "bert-99")[
        "ratio"
    ] == pytest.approx(3)


# ------------------------------------------------------------ oracles

NVIDIA_41 = "round=v4.1,submitter=NVIDIA,division=closed,availability=available,has_power=false,accelerators=8"
H100, H200 = f"{NVIDIA_41},accelerator=NVIDIA H100-SXM-80GB", f"{NVIDIA_41},accelerator=NVIDIA H200-SXM-141GB"
V51 = "round=v5.1,division=closed,availability=available,has_power=false,accelerators=8,nodes=1"
H200_51, B200_51 = f"{V51},accelerator=NVIDIA H200-SXM-141GB", f"{V51},accelerator=NVIDIA B200-SXM-180GB"
EVEN = ("--mix", "mlperf_inference *=1")  # all benchmarks have the same weight
LLAMA = "mlperf_inference llama2-70b-99 {} tokens_per_second"


@pytest.fixture(scope="module")
def mlperf(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if not MLPERF.is_dir():
        pytest.skip(f"corpus absent: no {MLPERF} (set FLEETMARK_CORPUS)")
    root = tmp_path_factory.mktemp("mlperf")
    names = ("v4.0_cm4mlperf-results.json.gz", "v4.1_cm4mlperf-results.json.gz", "v5.1_summary_results.json")
    run(root, "import", "mlperf", *(str(MLPERF / f"inference_{n}") for n in names))
    run(root, "import", "mlperf", str(MLPERF / "unofficial_v5.0_summary.csv"))
    return root


def test_h100_to_h200_in_v41(mlperf: Path) -> None:
    comparison = compared(mlperf, H100, f"{H200},platform=H200-SXM-141GBx8_TRT")
    row = row_of(comparison, LLAMA.format("Offline"))
    assert (row["baseline_value"], row["candidate_value"]) == (pytest.approx(24524.9), pytest.approx(31302.7))
    assert row["ratio"] == pytest.approx(1.2764, abs=5e-5)
    row = row_of(compared(mlperf, H100, f"{H200},platform=*Triton"), LLAMA.format("Server"))
    assert (row["baseline_value"], row["candidate_value"]) == (pytest.approx(21605.8), pytest.approx(30128.4))
    assert row["ratio"] == pytest.approx(1.3945, abs=5e-5)
    assert not [w for w in comparison["warnings"] if not w.startswith("precision")]


def mix_of(comparison: dict[str, Any]) -> dict[str, Any]:
    """Return the headline over all benchmarks that both sides have, with equal weights."""
    (row,) = [r for r in comparison["rows"] if r["class"] == "work mix" and not r["benchmark"]]
    return dict(row)


def test_the_best_of_h200_over_16_benchmarks_of_v41(mlperf: Path) -> None:
    row = mix_of(compared(mlperf, H100, H200, "--best", *EVEN))
    assert row["geometric"] == pytest.approx(1.1277, abs=5e-5)
    assert row["ratio"] == row["work"] == pytest.approx(1.1214, abs=5e-5)


def test_the_best_submitters_of_v51(mlperf: Path) -> None:
    comparison = compared(mlperf, H200_51, B200_51, "--best", *EVEN)
    row = mix_of(comparison)
    assert row["geometric"] == pytest.approx(2.502, abs=5e-4)
    assert row["ratio"] == row["work"] == pytest.approx(2.376, abs=5e-4)
    offline = row_of(comparison, LLAMA.format("Offline"))
    assert (offline["baseline_value"], offline["candidate_value"]) == (pytest.approx(35316.7), pytest.approx(102725))
    assert offline["ratio"] == pytest.approx(2.909, abs=5e-4)
    assert offline["lo"] is None  # only the best of many counts, which is one host


@pytest.mark.parametrize(
    ("without", "ratio", "lo", "hi"), [("", 2.796, 2.555, 3.060), (",submitter!=Google", 2.900, 2.858, 2.943)]
)
def test_submitters_as_hosts_of_v51(mlperf: Path, without: str, ratio: float, lo: float, hi: float) -> None:
    row = row_of(compared(mlperf, H200_51, B200_51 + without, "--by", "submitter"), LLAMA.format("Offline"))
    assert [row["ratio"], row["lo"], row["hi"]] == pytest.approx([ratio, lo, hi], abs=5e-4)
    assert (row["hosts_baseline"], row["hosts_candidate"]) == ((7, 7) if not without else (7, 6))


def test_submitters_are_hosts_without_being_asked_to(mlperf: Path) -> None:
    comparison = compared(mlperf, H200_51, B200_51)
    row, by_submitter = (
        row_of(comparison, LLAMA.format("Offline")),
        compared(mlperf, H200_51, B200_51, "--by", "submitter"),
    )
    assert row["ratio"] == row_of(by_submitter, LLAMA.format("Offline"))["ratio"]
    assert (comparison["baseline"], comparison["candidates"]) == ("H200-SXM-141GB x8", ["B200-SXM-180GB x8"])
    assert any("count as 11 hosts, one per submitter (undo with --by host)" in n for n in comparison["notes"])
    assert not any("(undo with --by host" in n for n in by_submitter["notes"])
    by_host = row_of(compared(mlperf, H200_51, B200_51, "--by", "host"), LLAMA.format("Offline"))
    assert (by_host["hosts_baseline"], row["hosts_baseline"]) == (8, 7)
    several = [w for w in comparison["warnings"] if w.startswith("B200-SXM-180GB x8 mixes processors: ")]
    assert len(several) == 1 and " more" in several[0]


def test_a_pattern_that_takes_two_parts_is_warned_of(mlperf: Path) -> None:
    wide = H100.replace("=NVIDIA H100-SXM-80GB", "=*H200-SXM*").replace("availability=available,has_power=false,", "")
    comparison = compared(mlperf, H100, wide, "--name", "H100", "--name", "H200")
    mixed = [w for w in comparison["warnings"] if w.startswith("H200 mixes ")]
    assert mixed[:2] == [
        "H200 mixes accelerators: H200-SXM-141GB (3); H200-SXM-141GB-CTS (1); "
        "to select one, add accelerator=NVIDIA H200-SXM-141GB",
        "H200 mixes runs with measured power and without: without (3); with (1); to select one, add has_power=false",
    ]
    narrowed = compared(mlperf, H100, f"{wide},accelerator=NVIDIA H200-SXM-141GB,has_power=false")
    assert not [w for w in narrowed["warnings"] if " mixes accelerators" in w or " mixes runs" in w]


def test_gptj_of_v40_is_not_held_against_v41(mlperf: Path) -> None:
    platform = "submitter=NVIDIA,platform=DGX-H100_H100-SXM-80GBx8_TRT"
    comparison = compared(mlperf, f"{platform},round=v4.0", f"{platform},round=v4.1")
    gptj = [r for r in comparison["rows"] if "gptj" in r["benchmark"]]
    assert len(gptj) == 8 and all(r["ratio"] is None for r in gptj)
    assert row_of(comparison, "llama2-70b-99.9 Offline")["ratio"] == pytest.approx(24524.9 / 21805.8)
    server = [r for r in comparison["rows"] if "llama2-70b-99.9 Server" in r["benchmark"]]  # queries, then tokens
    assert len(server) == 2 and all(r["ratio"] is None for r in server)
    assert any(w.startswith("round differs: v4.0") for w in comparison["warnings"])


def test_benchmarks_of_99_and_999_that_are_the_same_run_count_once(mlperf: Path) -> None:
    only = ("--only", "*/llama2-70b-99* Offline/*", "--only", "*/mixtral-8x7b Offline/*")
    comparison = compared(mlperf, H100, f"{H200},platform=H200-SXM-141GBx8_TRT", *only)
    assert sorted(r["weight"] for r in comparison["rows"] if r["benchmark"]) == [0.25, 0.25, 0.5]


def test_preview_another_count_and_unverified_results_are_said(mlperf: Path) -> None:
    preview = "round=v4.1,division=closed,availability=preview,submitter=NVIDIA,accelerator=NVIDIA B200*"
    warnings = compared(mlperf, H100, preview)["warnings"]
    assert any(w.startswith("availability differs: available") for w in warnings)
    assert any(w.startswith("accelerators differs: 8") for w in warnings)
    official = "round=v5.1,division=closed,host=*L40S*"
    comparison = compared(mlperf, official, "round=v5.0,division=closed,accelerators=2")
    assert any("an official result" in w and "unverified" in w for w in comparison["warnings"])
    assert any("Result not verified by MLCommons Association" in f for f in comparison["footnotes"])


def test_rows_that_stand_in_two_imports_count_once(mlperf: Path, tmp_path: Path) -> None:
    for name in ("inference_v5.1_summary_results.json", "mlperf_inference_all_rounds.csv"):
        run(tmp_path, "import", "mlperf", str(MLPERF / name))
    one, two = (
        row_of(compared(r, H200_51, B200_51, "--by", "host"), LLAMA.format("Offline")) for r in (mlperf, tmp_path)
    )
    assert two["ratio"] == pytest.approx(one["ratio"])
    assert (two["hosts_baseline"], two["hosts_candidate"]) == (one["hosts_baseline"], one["hosts_candidate"]) == (8, 9)


@pytest.fixture(scope="module")
def spec(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a record with SPEC's list, which takes three seconds to import. Tests that write to it copy it."""
    root = tmp_path_factory.mktemp("spec")
    run(root, "import", "spec", str(SPEC / "cpu2017_int_speed_rate_joined_202507.csv"))
    return root


@absent
def test_what_one_vendor_published_counts_as_one_host(spec: Path, tmp_path: Path) -> None:
    shutil.copytree(spec, tmp_path, dirs_exist_ok=True)
    old, new = "processor=*8380*,chips=2", "processor=*9755*,chips=2"
    only = ("--only", "*/SPECrate2017_int/base_score")
    comparison = compared(tmp_path, old, new, *only)
    row = row_of(comparison, "base_score")
    assert [row["lo"], row["hi"]] == pytest.approx([4.32, 5.20], abs=0.01)
    assert (row["hosts_baseline"], row["hosts_candidate"]) == (13, 3)
    assert "EPYC 9755 x2: 6 machines count as 3 hosts, one per vendor (undo with --by host)" in " ".join(
        comparison["notes"]
    )
    by_host = row_of(compared(tmp_path, old, new, *only, "--by", "host"), "base_score")
    assert [by_host["lo"], by_host["hi"]] == pytest.approx([4.56, 4.98], abs=0.01)
    memory = "Xeon Platinum 8380 x2 mixes memory populations: 16 x PC4-3200 (19); 32 x PC4-3200 (14); "
    assert memory + "to select one, add memory=*16*x*PC4-3200*" in comparison["warnings"]

    # pin published rows as a reference: a single row, and several of one vendor
    one = run(tmp_path, "reference", "save", "row", "--from", "vendor=Dell*,system=PowerEdge R750 (*8380*)")
    assert "of 1 host (" in one and "one figure without an error" in one
    against = json.loads(run(tmp_path, "compare", "--reference", "row", "-c", new, *only, "--format", "json"))
    (row,) = [r for r in against["rows"] if r["benchmark"] and r["ratio"]]
    assert against["baseline"] == "row@1" and row["ratio"] == pytest.approx(4.76, rel=0.05)
    done = CliRunner().invoke(app, ["reference", "save", "all", "--from", old, "--results", str(tmp_path)])
    assert "of 13 publishers (" in done.stdout and "fleetmark: warning: " + old + " mixes memory" in done.stderr


@absent
def test_spec_lists_and_reports(tmp_path: Path) -> None:
    files = [
        SPEC / "cpu2017_int_speed_rate_joined_202507.csv",
        SPEC / "cint2017_speed_published_202507.csv",
        SPEC / "spec_rate1_estimated_jiegec.csv",
    ]
    run(tmp_path, "import", "spec", *map(str, files))
    output = run(tmp_path, "import", "spec", str(ROOT / "spec_cpu2017" / "intrate_epyc7713.txt"))
    assert "printed as 777" in " ".join(output.split()) and "770.2" in output
    run(tmp_path, "import", "spec", str(ROOT / "spec_cpu2017" / "intrate_epyc7713.csv"))
    milan, turin = "generation=*Milan*,chips=2,cores=128", "generation=*Turin*,chips=2,cores=128"
    row = row_of(
        compared(tmp_path, milan, turin, "--by", "host", "--only", "*/SPECrate2017_int/base_score"), "base_score"
    )
    assert row["verdict"] == "better" and row["hosts_baseline"] > 20
    mixed = json.loads(run(tmp_path, "compare", "-b", milan[:-10], "-c", turin[:-10], "--format", "json"))
    assert mixed["answer"]["sentence"].endswith(" on integer benchmarks, at 16 cores per socket")
    assert mixed["answer"]["classes"][0]["remark"] == "16 cores per socket only", "most results are of this size"
    by_hand = _geometric(files[0], "Turin") / _geometric(files[0], "Milan")
    assert row["ratio"] == pytest.approx(by_hand, rel=0.02)  # ambiguous hosts are excluded, and repeats are averaged
    text, table = sorted(
        {m.campaign for m in on_record(tmp_path) if "intrate_epyc7713" in m.campaign}, key=_rows(tmp_path)
    )
    comparison = compared(tmp_path, f"campaign={text}", f"campaign={table}")
    assert [n.partition(": ")[2] for n in comparison["notes"]] == [
        "spec_cpu2017 SPECrate2017_int: 1 value of base_score left out: invalid"
    ]
    assert "estimate" in {s for m in (tmp_path / "imports").glob("*rate1*") for s in _standings(m)}


@absent
def test_what_else_is_on_record_changes_no_answer(spec: Path, tmp_path: Path) -> None:
    """Check EPYC 7742 against 9755: 3.84 with one socket and with two, regardless of other tables on record."""
    words = ("compare", "-b", "processor=*7742*", "-c", "processor=*9755*", "--format", "json")
    shutil.copytree(spec, tmp_path, dirs_exist_ok=True)
    alone = json.loads(run(tmp_path, *words))
    assert (
        alone["answer"]["sentence"] == "One EPYC 9755 replaces 3.84 (3.62–4.08) EPYC 7742 servers on integer benchmarks"
    )
    assert alone["warnings"][0].endswith("2 sockets (63%): 3.84; 1 socket (37%): 3.84")
    # Without the hosts with one socket, no sizes would match, and 4.75 would be the answer to another question.
    assert "without this difference" not in " ".join(alone["answer"]["before_you_rely_on_this"])
    csv_file = tmp_path / "own.csv"
    csv_file.write_text(
        "machine,benchmark,value,unit,class,processor\n"
        + "".join(f"m{n},x,{100 + n},1/s,app,AMD EPYC {7742 if n < 3 else 9755}\n" for n in range(6))
    )
    run(tmp_path, "import", "table", str(csv_file))
    run(tmp_path, "import", "spec", str(SPEC / "spec_rate1_estimated_jiegec.csv"))
    with_rates = json.loads(run(tmp_path, *words))
    figures = [
        [[r[k] for k in ("class", "benchmark", "ratio", "lo", "hi")] for r in doc["rows"] if r["class"] == "cpu-int"]
        for doc in (alone, with_rates)
    ]
    assert figures[0] == figures[1]
    assert {r["class"] for r in with_rates["rows"]} > {r["class"] for r in alone["rows"]}


@absent
def test_publishers_are_credited_in_every_form(tmp_path: Path) -> None:
    file = str(SPEC / "cpu2017_int_speed_rate_joined_202507.csv")
    run(tmp_path, "import", "spec", file, "--label", "retrieved=2025-07-03")
    words = ("compare", "-b", "processor=*8380*,chips=2", "-c", "processor=*9755*,chips=2")
    words = (*words, "--only", "*/SPECrate2017_int/base_score")
    credit = "SPECrate®2017_int_base: published results from www.spec.org, retrieved 2025-07-03."
    derived = "Ratios and means over vendors are derived from these results by the user."
    doc = json.loads(run(tmp_path, *words, "--format", "json"))
    assert [n for n in doc["footnotes"] if n.startswith(credit) and n.endswith(derived)]
    page = tmp_path / "page.html"
    for text in (
        run(tmp_path, *words),
        run(tmp_path, *words, "--format", "md"),
        run(tmp_path, *words, "--html", str(page)),
    ):
        assert credit in " ".join(text.split())
    assert credit in page.read_text()


@absent
def test_results_of_mlperf_name_round_submitter_and_identifier(mlperf: Path) -> None:
    (note,) = json.loads(run(mlperf, "compare", "-b", H200_51, "-c", B200_51, "--format", "json"))["footnotes"]
    assert note.startswith("MLPerf® results of round v5.1, submitted by ")
    assert "(identifiers 5.1-00" in note and "derived by the user and not sanctioned by MLCommons" in note


NOTICE = """SPEC has ruled that the compiler used for this result was performing a compilation
that specifically improves the performance of the 523.xalancbmk_r / 623.xalancbmk_s
benchmarks using a priori knowledge of the SPEC code and dataset to perform a
transformation that has narrow applicability."""


@absent
@pytest.mark.parametrize(("suffix", "form"), [("txt", "    {}\n"), ("csv", '"{}"\n')])
def test_a_result_with_a_notice_of_specs_is_marked(tmp_path: Path, suffix: str, form: str) -> None:
    """Add SPEC's notice, line by line, to the compiler notes of the report in text and CSV form."""
    text = (ROOT / "spec_cpu2017" / f"intrate_epyc7713.{suffix}").read_text()
    first = form.format("The AMD64 AOCC Compiler Suite is available at")
    assert first in text
    noticed = text.replace(first, "".join(form.format(line) for line in NOTICE.split("\n")) + first)
    for name, body in ((f"old.{suffix}", text), (f"new.{suffix}", noticed)):
        (tmp_path / name).write_text(body)
        run(tmp_path, "import", "spec", str(tmp_path / name), "--label", f"gen={name[:3]}")
    doc = json.loads(run(tmp_path, "compare", "-b", "gen=old", "-c", "gen=new", "--format", "json"))
    assert [n for n in doc["footnotes"] if n.startswith("SPEC's notice: the compiler used for 1 result (")]


@absent
def test_a_list_of_specs_does_not_show_its_notice(spec: Path) -> None:
    """Check a list with results of Xeon 8480+ of 2023 and of EPYC 9654. Only the former may have the notice."""
    expected = "SPEC's lists omit its compiler notice on Intel results of 2022 to February 2024: look up "
    for candidate, several in (
        ("*8480+*,chips=2", 1),
        ("*EPYC 9654,chips=2", 0),
        ("*8592+*,chips=2,published=2024-07", 0),
    ):
        words = ("compare", "-b", "processor=*8380*,chips=2,published=2021*", "-c", f"processor={candidate}")
        doc = json.loads(run(spec, *words, "--format", "json"))
        assert len([n for n in doc["footnotes"] if n.startswith(expected)]) == several


def _geometric(file: Path, generation: str) -> float:
    rows = pd.read_csv(file)
    rows.columns = [c.strip() for c in rows.columns]
    mine = rows[rows["Generation"].str.contains(generation) & (rows["# Chips"] == 2) & (rows["Base Rate Result"] > 0)]
    mine = mine[mine["# Cores"] == 128]
    return float(np.exp(np.log(mine.groupby(["Hardware Vendor", "System"])["Base Rate Result"].mean()).mean()))


def _rows(root: Path) -> Any:
    """Return a sort key that puts the text report first, whose score is flagged."""
    return lambda campaign: not json.loads((root / campaign / "import.json").read_text())["source"].endswith(".txt")


def _standings(folder: Path) -> Sequence[str]:
    return list(pd.read_parquet(folder / "measurements.parquet")["standing"].unique())


SPARECORES = ROOT / "sparecores_published" / "sc_servers.csv"


@pytest.mark.skipif(not SPARECORES.exists(), reason=f"corpus absent: no {SPARECORES} (set FLEETMARK_CORPUS)")
def test_cloud_types_are_machines(tmp_path: Path) -> None:
    output = " ".join(run(tmp_path, "import", "sparecores", str(SPARECORES)).split())
    assert "46,103 figures of 3,614 machines from 3,614 rows" in output
    raw = pd.read_csv(SPARECORES).set_index("server")["stressng_full_best_bogo_ops_s"]
    row = row_of(compared(tmp_path, "host=aws/m6i.4xlarge", "host=aws/m7g.4xlarge"), "stress-ng div16 bogo_ops")
    assert row["ratio"] == pytest.approx(raw["m7g.4xlarge"] / raw["m6i.4xlarge"])
    assert (row["class"], row["hosts_baseline"], row["hosts_candidate"]) == ("cpu-int", 1, 1)
    per_core = compared(tmp_path, "server=m6i.4xlarge", "server=m7g.4xlarge", "--per", "core", "--only", "*/*div16/*")
    assert row_of(per_core, "stress-ng div16 bogo_ops")["ratio"] == pytest.approx(row["ratio"] / 2)  # 8 cores, not 16
    per_thread = compared(tmp_path, "server=m6i.4xlarge", "server=m7g.4xlarge", "--per", "thread")
    assert row_of(per_thread, "stress-ng div16 bogo_ops")["ratio"] == pytest.approx(row["ratio"])
    pinned = run(tmp_path, "reference", "save", "m6i", "--from", "server=m6i.4xlarge")
    assert (
        "1 host (server=m6i.4xlarge); one figure without an error, because the spread of its kind is unknown" in pinned
    )
    against = json.loads(run(tmp_path, "compare", "--reference", "m6i", "-c", "server=m7g.4xlarge", "--format", "json"))
    assert row_of(against, "stress-ng div16 bogo_ops")["ratio"] == pytest.approx(row["ratio"])
    assert row_of(against, "stress-ng div16 bogo_ops")["lo"] is None
    error = refused(tmp_path, "compare", "-b", "server=m6i.4xlarge", "-c", "server=m7g.4xlarge", "--per", "money")
    assert "has no known amount" in error


@absent
def test_training(tmp_path: Path) -> None:
    file = MLPERF / "mlperf-training_3.0_cm4mlperf-results.json"
    run(tmp_path, "import", "mlperf", str(file))
    raw = [r for r in json.loads(file.read_text()) if r["accelerators_count"] == 8 and r["Model_ID"] == "bert"]
    a100, h100 = (
        np.mean([np.log(r["Result"]) for r in raw if name in r["accelerator_model_name"] and r["division"] == "closed"])
        for name in ("A100-SXM", "H100-SXM")
    )
    eight = "division=closed,accelerators=8,accelerator=*{}-SXM*"
    comparison = compared(
        tmp_path, eight.format("A100"), eight.format("H100"), "--by", "host", "--only", "mlperf_training/bert/*"
    )
    row = row_of(comparison, "mlperf_training bert time_to_train")
    assert row["ratio"] == pytest.approx(np.exp(a100 - h100))
    assert (row["class"], row["unit"], row["better"]) == ("gpu-train-speed", "s", "lower")


def test_a_column_called_vendor_in_a_table_of_ones_own_names_no_publisher(tmp_path: Path) -> None:
    rows = [f"{gen}{n},rate,{value + n},1/s,{gen},Dell" for gen, value in (("a", 100), ("b", 120)) for n in range(3)]
    (tmp_path / "t.csv").write_text("machine,benchmark,value,unit,gen,vendor\n" + "\n".join(rows) + "\n")
    run(tmp_path, "import", "table", str(tmp_path / "t.csv"))
    row = row_of(compared(tmp_path, "gen=a", "gen=b"), "rate")
    assert (row["hosts_baseline"], row["hosts_candidate"]) == (3, 3)


@absent
def test_one_vendor_is_called_a_vendor(spec: Path) -> None:
    dell = "vendor=Dell*,chips=2,processor=*EPYC {}"
    words = ("compare", "-b", dell.format("9654"), "-c", dell.format("9755"), "--only", "*/SPECrate2017_int/base_score")
    text = " ".join(run(spec, *words).split())
    assert "EPYC 9755 x2: 4 machines count as 1 host, one per vendor" in text
    assert "these two machines, not" not in text


def test_a_table_without_kinds_says_so_in_every_comparison(tidy: Path, tmp_path: Path) -> None:
    run(tmp_path, "import", "table", str(tidy))
    assert any(
        n.startswith("Some kinds of figures are inferred") for n in compared(tmp_path, "gen=old", "gen=new")["notes"]
    )
    sentence = refused(tmp_path, "compare", "-b", "gen=old", "-c", "gen=new", "--per", "thread")
    assert "its table has no label threads: import it with such a column, or remove --per" in sentence


@absent
def test_a_reference_of_a_side_with_gaps_has_the_ratio_of_that_side(mlperf: Path) -> None:
    run(mlperf, "reference", "save", "h200", "--from", H200_51)
    sides = ("-c", B200_51, "--format", "json")
    rows = [
        json.loads(run(mlperf, "compare", *words, *sides))["rows"]
        for words in (("-b", H200_51), ("--reference", "h200"))
    ]
    of_side, of_reference = ({r["class"]: r["ratio"] for r in listed if not r["benchmark"]} for listed in rows)
    assert of_side["gpu-interactive"] == pytest.approx(of_reference["gpu-interactive"], rel=0.002)


# ------------------------------------------------------------ means of imported tables


HEAD = "machine,gen,benchmark,value,unit,better,kind,class\n"


def table(tmp_path: Path, name: str, figures: dict[str, Sequence[float]], unit: str, better: str, k: float = 1) -> None:
    """Import a table with the figures of each machine, one per benchmark, multiplied by ``k``."""
    lines = [
        f"{machine},{machine},job{n},{value * k!r},{unit},{better},capacity,own\n"
        for machine, values in figures.items()
        for n, value in enumerate(values)
    ]
    file = tmp_path / f"{name}.csv"
    file.write_text(HEAD + "".join(lines))
    run(tmp_path, "import", "table", str(file))


def test_speedups_of_four_and_one_after_import(tmp_path: Path) -> None:
    """Check a geometric mean of 2 and equal work of 1.6; the inverse comparison and one by a third machine agree."""
    table(tmp_path, "rates", {"a": [100, 50], "b": [400, 50], "c": [7, 900]}, "1/s", "higher")
    mix = ("--mix", "*job0*=.5,*job1*=.5")
    row = mix_of(compared(tmp_path, "gen=a", "gen=b", *mix))
    assert [row["geometric"], row["work"]] == pytest.approx([2, 1.6])
    ratio = {
        pair: next(r for r in compared(tmp_path, f"gen={pair[0]}", f"gen={pair[1]}")["rows"] if not r["benchmark"])
        for pair in ("ab", "ba", "cb", "ca")
    }
    assert ratio["ab"]["ratio"] * ratio["ba"]["ratio"] == pytest.approx(1)
    assert ratio["cb"]["ratio"] / ratio["ca"]["ratio"] == pytest.approx(ratio["ab"]["ratio"])


def test_times_after_import(tmp_path: Path) -> None:
    """Compare times (3, 2, 4) with (1, 1, 2): geometric mean 2.2894, equal work 9 / 4, also as rates or in ms."""
    times = {"a": [3.0, 2, 4], "b": [1.0, 1, 2]}
    answers = []
    for name, figures, unit, better, k in (
        ("times", times, "s", "lower", 1.0),
        ("milliseconds", times, "ms", "lower", 1000.0),
        ("rates", {m: [1 / t for t in of_m] for m, of_m in times.items()}, "1/s", "higher", 1.0),
    ):
        root = tmp_path / name
        root.mkdir()
        table(root, name, figures, unit, better, k)
        shares = ",".join(f"*job{n}*={t / 9!r}" for n, t in enumerate(times["a"]))
        answers.append(mix_of(compared(root, "gen=a", "gen=b", "--mix", shares)))
        head = next(r for r in compared(root, "gen=a", "gen=b")["rows"] if not r["benchmark"])
        assert head["ratio"] == pytest.approx(12 ** (1 / 3))
    assert [a["work"] for a in answers] == pytest.approx([2.25] * 3)


# ------------------------------------------------------------ five manual comparisons (docs/explanation/comparisons.md)


def by_hand(a: pd.Series, b: pd.Series) -> list[float]:
    """Return the ratio of geometric means over publishers with its Welch interval; the ceiling is computed here."""
    x, y = np.log(a), np.log(b)
    variances = [v.var(ddof=1) / len(v) for v in (x, y)]
    df = sum(variances) ** 2 / sum(v**2 / (len(logs) - 1) for v, logs in zip(variances, (x, y), strict=True))
    few, many = sorted((len(x), len(y)))
    df = df if few == many else min(df, (few - 1) ** 2 * (1 + few / many))
    half, delta = stats.t.ppf(0.975, df) * sum(variances) ** 0.5, y.mean() - x.mean()
    return [float(np.exp(d)) for d in (delta, delta - half, delta + half)]


@absent
def test_spec_scores_by_hand(spec: Path) -> None:
    file = SPEC / "cpu2017_int_speed_rate_joined_202507.csv"
    rows = pd.read_csv(file)
    rows.columns = [c.strip() for c in rows.columns]
    machine = ["Hardware Vendor", "System", "# Cores"]

    def vendors(processor: str, mode: str) -> pd.Series:
        results = rows[rows["Processor"].eq(processor) & rows["# Chips"].eq(2) & rows[f"Base {mode} Result"].gt(0)]
        result = [f"Base {mode} Result", f"Peak {mode} Result"]
        each = results.drop_duplicates([*machine, *result, *(["Memory", "Published"] if mode == "Speed" else [])])
        scores = each.groupby(machine)[result[0]]
        sure = each[(scores.transform("max") <= 1.2 * scores.transform("min")) | (mode == "Speed")]
        machines = np.log(sure[result[0]]).groupby([sure[c] for c in machine]).mean()
        return np.exp(machines.groupby(level=0).mean())

    old, new, newest = "Intel Xeon Platinum 8380", "AMD EPYC 9654", "AMD EPYC 9755"
    for a, b, mode in ((old, new, "Rate"), (new, newest, "Rate"), (old, "AMD EPYC 9754", "Speed")):
        only = ("--only", f"*/SPEC{mode.lower()}2017_int/base_score")
        row = row_of(compared(spec, f"processor={a},chips=2", f"processor={b},chips=2", *only), "base_score")
        expected = by_hand(vendors(a, mode), vendors(b, mode))
        assert [row["ratio"], row["lo"], row["hi"]] == pytest.approx(expected, rel=1e-9)


def test_mlperf_by_hand(mlperf: Path) -> None:
    rows = pd.DataFrame(json.loads((MLPERF / "inference_v5.1_summary_results.json").read_text()))
    is_comparable = rows["Category"].eq("closed") & rows["Availability"].eq("available") & rows["Nodes"].eq(1)
    rows = rows[is_comparable & rows["a#"].eq(8) & ~rows["has_power"].astype(bool) & rows["Scenario"].eq("Offline")]
    both = ("NVIDIA H200-SXM-141GB", "NVIDIA B200-SXM-180GB")
    labels = "round=v5.1,division=closed,availability=available,has_power=false,accelerators=8,nodes=1,accelerator="
    comparison = compared(mlperf, labels + both[0], labels + both[1])
    for model in ("llama2-70b-99", "whisper"):
        of_model = rows[rows["Model"] == model]
        sides = [of_model[of_model["Accelerator"] == name] for name in both]
        a, b = (np.exp(np.log(s["Performance_Result"]).groupby(s["Submitter"]).mean()) for s in sides)
        row = row_of(comparison, f"{model} Offline")
        assert [row["ratio"], row["lo"], row["hi"]] == pytest.approx(by_hand(a, b), rel=1e-9)


@absent
def test_a_class_that_is_one_micro_benchmark_has_its_name(tmp_path: Path) -> None:
    run(tmp_path, "import", "sparecores", str(ROOT / "sparecores_published" / "sc_servers.csv"))
    words = ("-b", "server=m6i.large", "-c", "server=m7i.large", "--only", "*/stress-ng*/*", "--format", "json")
    answer = json.loads(run(tmp_path, "compare", *words))["answer"]
    assert answer["sentence"].endswith(" m6i.large servers on integer division benchmarks")
