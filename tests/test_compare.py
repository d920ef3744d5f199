"""Test ``fleetmark compare`` and ``reference``: figures, errors and reports."""

from __future__ import annotations

import json
import math
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from fleetmark.cli.app import app
from tests.commands import refused, run
from tests.comparisons import compared, fleet, labels, row_of
from tests.records import GCC, IOPS, MCF, NULL, TRIAD, Bench, record


@pytest.fixture
def root(tmp_path: Path) -> Path:
    measured = fleet()
    cores = {host: 32 if host[0] == "a" else 64 for host, _ in measured}
    record(tmp_path, "c1", labels(measured), measured, cores)
    return tmp_path


def test_ratios_of_classes_and_benchmarks(root: Path) -> None:
    rows = compared(root)
    for class_, truth in (("mem-bw", 2.4), ("disk-iops", 1.5), ("os", 1.1), ("cpu-int", math.sqrt(1.7 * 1.6))):
        row = row_of(rows, class_)
        assert float(row["lo"]) < truth < float(row["hi"])
        assert float(row["ratio"]) == pytest.approx(truth, rel=0.02)
        assert row["verdict"] == "better"
    null = row_of(rows, "os", "lmbench lat_syscall-null null")
    assert (null["unit"], null["better"]) == ("s", "lower")
    assert float(null["candidate_value"]) < float(null["baseline_value"])
    assert row_of(rows, "cpu-int")["standing"] == "estimate"


def test_the_other_way_round_is_the_inverse(root: Path) -> None:
    back = compared(root, "--baseline", "gen=new", "--candidate", "gen=old")
    forth = compared(root)
    for row in forth:
        mirrored = row_of(back, row["class"], row["benchmark"])
        assert float(row["ratio"]) * float(mirrored["ratio"]) == pytest.approx(1)


def test_per_core_shares_out_capacity_alone(root: Path) -> None:
    rows = compared(root, "--baseline", "gen=old", "--candidate", "gen=new", "--per", "core")
    assert float(row_of(rows, "mem-bw")["ratio"]) == pytest.approx(1.2, rel=0.02)
    of_server = compared(root)
    for benchmark in ("", "lmbench lat_syscall-null null"):
        latency = row_of(rows, "os", benchmark)
        assert latency["kind"] == "responsiveness" and latency["ratio"] == row_of(of_server, "os", benchmark)["ratio"]


def test_per_watt_takes_what_was_drawn_during_the_runs(tmp_path: Path) -> None:
    power = Bench("stream", "all-cores", "power", "W", "lower", "mem-bw", labels=frozen({"source": "rapl"}))
    measured = fleet()
    drawn = {
        (h, replace(power, workload=b.workload, case=b.case)): [watts * (1.0 if h[0] == "a" else more)]
        for h, _ in measured
        for b, watts, more in ((TRIAD, 200.0, 1.2), (IOPS, 100.0, 2.0))
    }
    record(tmp_path, "c1", labels(measured), measured)
    refusal = refused(tmp_path, "compare", "-b", "gen=old", "-c", "gen=new", "--per", "watt")
    assert "no power was measured during its runs" in refusal
    record(tmp_path, "c2", labels(measured), {**measured, **drawn})
    rows = compared(tmp_path, "--baseline", "gen=old", "--candidate", "gen=new", "--per", "watt")
    assert float(row_of(rows, "disk-iops", "fio randread-4k-qd32 read_iops")["ratio"]) == pytest.approx(
        1.5 / 2, rel=0.02
    )
    assert float(row_of(rows, "mem-bw", "stream all-cores triad")["ratio"]) == pytest.approx(2.4 / 1.2, rel=0.02)


@pytest.mark.parametrize(
    ("source", "ratio"),
    [("rapl", 2 / 1.5), ("meter", 2 / 1.2), ("", 2 / 2)],
)
def test_per_watt_counts_accelerators_where_the_host_s_source_leaves_them_out(
    tmp_path: Path, source: str, ratio: float
) -> None:
    power = Bench("stream", "all-cores", "power", "W", "lower", "mem-bw", labels=frozen({"source": source}))
    devices = replace(power, metric="accelerator_power", labels=frozen({"source": "nvml"}))
    measured = {("a", TRIAD): [1.0], ("b", TRIAD): [2.0], ("a", devices): [300.0], ("b", devices): [600.0]}
    if source:
        measured |= {("a", power): [500.0], ("b", power): [600.0]}
    record(tmp_path, "c", {"a": {"gen": "old"}, "b": {"gen": "new"}}, measured)
    doc = run(tmp_path, "compare", "-b", "gen=old", "-c", "gen=new", "--per", "watt", "--format", "json")
    (row,) = [r for r in json.loads(doc)["rows"] if "triad" in r.get("benchmark", "")]
    assert float(row["ratio"]) == pytest.approx(ratio)


