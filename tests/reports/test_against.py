"""Test headlines that are compared with a reference, and with the machine's own peak."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

from fleetmark.base.facts import Cpu, Dimm, Facts, Gpu, Nic
from fleetmark.record.results import Results
from fleetmark.record.values import Values
from fleetmark.reports.campaign.against import Against, Machines, against
from fleetmark.reports.campaign.document import document
from fleetmark.reports.campaign.view import view
from fleetmark.reports.formats import html, markdown
from fleetmark.reports.kit.language import Language
from fleetmark.verbs import reference
from fleetmark.workloads import declared
from tests.commands import run
from tests.records import TRIAD, Bench, record
from tests.reports import rendered, sample

FACTS = {"time": 0.0, "hostname": "h1", "user": "u", "root": True, "python": "p", "python_version": "3.11"}


def known(results: Results, **extra_facts: object) -> Results:
    hosts = tuple(replace(h, facts=Facts(**{**FACTS, "work_dir": "/w", **extra_facts})) for h in results.hosts)
    return replace(results, hosts=hosts)


def modules(number: int, mts: int = 4800) -> tuple[Dimm, ...]:
    return tuple(Dimm(slot=f"CH{n}", size=1 << 34, type="DDR5", configured_mts=mts) for n in range(number))


def all_cores(results: Results) -> Results:
    return replace(results, values=Values(results.values.frame.assign(case="all-cores")))


def held(results: Results) -> Against:
    return against(view(results))


def everywhere(results: Results) -> list[str]:
    shown = document(results)
    return [rendered.shown(shown, 200), html.render(shown, Language()), markdown.render(shown, Language())]


def table_cells(text: str, name: str) -> list[str]:
    """Return the row of a Markdown table that begins with ``name``."""
    (row,) = [line for line in text.splitlines() if line.startswith(f"| {name} ")]
    return [cell.strip() for cell in row.strip("|").split("|")]


def test_a_share_of_the_memorys_peak_by_hand() -> None:
    results = known(all_cores(sample.tiny({"h1": [57.6e9]})), dimms=modules(2))
    # 57.6 GB/s plus a third (lines are read before they are written), compared with 2 x 38.4 GB/s
    note = "peak 76.8 GB/s: 2 channels at 4,800 MT/s; the share includes write allocation (×1.33), the figure does not"
    assert held(results).means == (note,)
    texts = everywhere(results)
    assert [note in text and "peak" in text and "100%" in text for text in texts] == [True] * 3
    assert table_cells(texts[2], "stream all-cores triad")[1:3] == ["57.6 GB/s", "100%"]


def test_other_cases_and_hosts_without_facts_have_no_peak() -> None:
    assert held(known(sample.tiny({"h1": [57.6e9]}), dimms=modules(2))) == Against()  # 2 threads
    unknown = all_cores(sample.tiny({"h1": [57.6e9]}))
    assert held(unknown) == Against()
    assert not any("What it means" in text or "of peak" in text for text in everywhere(unknown))
    no_root = known(all_cores(sample.tiny({"h1": [57.6e9]})), root=False)
    assert held(no_root).means == ("the memory's peak is not known: only root may read the modules (--become)",)


def test_each_generation_is_held_against_its_own_peak_the_middle_of_its_hosts() -> None:
    generations = {"a": "old", "b": "old", "c": "old", "d": "new"}
    measured = all_cores(
        sample.tiny({"a": [57.6e9], "b": [57.6e9], "c": [57.6e9], "d": [57.6e9]}, generations=generations)
    )
    number = {"a": 2, "b": 2, "c": 1, "d": 4}
    hosts = tuple(
        replace(h, facts=Facts(**FACTS, work_dir="/w", dimms=modules(number[h.name]))) for h in measured.hosts
    )
    results = replace(measured, hosts=hosts)
    context = held(results)
    assert {side: row.share.text for (_, side), row in context.rows.items()} == {"old": "100%", "new": "50%"}
    traffic = "the share includes write allocation (×1.33), the figure does not"
    assert set(context.means) == {
        f"old: peak 76.8 GB/s: 2 channels at 4,800 MT/s; {traffic}",
        f"new: peak 153.6 GB/s: 4 channels at 4,800 MT/s; {traffic}",
    }
    terminal, page, _ = everywhere(results)
    assert "50% of peak" in page and " ".join(terminal.split()).count("100%") == 1


def test_a_pair_is_held_against_its_slower_link_and_loopback_is_not() -> None:
    two = sample.tiny({"h1": [1.0], "h2": [1.0]})
    rows = two.values.frame.assign(
        workload="iperf3", case="tcp-8", metric="bitrate", subject="h1>h2", value=11.25e9, bits=True
    )
    rows = rows[rows["host"] == "h1"]
    pair = known(replace(two, values=Values(rows)), nics=(Nic(name="e", speed=12.5e9, state="up"),))
    seen = held(pair)
    assert [row.share.text for row in seen.rows.values()] == ["90%"] and seen.means == ("peak: a link of 100 Gbit/s",)
    lone = replace(sample.tiny({"h1": [1.0]}), values=Values(rows.assign(subject="lo")))
    assert held(known(lone, nics=pair.hosts[0].facts.nics if pair.hosts[0].facts else ())) == Against()
    mixed = tuple(
        replace(
            h, generation=h.name, facts=Facts(**FACTS, work_dir="/w", nics=(Nic(name="e", speed=speed, state="up"),))
        )
        for h, speed in zip(pair.hosts, (25e9, 12.5e9), strict=True)
    )
    seen = held(replace(pair, hosts=mixed))
    assert [row.share.text for row in seen.rows.values()] == ["90%"]
    assert seen.means == ("Peak: the slower host's link",)


def test_linpack_stands_beside_what_the_cores_compute_at_most() -> None:
    one = sample.tiny({"h1": [1.3056e12]})  # of 16 cores x 3.4 GHz x 32 operations: 1.7408 TFLOP/s
    rows = one.values.frame.assign(workload="hpcc", case="all-cores", metric="hpl", unit="FLOP/s")
    cpu = Cpu(vendor="GenuineIntel", model="Xeon", flags=("avx2", "fma", "avx512f"), cores=16, max_hz=3.4e9)
    results = known(replace(one, values=Values(rows)), cpu=cpu)
    assert [row.share.text for row in held(results).rows.values()] == ["75%"]
    (note,) = held(results).means
    assert note == (
        "peak 1.741 TFLOP/s: 16 cores at 3.4 GHz, the highest clock of one, "
        "each with 2 units of 512 bits for a x b + c of doubles"
    )
    for text in everywhere(results):
        assert "peak" in text and "75%" in text


def test_hosts_with_and_without_accelerators_have_no_device_peak_in_common() -> None:
    base = {**FACTS, "work_dir": "/w"}
    plain, gpu = Facts(**base), Facts(**base, gpus=(Gpu(index=0, name="NVIDIA H100 80GB HBM3", vendor="nvidia"),))
    alike = Machines([gpu, gpu]).component("device_memory")
    assert alike and alike.rate == pytest.approx(3.35e12)
    assert Machines([plain, gpu]).component("device_memory") is None, "the plain host measured its processors' memory"


def test_the_latest_reference_with_something_in_common_stands_beside(tmp_path: Path) -> None:
    latency = Bench("lmbench", "lat_syscall-null", "null", "s", "lower", "os")
    old = {(h, b): [v] for h in ("a", "b") for b, v in ((TRIAD, 1e11), (latency, 2e-7))}
    record(tmp_path, "old", {"a": {"gen": "old"}, "b": {"gen": "old"}}, old)
    reference.pin(tmp_path, "old", "gen=old")
    record(tmp_path, "other", {"c": {"gen": "c"}}, {("c", replace(TRIAD, workload="mlc")): [1.0]})
    reference.pin(tmp_path, "other", "gen=c")
    record(tmp_path, "new", {"n": {"gen": "new"}}, {("n", TRIAD): [2e11], ("n", latency): [1e-7]})
    text = run(tmp_path, "report", "new", "--format", "md")
    assert "times old@1" in text and "old@1 is a pinned reference; above 1 is better than it" in text
    assert table_cells(text, "stream all-cores triad")[2] == "2.00"
    assert table_cells(text, "lmbench lat_syscall-null null")[2] == "2.00"  # half as long: above 1 is better
    terminal = run(tmp_path, "report", "new")
    assert "old@1 is a pinned reference" in terminal and re.search(r"200 GB/s +2\.00", terminal)
    reference.pin(tmp_path, "new", "gen=new")  # a host is not compared with itself
    assert "times old@1" in run(tmp_path, "report", "new", "--format", "md")
    damaged = tmp_path / "references" / "old.1.json"
    damaged.write_text(json.dumps({"schema": 99}))
    assert "times old@1" not in run(tmp_path, "report", "new", "--format", "md")


@pytest.mark.parametrize(
    ("workload", "case", "metric", "expected"),
    [
        ("stream", "all-cores", "triad", "memory"),
        ("stream", "4t", "triad", None),
        ("lmbench", "bw_mem-rd-all-cores", "rd", "memory"),
        ("lmbench", "bw_mem-rd-1p", "rd", None),
        ("iperf3", "tcp-8", "bitrate", "link"),
        ("iperf3", "udp", "bitrate", None),
        ("nvbandwidth", "host_to_device_memcpy_ce", "link_bandwidth", "pcie"),
        ("nvbandwidth", "host_to_device_bidirectional_memcpy_ce", "link_bandwidth", None),
        ("nvbandwidth", "device_to_device_memcpy_read_ce", "link_bandwidth", "gpu_link"),
        ("nvbandwidth", "device_to_device_memcpy_read_ce", "bandwidth", "ends"),
        ("rocm_bandwidth_test", "both-ways", "bandwidth", "ends"),
        ("babelstream", "gpu0", "triad", "device_memory"),
        ("babelstream", "cpu", "triad", "memory"),
        ("hpcc", "all-cores", "hpl", "compute"),
        ("hpcc", "2n", "hpl", None),
        ("torch_ops", "basic-2048t-b1/roof/memory", "memory_rate", "device_memory"),
        ("torch_ops", "basic-2048t-b16-gpu0/roof/memory", "memory_rate", "device_memory"),
        ("torch_ops", "basic-2048t-b1-cpu/roof/memory", "memory_rate", None),
        ("torch_ops", "basic-2048t-b1/roof/fp16", "peak", "device_compute"),
        ("torch_ops", "basic-2048t-b1/roof/fp32", "peak", "compute"),
        ("unknown", "x", "y", None),
    ],
)
def test_manifests_say_what_a_figure_is_held_against(
    workload: str, case: str, metric: str, expected: str | None
) -> None:
    peak = declared.peak(workload, case, metric)
    assert (peak.part if peak else None) == expected
