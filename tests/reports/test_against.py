"""What a first run's figures mean: beside a reference, and beside the machine's own peak."""

from __future__ import annotations

import io
import json
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

from fleetmark.base.facts import Dimm, Facts, Nic
from fleetmark.record.results import Results
from fleetmark.verbs import reference
from reports import html, markdown
from reports.campaign.against import Against, Beside, sentences
from reports.campaign.terminal import summary
from reports.report import Report, of_campaign
from tests.commands import run
from tests.records import TRIAD, Bench, record
from tests.reports import sample
from workloads import declared

FACTS = {"time": 0.0, "hostname": "h1", "user": "u", "root": True, "python": "p", "python_version": "3.11"}


def known(results: Results, **own: object) -> Results:
    hosts = tuple(replace(h, facts=Facts(**{**FACTS, "work_dir": "/w", **own})) for h in results.hosts)
    return replace(results, hosts=hosts)


def modules(number: int, mts: int = 4800) -> tuple[Dimm, ...]:
    return tuple(Dimm(slot=f"CH{n}", size=1 << 34, type="DDR5", configured_mts=mts) for n in range(number))


def all_cores(results: Results) -> Results:
    return replace(results, measurements=results.measurements.assign(case="all-cores"))


def everywhere(of: Report) -> list[str]:
    out = io.StringIO()
    for part in summary(of, Path("page.html")):
        Console(file=out, width=200).print(part)
    return [out.getvalue(), html.render(of), markdown.render(of)]


def test_a_share_of_the_memorys_peak_by_hand() -> None:
    of = of_campaign(known(all_cores(sample.tiny({"h1": [57.6e9]})), dimms=modules(2)))
    # 57.6 GB/s, a third more with the lines that are read before they are written, of 2 x 38.4 GB/s
    expected = "stream all-cores triad: 100% of the peak of 76.8 GB/s"
    assert sentences(of.against) == [
        expected,
        "the peak: 2 channels at 4,800 MT/s; 1.33 bytes are moved for each that is counted",
    ]
    assert all("What it means" in text and expected in text for text in everywhere(of))


def test_other_cases_and_hosts_without_facts_have_no_peak() -> None:
    assert sentences(of_campaign(known(sample.tiny({"h1": [57.6e9]}), dimms=modules(2))).against) == []  # 2 threads
    unknown = of_campaign(all_cores(sample.tiny({"h1": [57.6e9]})))
    assert sentences(unknown.against) == []
    assert not any("What it means" in text for text in everywhere(unknown))
    no_root = of_campaign(known(all_cores(sample.tiny({"h1": [57.6e9]})), root=False))
    assert sentences(no_root.against) == ["the memory's peak is not known: only root may read the modules (--become)"]


def test_a_pair_is_held_against_its_link_and_loopback_is_not() -> None:
    nics = (Nic(name="e", speed=12.5e9, state="up"),)
    bits = Bench("iperf3", "tcp-8", "bitrate", "B/s", "higher", "net", subject="h1>h2")
    two = sample.tiny({"h1": [1.0], "h2": [1.0]})
    rows = two.measurements.assign(
        workload="iperf3", case="tcp-8", metric="bitrate", subject="h1>h2", value=11.25e9, bits=True
    )
    rows = rows[rows["host"] == "h1"]
    of = of_campaign(known(replace(two, measurements=rows), nics=nics))
    assert sentences(of.against)[0].endswith("(h1): 90% of the peak of 100 Gbit/s"), bits
    lone = replace(sample.tiny({"h1": [1.0]}), measurements=rows.assign(subject="lo"))
    assert sentences(of_campaign(known(lone, nics=nics)).against) == []
    three = sample.tiny({h: [1.0] for h in ("h1", "h2", "h3")})
    assert sentences(of_campaign(known(all_cores(three), dimms=modules(2))).against) == []


def test_the_latest_reference_with_something_in_common_stands_beside(tmp_path: Path) -> None:
    latency = Bench("lmbench", "lat_syscall-null", "null", "s", "lower", "os")
    old = {(h, b): [v] for h in ("a", "b") for b, v in ((TRIAD, 1e11), (latency, 2e-7))}
    record(tmp_path, "old", {"a": {"gen": "old"}, "b": {"gen": "old"}}, old)
    reference.pin(tmp_path, "old", "gen=old")
    record(tmp_path, "other", {"c": {"gen": "c"}}, {("c", replace(TRIAD, workload="mlc")): [1.0]})
    reference.pin(tmp_path, "other", "gen=c")
    record(tmp_path, "new", {"n": {"gen": "new"}}, {("n", TRIAD): [2e11], ("n", latency): [1e-7]})
    text = " ".join(run(tmp_path, "report", "new").split())
    assert "stream all-cores triad: worth 2 old@1 servers" in text
    assert "null: 2 times as fast as old@1" in text
    assert "old@1 is a pinned reference; above 1 is better than it" in text
    reference.pin(tmp_path, "new", "gen=new")  # of itself it says nothing
    assert "worth 2 old@1 servers" in run(tmp_path, "report", "new")
    damaged = tmp_path / "references" / "old.1.json"
    damaged.write_text(json.dumps({"schema": 99}))
    assert "What it means" not in run(tmp_path, "report", "new")


def test_only_capacity_is_counted_in_servers() -> None:
    rows = (
        Beside("stream all-cores", "triad", "", 1.94, None, "", "capacity"),
        Beside("lmbench lat_mem_rd", "latency", "", 0.91, None, "", "responsiveness"),
        Beside("fio randread-4k-p99-2000us", "read_clat_p99", "", None, None, "", "guardrail", "broken"),
    )
    assert sentences(Against(rows, "old@1", ()))[:3] == [
        "stream all-cores triad: worth 1.94 old@1 servers",
        "lmbench lat_mem_rd latency: 0.91 times as fast as old@1",
        "fio randread-4k-p99-2000us read_clat_p99: broken beside old@1",
    ]


@pytest.mark.parametrize(
    ("workload", "case", "metric", "of"),
    [
        ("stream", "all-cores", "triad", "memory"),
        ("stream", "4t", "triad", None),
        ("lmbench", "bw_mem-rd-all-cores", "rd", "memory"),
        ("lmbench", "bw_mem-rd-1p", "rd", None),
        ("iperf3", "tcp-8", "bitrate", "link"),
        ("iperf3", "udp", "bitrate", None),
        ("nvbandwidth", "host_to_device_memcpy_ce", "link_bandwidth", "pcie"),
        ("nvbandwidth", "host_to_device_bidirectional_memcpy_ce", "link_bandwidth", None),
        ("torch_ops", "basic-2048t-b1/roof/memory", "memory_rate", "device_memory"),
        ("torch_ops", "basic-2048t-b16-1of8/roof/memory", "memory_rate", "device_memory"),
        ("torch_ops", "basic-2048t-b1-cpu/roof/memory", "memory_rate", None),
        ("torch_ops", "basic-2048t-b1/roof/fp16", "peak", "device_compute"),
        ("torch_ops", "basic-2048t-b1/roof/fp32", "peak", None),
        ("unknown", "x", "y", None),
    ],
)
def test_manifests_say_what_a_figure_is_held_against(workload: str, case: str, metric: str, of: str | None) -> None:
    held = declared.peak(workload, case, metric)
    assert (held.of if held else None) == of