def test_per_gpu_counts_those_that_a_run_used(tmp_path: Path) -> None:
    """A server on 4 of 8 new GPUs is as fast as one on all 8 old GPUs, so each GPU does twice the work."""
    serving = Bench(
        "llm_serve", "p512-o128-ttft500ms-tpot50ms", "goodput", "1/s", "higher", "gpu-interactive", kind="capacity"
    )
    on_cpus = replace(serving, workload="torch_train", case="gpt-tiny", metric="tokens_per_second", class_="cpu-train")
    rows = {
        (host, bench): [value]
        for host, devices in (("a", 8.0), ("b", 4.0))
        for bench, value in (
            (serving, 1000.0),
            (replace(serving, metric="accelerators", unit="1", better="none", kind=""), devices),
            (on_cpus, 10.0),
            (replace(on_cpus, metric="ranks", unit="1", better="none", kind=""), devices),
        )
    }
    hosts = {"a": {"gen": "old", "gpus": "8"}, "b": {"gen": "new", "gpus": "8"}}
    record(tmp_path, "c", hosts, rows)
    doc = json.loads(run(tmp_path, "compare", "-b", "gen=old", "-c", "gen=new", "--per", "gpu", "--format", "json"))
    ratios = {r["benchmark"].split()[0]: float(r["ratio"]) for r in doc["rows"] if r["benchmark"]}
    assert ratios == {"llm_serve": pytest.approx(2.0), "torch_train": pytest.approx(1.0)}, "ranks on CPUs are no GPUs"
    assert "per gpu: llm_serve is divided by the GPUs that it used, not by those of the host: b (c) 4/8" in json.dumps(
        doc
    )


def test_power_of_two_sources_is_said(tmp_path: Path) -> None:
    power = replace(IOPS, metric="power", unit="W", better="lower")
    hosts, measured = {"a": {"gen": "old"}, "b": {"gen": "new"}}, {("a", IOPS): [1.0], ("b", IOPS): [2.0]}
    for host, source in (("a", "rapl"), ("b", "meter")):
        measured[host, replace(power, labels=frozen({"source": source}))] = [100.0]
    record(tmp_path, "c", hosts, measured)
    words = ("compare", "-b", "gen=old", "-c", "gen=new", "--per", "watt", "--format", "json")
    warnings = json.loads(run(tmp_path, *words))["warnings"]
    assert "power source differs: rapl (old) against meter (new)" in warnings


def test_each_campaign_is_shared_out_by_what_there_was_then(tmp_path: Path) -> None:
    """Use each campaign's own number of cores: 10 on 10 cores and 40 on 20, not both on 20."""
    hosts = {"a": {"gen": "old"}, "b": {"gen": "new"}}
    record(tmp_path, "c1", hosts, {("a", TRIAD): [10.0], ("b", TRIAD): [10.0]}, {"a": 10, "b": 10})
    record(tmp_path, "c2", {"b": hosts["b"]}, {("b", TRIAD): [40.0]}, {"b": 20})
    row = row_of(compared(tmp_path, "-b", "gen=old", "-c", "gen=new", "--per", "core"), "mem-bw")
    assert float(row["ratio"]) == pytest.approx(math.sqrt(2))
    (tmp_path / "c1" / "facts" / "b.json").unlink()
    done = CliRunner().invoke(
        app,
        ["compare", "-b", "gen=old", "-c", "gen=new", "--per", "core", "--format", "json", "--results", str(tmp_path)],
    )
    assert "per core: 1 figure left out, because the amount is unknown: b (c1)" in done.stdout


