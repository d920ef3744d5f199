"""What a figure is: capacity is counted in servers, responsiveness is a speed, guardrails are kept or broken."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import openpyxl
import pandas as pd
import pytest
import yaml

from fleetmark.base import kinds
from fleetmark.base.errors import FleetmarkError
from fleetmark.base.measurement import Better, Kind
from fleetmark.planner.contrast import Pairing
from fleetmark.planner.guardrail import Held, guardrail
from fleetmark.workloads.manifest import Metric, Override, load, names
from tests.commands import refused, run
from tests.comparisons import compared, fleet, labels, row_of
from tests.corpus import ROOT
from tests.records import IOPS, NULL, TRIAD, Bench, record

SPEC, MLPERF = ROOT / "spec_published", ROOT / "mlperf_published"
SPEC_LIST = SPEC / "cpu2017_int_speed_rate_joined_202507.csv"
RATE = "spec_cpu2017 SPECrate2017_int base_score"
SPEED = "spec_cpu2017 SPECspeed2017_int base_score"
# As earlier versions wrote them: no kind, one class for all of a tool's figures.
BUSBW = Bench("nccl_tests", "all_reduce", "peak_busbw", "B/s", "higher", "collective")
P99 = Bench("fio", "randread-4k-p99-500us", "read_clat_p99", "s", "lower", "disk")
OFFERED = Bench("iperf3", "udp", "bitrate", "B/s", "higher", "net")
LOSS = Bench("iperf3", "udp", "loss", "1", "lower", "net")
FLOW = Bench("iperf3", "tcp-1", "bitrate", "B/s", "higher", "net")
STREAMS = Bench("iperf3", "tcp-8", "bitrate", "B/s", "higher", "net")
ONE = Bench("lmbench", "bw_mem-rd-1p", "rd", "B/s", "higher", "mem-bw")
ALL = Bench("lmbench", "bw_mem-rd-all-cores", "rd", "B/s", "higher", "mem-bw")
COPY = Bench("stream", "all-cores", "copy", "B/s", "higher", "mem-bw")
LATENCY = Bench("lmbench", "lat_mem_rd-128", "random_latency", "s", "lower", "mem-latency")


def measured(root: Path, factors: Mapping[Bench, float], values: Mapping[Bench, float] | None = None) -> Path:
    """Three hosts of gen=old and gen=new a side, of which the new have ``factors`` times the figures of the old."""
    hosts = {f"{side}{n}": {"gen": {"a": "old", "b": "new"}[side]} for side in "ab" for n in range(3)}
    figures = {
        (host, bench): [
            (values or {}).get(bench, 1000.0) * (factor if host[0] == "b" else 1) * (1 + 0.001 * int(host[1]))
        ]
        for host in hosts
        for bench, factor in factors.items()
    }
    record(root, "c1", hosts, figures)
    return root


def classes(rows: list[dict[str, str]]) -> dict[str, tuple[str, float]]:
    """Class to its kind and headline."""
    return {r["class"]: (r["kind"], float(r["ratio"])) for r in rows if not r["benchmark"]}


# ------------------------------------------------------------ the four faults, on published tables


@pytest.fixture(scope="module")
def spec(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if not SPEC_LIST.is_file():
        pytest.skip(f"corpus absent: no {SPEC_LIST} (set FLEETMARK_CORPUS)")
    root = tmp_path_factory.mktemp("spec")
    run(root, "import", "spec", str(SPEC_LIST))
    return root


XEON, GENOA, BERGAMO, TURIN = (
    f"chips=2,processor={name}" for name in ("*Xeon Platinum 8380*", "*EPYC 9654", "*EPYC 9754", "*EPYC 9755")
)


@pytest.mark.parametrize(
    ("baseline", "candidate", "rate", "speed"),
    [(XEON, GENOA, 2.94, 1.20), (XEON, BERGAMO, 3.38, 0.97), (XEON, TURIN, 4.76, 1.53), (GENOA, TURIN, 1.62, 1.28)],
)
def test_rate_is_capacity_and_speed_is_not(
    spec: Path, baseline: str, candidate: str, rate: float, speed: float
) -> None:
    rows = compared(spec, "-b", baseline, "-c", candidate, "--by", "host")
    heads = classes(rows)
    assert heads["cpu-int"] == (Kind.CAPACITY, pytest.approx(rate, abs=0.006))
    assert heads["cpu-int-speed"] == (Kind.RESPONSIVENESS, pytest.approx(speed, abs=0.006))
    assert (
        row_of(rows, "cpu-int", RATE)["ratio"] == row_of(rows, "cpu-int")["ratio"]
    )  # nothing else is in that headline


def test_a_slower_job_is_called_worse_beside_a_better_server(spec: Path) -> None:
    rows = compared(spec, "-b", XEON, "-c", BERGAMO)
    assert (row_of(rows, "cpu-int")["verdict"], row_of(rows, "cpu-int-speed")["verdict"]) == ("better", "worse")


def test_cores_do_not_divide_the_speed_of_one_job(spec: Path) -> None:
    of_server = compared(spec, "-b", XEON, "-c", GENOA)
    per_core = compared(spec, "-b", XEON, "-c", GENOA, "--per", "core")
    assert row_of(per_core, "cpu-int-speed")["ratio"] == row_of(of_server, "cpu-int-speed")["ratio"]
    rate = float(row_of(of_server, "cpu-int")["ratio"])
    assert float(row_of(per_core, "cpu-int")["ratio"]) == pytest.approx(
        rate * 80 / 192, rel=0.01
    )  # some hosts switch cores off


def test_peak_stands_on_a_line_of_its_own(spec: Path) -> None:
    rows = compared(spec, "-b", XEON, "-c", GENOA)
    peak = row_of(rows, "cpu-int-peak")
    assert peak["kind"] == Kind.CAPACITY and peak["ratio"] != row_of(rows, "cpu-int")["ratio"]
    assert {r["benchmark"] for r in rows if r["class"] == "cpu-int"} == {"", RATE}


@pytest.mark.skipif(not MLPERF.is_dir(), reason=f"corpus absent: no {MLPERF} (set FLEETMARK_CORPUS)")
def test_submitters_of_v51_by_scenario(tmp_path: Path) -> None:
    run(tmp_path, "import", "mlperf", str(MLPERF / "inference_v5.1_summary_results.json"))
    v51 = "round=v5.1,division=closed,availability=available,has_power=false,accelerators=8,nodes=1,accelerator=NVIDIA "
    rows = compared(tmp_path, "-b", f"{v51}H200-SXM-141GB", "-c", f"{v51}B200-SXM-180GB", "--by", "submitter")
    offline = row_of(rows, "gpu-offline")
    assert [float(offline[key]) for key in ("ratio", "lo", "hi")] == pytest.approx([2.11, 2.04, 2.17], abs=0.02)
    assert [float(offline[key]) for key in ("lowest", "highest")] == pytest.approx([1.28, 2.98], abs=0.005)
    online = [row_of(rows, name) for name in ("gpu-server", "gpu-interactive")]
    assert min(float(r["lowest"]) for r in online) == pytest.approx(1.55, abs=0.005)
    assert max(float(r["highest"]) for r in online) == pytest.approx(4.22, abs=0.005)
    weight = {
        r["benchmark"].split()[1]: float(r["weight"])
        for r in rows
        if r["class"] == "gpu-offline" and r["benchmark"] and r["weight"]
    }
    assert weight["llama2-70b-99"] == weight["llama2-70b-99.9"] == pytest.approx(0.1)  # together one of five
    assert weight["whisper"] == pytest.approx(0.2)


def test_bus_bandwidth_is_per_rank_already(tmp_path: Path) -> None:
    root = measured(tmp_path, {BUSBW: 2.86})
    assert classes(compared(root))["collective"] == (Kind.RESPONSIVENESS, pytest.approx(2.86))
    sentence = refused(root, "compare", "-b", "gen=old", "-c", "gen=new", "--per", "gpu")
    assert (
        "because only capacity can be divided (nccl_tests all_reduce peak_busbw is responsiveness): remove --per"
        in sentence
    )


def test_one_process_is_not_averaged_with_all_cores(tmp_path: Path) -> None:
    heads = classes(compared(measured(tmp_path, {ONE: 0.9, ALL: 2.0})))
    assert heads == {
        "mem-bw": (Kind.CAPACITY, pytest.approx(2.0)),
        "core-bw": (Kind.RESPONSIVENESS, pytest.approx(0.9)),
    }


def test_storage_is_not_an_average_of_depths_and_latencies(tmp_path: Path) -> None:
    one = replace(IOPS, case="randread-4k-qd1", class_="disk", kind="")
    deep, bandwidth = (
        replace(IOPS, class_="disk", kind=""),
        Bench("fio", "read-1m-qd8", "read_bw", "B/s", "higher", "disk"),
    )
    rows = compared(measured(tmp_path, {one: 1.1, deep: 3.0, bandwidth: 2.0, P99: 0.5}, {P99: 4e-4}))
    assert classes(rows) == {
        "disk-iops": (Kind.CAPACITY, pytest.approx(3.0)),
        "disk-bw": (Kind.CAPACITY, pytest.approx(2.0)),
        "disk-latency": (Kind.RESPONSIVENESS, pytest.approx(1.1)),
    }
    (guard,) = [r for r in rows if r["kind"] == Kind.GUARDRAIL]
    assert (guard["class"], guard["verdict"], guard["ratio"]) == ("disk-iops", "kept", "")


def test_a_latency_is_no_share_of_a_mix(tmp_path: Path) -> None:
    root = measured(tmp_path, {STREAMS: 2.0, LATENCY: 0.8})
    words = ("compare", "-b", "gen=old", "-c", "gen=new", "--mix")
    sentence = refused(root, *words, "net=.5,mem-latency=.5")
    assert sentence == (
        "the work mix names 'mem-latency', which is responsiveness: only capacity is an amount of work; "
        "write one of capacity, such as --mix net=1"
    )
    run(root, *words, "net=1")


# ------------------------------------------------------------ guardrails, settings, what counts once


def test_a_guardrail_is_kept_or_broken_in_every_form(tmp_path: Path) -> None:
    root = measured(tmp_path, {IOPS: 2.0, P99: 1.5, LOSS: 4.0}, {P99: 4e-4, LOSS: 0.01})
    rows = compared(root)
    p99 = row_of(rows, "disk-iops", "fio randread-4k-p99-500us read_clat_p99")
    assert (p99["verdict"], float(p99["limit"]), p99["note"]) == ("broken", 5e-4, "broken on 3 of 3 hosts")
    assert [float(p99[key]) for key in ("baseline_value", "candidate_value")] == pytest.approx([4e-4, 6e-4], rel=0.01)
    loss = row_of(rows, "net", "iperf3 udp loss")
    assert (loss["verdict"], loss["limit"]) == ("broken", "")
    words = ("compare", "-b", "gen=old", "-c", "gen=new")
    for form in ("table", "md"):
        text = " ".join(run(root, *words, "--format", form).split())
        assert "2 of 2 guardrails broken: fio randread-4k-p99-500us read_clat_p99, iperf3 udp loss" in text
        assert "broken on 3 of 3" in text
        assert text.index("Benchmarks") < text.index("Guardrails")
    doc = json.loads(run(root, *words, "--format", "json"))
    assert {r["kind"] for r in doc["rows"]} == {Kind.CAPACITY, Kind.GUARDRAIL}
    page, book = tmp_path / "page.html", tmp_path / "book.xlsx"
    run(root, *words, "--html", str(page), "--xlsx", str(book))
    assert "2 of 2 guardrails broken" in page.read_text()
    lines = list(openpyxl.load_workbook(book)["Guardrails"].iter_rows(values_only=True))
    assert any({"fio randread-4k-p99-500us read_clat_p99", "broken"} <= set(line) for line in lines)


def test_no_loss_at_all_is_kept(tmp_path: Path) -> None:
    root = measured(tmp_path, {IOPS: 2.0, LOSS: 1.0}, {LOSS: 0.0})
    loss = row_of(compared(root), "net", "iperf3 udp loss")
    assert (loss["verdict"], loss["baseline_value"], loss["candidate_value"]) == ("kept", "0.0", "0.0")


def test_the_offered_rate_is_a_setting(tmp_path: Path) -> None:
    rows = compared(measured(tmp_path, {OFFERED: 1.0, FLOW: 2.0, STREAMS: 3.0}))
    assert classes(rows) == {
        "net": (Kind.CAPACITY, pytest.approx(3.0)),
        "net-flow": (Kind.RESPONSIVENESS, pytest.approx(2.0)),
    }
    assert not [r for r in rows if "udp" in r["benchmark"]]


def test_one_quantity_by_several_tools_counts_once(tmp_path: Path) -> None:
    other = Bench("sysbench", "memory", "rate", "B/s", "higher", "mem-bw", kind="capacity")
    rows = compared(measured(tmp_path, {TRIAD: 2.0, COPY: 2.1, ALL: 1.9, other: 4.0}))
    weight = {r["benchmark"]: float(r["weight"]) for r in rows if r["benchmark"]}
    assert weight.pop("sysbench memory rate") == pytest.approx(0.5)
    assert list(weight.values()) == pytest.approx([0.5 / 3] * 3)


def test_a_mix_of_a_class_gives_redundant_benchmarks_one_share(tmp_path: Path) -> None:
    root = measured(tmp_path, {TRIAD: 2.0, COPY: 2.0, ALL: 2.0, IOPS: 4.0})
    rows = compared(root, "-b", "gen=old", "-c", "gen=new", "--mix", "mem-bw=.5,disk-iops=.5")
    assert float(row_of(rows, "work mix")["ratio"]) == pytest.approx(1 / (0.5 / 2 + 0.5 / 4))


def test_base_and_peak_of_a_class_are_no_mix(tmp_path: Path) -> None:
    base, peak = (
        Bench("suite", name, "score", "1", "higher", name, kind="capacity") for name in ("cpu-int", "cpu-int-peak")
    )
    root = measured(tmp_path, {base: 2.0, peak: 2.1})
    sentence = refused(root, "compare", "-b", "gen=old", "-c", "gen=new", "--mix", "cpu-int=.5,cpu-int-peak=.5")
    assert "the work mix names cpu-int and cpu-int-peak, which are one work twice: name one of them" in sentence


@pytest.mark.parametrize("limit", [0.0005, 0.001, 0.002, 0.005, 0.01, 0.05])
def test_a_host_at_its_limit_keeps_it(limit: float) -> None:
    hosts = pd.Series({"h1": -np.log(limit), "h2": -np.log(limit)})
    assert guardrail(hosts, hosts, Better.LOWER, limit, Pairing.APART).held is Held.KEPT
    worse = pd.Series({"h1": -np.log(limit * 1.001)})
    assert guardrail(hosts, worse, Better.LOWER, limit, Pairing.APART).held is Held.BROKEN


def test_the_headline_of_one_benchmark_has_its_verdict(tmp_path: Path) -> None:
    rows = compared(measured(tmp_path, {TRIAD: 1.0004, IOPS: 1.001, NULL: 1.0, LATENCY: 1.0}))
    for class_ in ("mem-bw", "disk-iops", "os", "mem-latency"):
        head, (row,) = row_of(rows, class_), [r for r in rows if r["class"] == class_ and r["benchmark"]]
        assert (head["verdict"], head["p_adjusted"]) == (row["verdict"], row["p_adjusted"])


# ------------------------------------------------------------ what declares no kind


def test_kinds_of_an_old_record_are_inferred_and_said(tmp_path: Path) -> None:
    words = ("compare", "-b", "gen=old", "-c", "gen=new", "--format", "json")
    notes = json.loads(run(measured(tmp_path / "old", {STREAMS: 2.0, LATENCY: 0.8}), *words))["notes"]
    assert [n for n in notes if n.startswith("Some kinds of figures are inferred")]
    measured(tmp_path / "new", {TRIAD: 2.0, NULL: 0.8})
    assert not json.loads(run(tmp_path / "new", *words))["notes"]


def test_a_table_may_declare_kinds(tmp_path: Path) -> None:
    table = pd.DataFrame(
        {
            "machine": ["a", "b"] * 3,
            "benchmark": ["orders", "orders", "page", "page", "errors", "errors"],
            "value": [100.0, 300.0, 2.0, 1.0, 0.1, 0.1],
            "unit": ["1/s", "1/s", "s", "s", "1", "1"],
            "better": ["higher"] * 2 + ["lower"] * 4,
            "class": ["app", "app", "page", "page", "app", "app"],
            "kind": ["capacity"] * 2 + ["responsiveness"] * 2 + ["guardrail"] * 2,
            "gen": ["old", "new"] * 3,
        }
    )
    table.to_csv(tmp_path / "t.csv", index=False)
    run(tmp_path, "import", "table", str(tmp_path / "t.csv"))
    rows = compared(tmp_path)
    assert classes(rows) == {"app": ("capacity", pytest.approx(3)), "page": ("responsiveness", pytest.approx(2))}
    assert [r["benchmark"] for r in rows if r["kind"] == "guardrail"] == ["table errors score"]
    table.assign(kind="speed").to_csv(tmp_path / "bad.csv", index=False)
    sentence = run_import_fails(tmp_path, tmp_path / "bad.csv")
    assert "kind is 'speed'; write capacity, responsiveness, guardrail, or nothing" in sentence


def run_import_fails(root: Path, file: Path) -> str:
    with pytest.raises(FleetmarkError) as error:
        run(root, "import", "table", str(file))
    return str(error.value)


@pytest.mark.parametrize(
    ("class_", "unit", "better", "expected"),
    [
        ("disk", "1/s", Better.HIGHER, ("disk-iops", "capacity")),
        ("disk", "s", Better.LOWER, ("disk-latency", "responsiveness")),
        ("net", "1", Better.LOWER, ("net", "guardrail")),
        ("gpu-sla", "1/s", Better.HIGHER, ("gpu-server", "capacity")),
        ("other", "1/s", Better.HIGHER, ("other", "capacity")),
        ("other", "s", Better.LOWER, ("other", "responsiveness")),
        ("other", "W", Better.LOWER, ("other", "guardrail")),
        ("collective", "B/s", Better.HIGHER, ("collective", "responsiveness")),
        ("collective", "1", Better.LOWER, ("collective", "guardrail")),  # wrong elements are no speed
        ("none", "s", Better.NONE, ("none", "")),
    ],
)
def test_kinds_follow_from_class_unit_and_direction(
    class_: str, unit: str, better: Better, expected: tuple[str, str]
) -> None:
    assert kinds.inferred(class_, unit, better) == expected


def test_classes_of_earlier_versions_say_what_to_write(tmp_path: Path) -> None:
    root = measured(tmp_path, {IOPS: 2.0, TRIAD: 2.0})
    sentence = refused(root, "compare", "-b", "gen=old", "-c", "gen=new", "--mix", "disk=.5,mem-bw=.5")
    assert sentence.endswith("the class 'disk' is now disk-iops, disk-bw or disk-latency: use one of them")


# ------------------------------------------------------------ manifests


def test_every_metric_of_every_manifest_has_a_kind() -> None:
    for name in names():
        manifest = load(name)
        for metric, declared in manifest.metrics.items():
            for override in (Override(), *declared.overrides.values()):
                assert (
                    _kind(declared, override) or manifest.kind or Better.NONE in (declared.better, override.better)
                ), (
                    name,
                    metric,
                )


def _kind(metric: Metric, override: Override) -> Any:
    return override.kind or metric.kind


def test_a_manifest_without_kinds_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from fleetmark.workloads import manifest

    text = yaml.safe_load((manifest.HERE / "iperf2.yml").read_text())
    text.pop("kind")
    (tmp_path / "iperf9.yml").write_text(yaml.safe_dump(text))
    monkeypatch.setattr(manifest, "HERE", tmp_path)
    with pytest.raises(
        FleetmarkError, match="bitrate has no kind: write kind: with one of capacity, responsiveness, gu"
    ):
        manifest.load("iperf9")


def test_the_columns_of_every_form_have_the_kind(tmp_path: Path) -> None:
    fleet_ = fleet(count=3)
    record(tmp_path, "c1", labels(fleet_), fleet_)
    text = run(tmp_path, "compare", "-b", "gen=old", "-c", "gen=new", "--format", "csv")
    assert next(csv.reader(io.StringIO(text)))[:4] == ["candidate", "class", "kind", "benchmark"]