def test_a_work_mix_has_both_headlines(root: Path) -> None:
    rows = compared(root, "--baseline", "gen=old", "--candidate", "gen=new", "--mix", "mem-bw=0.5,disk-iops=0.5")
    row = row_of(rows, "work mix")
    assert float(row["ratio"]) == float(row["work"]) == pytest.approx(2 / (1 / 2.4 + 1 / 1.5), rel=0.02)
    assert float(row["geometric"]) == pytest.approx(math.sqrt(2.4 * 1.5), rel=0.02)
    assert re.match(
        r"1\.8\dx \(95% [\d.]+–[\d.]+\) for the same jobs over 2 benchmarks of the mix; range ", row["headline"]
    )
    assert "geometric mean 1.89x (95% " in row["headline"] and "depends on the mix" not in row["headline"]


def test_several_campaigns_of_a_host_are_one_host(root: Path) -> None:
    more = fleet(seed=2)
    record(root, "c2", labels(more), more, {host: 32 if host[0] == "a" else 64 for host, _ in more})
    row = row_of(compared(root), "disk-iops")
    assert (row["hosts_baseline"], row["hosts_candidate"]) == ("6", "6")


def test_what_did_not_pass_or_is_not_positive_is_left_out_and_said(root: Path) -> None:
    record(root, "c2", {"b0": {"gen": "new"}}, {("b0", TRIAD): [1.0]}, status="invalid")
    record(root, "c3", {"b1": {"gen": "new"}}, {("b1", TRIAD): [0.0]})
    before = row_of(compared(root, "--baseline", "gen=old", "--candidate", "gen=new,campaign=c1"), "mem-bw")
    result = json.loads(run(root, "compare", "-b", "gen=old", "-c", "gen=new", "--format", "json"))
    row = next(r for r in result["rows"] if r["class"] == "mem-bw")
    assert row["ratio"] == pytest.approx(float(before["ratio"]))
    assert sorted(result["notes"]) == [
        "new: stream all-cores: 1 value of triad left out: invalid",
        "new: stream all-cores: 1 value of triad left out: zero or negative",
    ]


def test_sizes_that_follow_the_hosts_do_not_keep_generations_apart(tmp_path: Path) -> None:
    curve = replace(NULL, case="lat_mem_rd-128", metric="random_latency", class_="mem-latency")
    measured: dict[tuple[str, Bench], list[float]] = {}
    for side, largest in (("a", 96), ("b", 384)):
        for n in range(3):
            for size in (1, 8, 32, 64, largest):
                point = replace(curve, labels=frozen({"size": str(size << 20), "stride": "128"}))
                measured[f"{side}{n}", point] = [90e-9 + n * 1e-9 if size == largest else 5e-9]
    record(tmp_path, "c", {h: {"gen": "old" if h[0] == "a" else "new"} for h, _ in measured}, measured)
    (headline, row) = compared(tmp_path)
    assert row["benchmark"] == "lmbench lat_mem_rd-128 random_latency stride=128"
    assert float(headline["ratio"]) == pytest.approx(1)
    assert float(row["baseline_value"]) == pytest.approx(91e-9, rel=0.01)


class frozen(dict[str, str]):
    def __hash__(self) -> int:  # type: ignore[override]
        return hash(tuple(self.items()))


def test_redundant_benchmarks_share_a_weight_if_the_generations_compared_show_it(tmp_path: Path) -> None:
    """gcc follows mcf on nine generations, so each has a quarter of the weight, and a third benchmark half.

    Two of the generations cannot show this: each benchmark then has a third, whatever else is on record.
    """
    rng = np.random.default_rng(4)
    other = replace(MCF, case="541.leela_r")
    measured, hosts = {}, {}
    for n in range(9):
        mcf = math.exp(rng.normal(0, 0.5))
        for h in range(2):
            name = f"g{n}h{h}"
            hosts[name] = {"gen": f"g{n}"}
            measured[name, MCF], measured[name, GCC] = [mcf], [mcf * math.exp(rng.normal(0, 0.005))]
            measured[name, other] = [math.exp(rng.normal(0, 0.5))]
    record(tmp_path, "c", hosts, measured)

    def weights(*candidates: str) -> list[float]:
        words = [word for c in candidates for word in ("--candidate", f"gen={c}")]
        rows = compared(tmp_path, "--baseline", "gen=g0", *words)
        return [float(r["weight"]) for r in rows if r["benchmark"] and r["candidate"] == "g1"]

    assert weights(*(f"g{n}" for n in range(1, 9))) == pytest.approx([0.25, 0.25, 0.5])
    assert weights("g1") == pytest.approx([1 / 3, 1 / 3, 1 / 3])


def test_pairs_count_within_a_side_only(tmp_path: Path) -> None:
    def wire(peer: str) -> Bench:
        return Bench("iperf3", "tcp-1", "bitrate", "B/s", "higher", "net", subject=peer)

    measured = {}
    for client in ("a0", "a1", "a2", "b0", "b1", "b2"):
        for server in ("a0", "a1", "a2", "b0", "b1", "b2"):
            if client != server:
                slow = "a" in client + server
                measured[client, wire(f"{client}>{server}")] = [(1e9 if slow else 3e9) * (1 + 0.001 * int(client[1]))]
    record(tmp_path, "c", {h: {"gen": "old" if h[0] == "a" else "new"} for h, _ in measured}, measured)
    row = row_of(compared(tmp_path), "net-flow", "iperf3 tcp-1 bitrate (pairs)")
    assert float(row["ratio"]) == pytest.approx(3)
    assert (row["hosts_baseline"], row["hosts_candidate"]) == ("3", "3")


def test_one_host_a_side_speaks_of_these_machines_alone(root: Path) -> None:
    row = row_of(compared(root, "--baseline", "host=a0", "--candidate", "host=b0"), "disk-iops")
    assert float(row["lo"]) < float(row["ratio"]) < float(row["hi"])
    assert (row["interval_of"], row["verdict"], row["p"]) == ("repeats", "cannot tell", "")
    assert "by repeats" in row["headline"] and row["headline"].endswith("these two machines, not their kinds")


def test_the_columns_are_explained_where_there_is_no_page_on_the_method(root: Path) -> None:
    for form in ("table", "md"):
        arguments = ("compare", "--baseline", "gen=old", "--candidate", "gen=new", "--per", "core", "--format", form)
        text = " ".join(run(root, *arguments).split())
        assert "In brackets: 95% confidence intervals of the average, across hosts" in text
        assert "One core of new does" in text


def test_the_best_of_either_side_is_no_host_of_both(root: Path) -> None:
    arguments = ("compare", "--baseline", "gen=old", "--candidate", "gen=new", "--best", "--format", "json")
    assert json.loads(run(root, *arguments))["warnings"] == []


def test_before_and_after_on_the_same_hosts(tmp_path: Path) -> None:
    before = fleet("a", noise=0.1)
    after = {key: [v * 1.05 for v in values] for key, values in before.items()}
    record(tmp_path, "before", labels(before), before)
    record(tmp_path, "after", labels(after), after)
    words = ("--baseline", "campaign=before", "--candidate", "campaign=after")
    apart = json.loads(run(tmp_path, "compare", *words, "--format", "json"))
    assert "6 hosts are on both sides (a0, a1, a2): compare them with --paired" in apart["warnings"]
    row = row_of(compared(tmp_path, *words, "--paired"), "disk-iops")
    assert float(row["ratio"]) == pytest.approx(1.05) and row["verdict"] == "better"
    assert row_of(compared(tmp_path, *words), "disk-iops")["verdict"] == "cannot tell"


def test_a_pinned_reference_does_not_drift(root: Path) -> None:
    assert run(root, "reference", "save", "old-2026", "--from", "gen=old").startswith(
        "saved old-2026@1: 5 benchmarks of 6 hosts"
    )
    words = ("--reference", "old-2026", "--candidate", "gen=new")
    first = compared(root, *words)
    record(root, "c9", {"z1": {"gen": "old"}, "z2": {"gen": "old"}}, {(h, TRIAD): [1e9] for h in ("z1", "z2")})
    assert compared(root, *words) == first
    assert run(root, "reference", "save", "old-2026", "--from", "gen=old").startswith("saved old-2026@2")
    assert compared(root, "--reference", "old-2026@1", "--candidate", "gen=new") == [{**row} for row in first]
    listed = json.loads(run(root, "reference", "list", "--format", "json"))
    assert [(r["name"], r["version"], r["hosts"]) for r in listed] == [("old-2026", 1, 6), ("old-2026", 2, 8)]


def test_every_form_says_the_same(root: Path) -> None:
    words = ("compare", "-b", "gen=old", "-c", "gen=new")
    table, text = run(root, *words), run(root, *words, "--format", "md")
    ratio = f"{float(row_of(compared(root), 'mem-bw')['ratio']):.2f}"
    for shown in (table, text):
        assert ratio in shown and "estimate: not a compliant reportable run" in shown
    assert text.count("| stream all-cores triad |") == 1


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["-b", "gen=olt", "-c", "gen=new"], r"there are gen=old (6), gen=new (6)"),
        (["-b", "gen=old", "-c", "gen=new", "--per", "cores"], "did you mean core?"),
        (["-b", "gen=old", "-c", "gen=new", "--per", "money"], "b0 (c1) has no known amount"),
        (["-b", "gen=old", "-c", "gen=new", "--mix", "disk-iops=0.5"], "sums to 0.5, not to 1"),
        (
            ["-b", "gen=old", "-c", "gen=new", "--mix", "disc=1"],
            "names 'disc', which is not measured; write a class of capacity (",
        ),
        (["-b", "gen=old", "-c", "gen=new", "--mix", "disk-iops"], "is not a share"),
        (["-b", "gen=old", "-c", "gen=new", "--only", "nothing*"], "matches no benchmark; there are"),
        (["-c", "gen=new"], "--baseline gen=… or --reference NAME"),
        (["--reference", "nobody", "-c", "gen=new"], "there is none yet"),
        (["-b", "host=a0", "-c", "host=b0", "--paired"], "have no host in common"),
        (["--reference", "", "-c", "gen=new"], "no reference ''"),
        (["--reference", "x@²", "-c", "gen=new"], "there is none yet"),
        (["-b", "gen=old", "-c", "gen=new", "--mix", ""], "is not a share"),
        (
            ["-b", "gen=old", "-c", "gen=new", "--mix", "disk-iops=0.5,disk-iops=0.5"],
            "disk-iops is repeated; give it one share",
        ),
        (
            ["-b", "gen=old", "-c", "gen=new", "--mix", "disk-iops=-1,mem-bw=2"],
            "gives disk-iops -1: a share is a number from 0",
        ),
        (["-b", "gen=old", "-c", "gen=new", "--mix", "disk-iops=nan"], "gives disk-iops nan: a share is a number"),
        (["-b", "gen=old", "-c", "gen=new", "--only", "fio/*", "--only", "x*"], "--only x* matches no benchmark"),
        (
            ["-b", "gen=old", "-c", "gen=new", "--per", "core", "--only", "lmbench/*"],
            "because only capacity can be divided",
        ),
        (
            ["-b", "gen=old", "-c", "gen=new", "--mix", "mem-bw=.5,os=.5"],
            "'os', which is responsiveness: only capacity",
        ),
        (["-b", "gne!=old", "-c", "gen=new"], "none has gne (did you mean gen?)"),
        (["-b", "gen=old", "-c", "host=a0"], "gen=old and host=a0 both select a0 of c1"),
    ],
)
def test_bad_input_is_one_sentence(root: Path, words: list[str], sentence: str) -> None:
    assert sentence in refused(root, "compare", *words)


def test_a_mix_in_yaml_with_a_class_twice(root: Path, tmp_path: Path) -> None:
    (tmp_path / "mix.yml").write_text("disk-iops: 0.5\nmem-bw: 0.5\ndisk-iops: 0.5\n")
    sentence = refused(root, "compare", "-b", "gen=old", "-c", "gen=new", "--mix", str(tmp_path / "mix.yml"))
    assert "mix.yml line 3: not YAML: disk-iops is repeated" in sentence


def test_every_form_names_sides_by_what_tells_them_apart(root: Path) -> None:
    words = ("compare", "-b", "campaign=c1,gen=old", "-c", "campaign=c1,gen=new")
    table = run(root, *words)
    assert "One new replaces" in table and "all sides: campaign=c1" in table
    assert "| disk IOPS, disk-iops" in run(root, *words, "--format", "md")
    doc = json.loads(run(root, *words, "--format", "json"))
    assert (doc["baseline"], doc["candidates"], doc["rows"][0]["candidate"]) == ("old", ["new"], "new")
    assert doc["selectors"] == {"old": "campaign=c1,gen=old", "new": "campaign=c1,gen=new"}
    assert "all sides: campaign=c1" in doc["notes"]


def test_sides_have_the_names_that_the_user_gives(root: Path) -> None:
    words = ("compare", "-b", "gen=old", "-c", "gen=new", "--name", "Ice Lake", "--name", "Genoa")
    assert "One Genoa replaces" in run(root, *words)
    doc = json.loads(run(root, *words[:-2], "--format", "json"))  # without the last name, Fleetmark chooses it
    assert doc["selectors"] == {"Ice Lake": "gen=old", "new": "gen=new"}
    doc = json.loads(run(root, *words[:5], "--name", "", "--name", "Genoa", "--format", "json"))
    assert doc["selectors"] == {"old": "gen=old", "Genoa": "gen=new"}
    run(root, "reference", "save", "old-2026", "--from", "gen=old")
    pinned = ("compare", "--reference", "old-2026", "-c", "gen=new", "--name", "Genoa", "--format", "json")
    doc = json.loads(run(root, *pinned))
    assert (doc["baseline"], doc["selectors"]) == ("old-2026@1", {"Genoa": "gen=new"})
    assert "--name Genoa: two sides" in refused(root, *words[:5], "--name", "Genoa", "--name", "Genoa")
    assert "--name: 3 names for 2 sides" in refused(root, *words, "--name", "x")


def test_a_side_of_several_processors_or_memories_is_warned_of(tmp_path: Path) -> None:
    measured = {(h, TRIAD): [1e9] for h in ("a1", "a2", "b1", "b2")}
    record(tmp_path, "c1", {h: {"gen": {"a": "old", "b": "new"}[h[0]]} for h, _ in measured}, measured)
    dimms = [{"slot": str(n), "size": 64 << 30, "type": "DDR5", "configured_mts": 4800} for n in range(24)]
    of_host = {
        "a1": {"cpu": {"model": "Xeon 8380"}, "memory": 1000 << 30},
        "a2": {"cpu": {"model": "Xeon 8380"}, "memory": 1010 << 30},  # the same memory, less the kernel's part
        "b1": {"cpu": {"model": "EPYC 9654"}, "dimms": dimms, "software": {"cuda": "12.4"}},
        "b2": {"cpu": {"model": "EPYC 9554"}, "dimms": dimms[:16], "software": {"cuda": "12.6"}},
    }
    for host, more in of_host.items():
        file = tmp_path / "c1" / "facts" / f"{host}.json"
        doc = json.loads(file.read_text())
        doc["facts"] |= more
        file.write_text(json.dumps(doc))
    warnings = json.loads(run(tmp_path, "compare", "-b", "gen=old", "-c", "gen=new", "--format", "json"))["warnings"]
    assert [w for w in warnings if " mixes " in w] == [
        "new mixes processors: EPYC 9654 (1); EPYC 9554 (1); to select one, add cpu.model=EPYC 9654",
        "new mixes memory populations: 24 x 64 GiB DDR5-4800 (1); 16 x 64 GiB DDR5-4800 (1)",
        "new mixes software: cuda 12.4 (1); cuda 12.6 (1); to select one, add software.cuda=12.4",
    ]


@pytest.mark.parametrize(
    ("file", "content", "sentence"),
    [
        ("campaign.json", "{}", "schema None is not supported by this version"),
        ("campaign.json", '{"schema": 9, "hosts": []}', "schema 9 is not supported by this version"),
        ("campaign.json", '{"schema": 1}', "damaged (lacks hosts)"),
        ("measurements.parquet", "", "not a complete Parquet file"),
        ("measurements.parquet", "PAR1 cut", "not a complete Parquet file"),
    ],
)
def test_a_damaged_record_is_one_sentence(root: Path, file: str, content: str, sentence: str) -> None:
    (root / "c1" / file).write_text(content)
    result = refused(root, "compare", "-b", "gen=old", "-c", "gen=new", "--per", "core")
    assert sentence in result and str(root / "c1") in result


def test_what_older_archives_lack(root: Path) -> None:
    before = compared(root)
    path = root / "c1" / "measurements.parquet"
    table = pq.read_table(path)
    labels = pa.array([None] * table.num_rows, pa.string())
    pq.write_table(table.drop_columns(["standing", "labels"]).append_column("labels", labels), path)
    assert [r["ratio"] for r in compared(root)] == [r["ratio"] for r in before]
    headline = pa.array([None] * table.num_rows, pa.bool_())
    pq.write_table(table.drop_columns(["headline"]).append_column("headline", headline), path)
    assert "new: nothing is measured" in refused(root, "compare", "-b", "gen=old", "-c", "gen=new")
    pq.write_table(table.slice(0, 0), path)
    assert "new: nothing is measured" in refused(root, "compare", "-b", "gen=old", "-c", "gen=new")
    path.unlink()
    record(root, "c2", {"a0": {"gen": "old"}, "b0": {"gen": "new"}}, {("a0", TRIAD): [1.0], ("b0", TRIAD): [2.0]})
    result = json.loads(run(root, "compare", "-b", "gen=old", "-c", "gen=new", "--format", "json"))
    assert "old: c1: no measurements" in result["notes"]


def test_machines_of_one_name_at_two_sites_are_two_hosts(tmp_path: Path) -> None:
    hosts = {"node0": {"gen": "old"}, "node1": {"gen": "old"}}
    for site, value in ((".ams", 1e9), (".fra", 2e9)):
        measured = {(h, TRIAD): [value] for h in hosts}
        record(tmp_path, f"c{site}", hosts, measured, site=site, ids={h: h + site for h in hosts})
    record(tmp_path, "new", {"b": {"gen": "new"}}, {("b", TRIAD): [4e9]})
    assert row_of(compared(tmp_path), "mem-bw")["hosts_baseline"] == "4"
    sentence = refused(tmp_path, "compare", "-b", "campaign=c.ams", "-c", "campaign=c.fra", "--paired")
    assert "no host in common (node0, node1: other machines of that name)" in sentence


def test_the_word_of_either_side_stands_in_every_form(tmp_path: Path) -> None:
    official = replace(MCF, standing="")
    hosts = {"a": {"gen": "old"}, "b": {"gen": "new"}, "c": {"gen": "other"}}
    record(tmp_path, "c", hosts, {("a", official): [10.0], ("b", MCF): [20.0], ("c", official): [30.0]})
    words = ("-b", "gen=old", "-c", "gen=new", "-c", "gen=other", "-c", "gen=new")
    rows = [r for r in compared(tmp_path, *words) if r["benchmark"]]
    assert [(r["candidate"], r["standing"]) for r in rows] == [("new", "estimate"), ("other", "")]
    text = run(tmp_path, "compare", *words, "--format", "md")
    assert "| integer, cpu-int" in text and "| spec_cpu2017 505.mcf_r base_ratio, estimate |" in text
    assert all(word in run(tmp_path, "compare", *words) for word in ("2.00", "no verdict", "estimate"))
    assert "3.00  cannot tell, estimate" not in run(tmp_path, "compare", *words)
    done = CliRunner().invoke(app, ["compare", *words, "--format", "csv", "--results", str(tmp_path)])
    assert "fleetmark: warning: spec_cpu2017" in done.stderr and "fleetmark: estimate: not" in done.stderr


def test_sizes_far_apart_and_traits_of_one_side_are_warned_of(tmp_path: Path) -> None:
    hosts = {"a": {"gen": "old", "round": "v5.1"}, "b": {"gen": "new"}}
    sized = {h: replace(TRIAD, labels=frozen({"size": str(s << 20)})) for h, s in (("a", 1), ("b", 512))}
    record(tmp_path, "c", hosts, {("a", sized["a"]): [1e9], ("b", sized["b"]): [2e9]})
    words = ("compare", "--format", "json", "-c", "gen=new")
    run(tmp_path, "reference", "save", "ref", "--from", "gen=old")
    for side, title in (("--baseline", "gen=old"), ("--reference", "ref")):
        sentence = " ".join(json.loads(run(tmp_path, *words, side, title))["warnings"])
        assert "size 1,048,576 (" in sentence and "against 536,870,912 (new)" in sentence
        assert "round differs: v5.1" in sentence and "against none (new)" in sentence


def test_pairs_name_what_is_on_one_side_only_and_do_not_ask_for_pairs(tmp_path: Path) -> None:
    before = fleet("a")
    record(tmp_path, "before", labels(before), before)
    record(tmp_path, "after", labels(before), {k: v for k, v in before.items() if k[0] != "a3"})
    words = ("compare", "-b", "campaign=before", "-c", "campaign=after", "--paired", "--format", "json")
    result = json.loads(run(tmp_path, *words))
    assert result["warnings"] == []
    assert {r["note"] for r in result["rows"] if not r["benchmark"]} == {"without a3 (is on one side only)"}


def test_what_failed_without_a_latency_target_just_failed(tmp_path: Path) -> None:
    hosts = {"a": {"gen": "old"}, "b": {"gen": "new"}}
    record(tmp_path, "c1", hosts, {("a", TRIAD): [1e9], ("b", TRIAD): [2e9], ("b", IOPS): [5e5]})
    record(tmp_path, "c2", {"a": hosts["a"]}, {("a", IOPS): [1e4]}, status="invalid")
    row = row_of(compared(tmp_path), "disk-iops", "fio randread-4k-qd32 read_iops")
    assert row["note"] == "on old every run was invalid"


def test_a_reference_knows_which_benchmarks_are_redundant(tmp_path: Path) -> None:
    rng = np.random.default_rng(4)
    other, hosts = replace(MCF, case="541.leela_r"), {}
    measured: dict[tuple[str, Bench], list[float]] = {}
    for name in (f"g{n}" for n in range(9)):
        mcf = math.exp(rng.normal(0, 0.5))
        hosts[name] = {"gen": name}
        measured |= {(name, MCF): [mcf], (name, GCC): [mcf * 1.001], (name, other): [math.exp(rng.normal(0, 0.5))]}
    record(tmp_path, "c", hosts, measured)
    for name, selector, expected in (("all", "gen=g*", [0.25, 0.25, 0.5]), ("one", "gen=g0", [1 / 3, 1 / 3, 1 / 3])):
        run(tmp_path, "reference", "save", name, "--from", selector)
        rows = compared(tmp_path, "--reference", name, "--candidate", "gen=g1")
        assert sorted(float(r["weight"]) for r in rows if r["benchmark"]) == pytest.approx(expected)


def test_a_run_of_several_hosts_counts_for_their_side_alone(tmp_path: Path) -> None:
    """A run on two nodes of one generation counts for it. A run over both generations is excluded and reported."""
    group = Bench("nccl_tests", "all_reduce-2n", "busbw", "B/s", "higher", "collective", members=("a1", "a2"))
    mixed = replace(group, members=("a1", "b1"))
    other = replace(group, members=("b1", "b2"))
    hosts = {h: {"gen": h[0]} for h in ("a1", "a2", "b1", "b2")}
    record(tmp_path, "c1", hosts, {("a1", group): [100e9] * 3, ("b1", other): [200e9] * 3})
    record(tmp_path, "c2", hosts, {("a1", mixed): [1e9] * 3})
    arguments = ("--baseline", "gen=a", "--candidate", "gen=b")
    assert float(row_of(compared(tmp_path, *arguments), "collective")["ratio"]) == pytest.approx(2)
    notes = json.loads(run(tmp_path, "compare", *arguments, "--format", "json"))["notes"]
    assert [n for n in notes if "shared with hosts of another side" in n] == [
        "a: nccl_tests all_reduce-2n: 3 values of busbw left out: shared with hosts of another side"
    ]


def test_large_fleets_have_a_second_interval(tmp_path: Path) -> None:
    measured = fleet(count=12, noise=0.03)
    record(tmp_path, "c1", labels(measured), measured)
    row = row_of(compared(tmp_path), "mem-bw")
    lo, hi = float(row["resampled_lo"]), float(row["resampled_hi"])
    assert lo == pytest.approx(float(row["lo"]), rel=0.01) and hi == pytest.approx(float(row["hi"]), rel=0.01)
    assert (lo, hi) != (float(row["lo"]), float(row["hi"]))
    assert "by the bootstrap over hosts" in row["note"]
    few = tmp_path / "few"
    few.mkdir()
    record(few, "c1", labels(fleet()), fleet())
    assert row_of(compared(few), "mem-bw")["resampled_lo"] == ""


def test_a_side_of_official_results_and_estimates_is_named(tmp_path: Path) -> None:
    official = replace(MCF, standing="")
    hosts = {h: {"gen": h[0]} for h in ("a1", "a2", "b1", "b2")}
    figures = {("a1", official): [5.0], ("a2", MCF): [5.1], ("b1", official): [10.0], ("b2", official): [10.1]}
    record(tmp_path, "c1", hosts, figures)
    arguments = ("compare", "--baseline", "gen=a", "--candidate", "gen=b", "--format", "json")
    notes = json.loads(run(tmp_path, *arguments))["notes"]
    assert [n for n in notes if "official" in n] == [
        "a: spec_cpu2017 505.mcf_r base_ratio: the mean mixes official results of some hosts with unofficial figures of others"
    ]
