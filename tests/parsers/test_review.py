"""Outputs that a review of the parsers found misread: each as its tool prints it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from fleetmark import parsers
from fleetmark.base.errors import ParseError
from tests.corpus import ROOT as CORPUS

VLLM = b"""============ Serving Benchmark Result ============
Successful requests:                     100
Request throughput (req/s):              3.10
Output token throughput (tok/s):         793.40
Median TTFT (ms):                        27.44 <====
P99 TTFT (ms):                           41.02
Median TPOT (ms):                        9.11
==================================================
"""


def test_a_mark_behind_a_figure_does_not_hide_it() -> None:
    parsed = parsers.parse("vllm_bench", VLLM)
    value = {m.metric: m.value for m in parsed.measurements}
    assert value["ttft_p50"] == pytest.approx(0.02744) and value["ttft_p99"] == pytest.approx(0.04102)


IPERF3 = b"""Connecting to host 10.0.0.2, port 5201
[  5] local 10.0.0.1 port 41002 connected to 10.0.0.2 port 5201
[ ID] Interval           Transfer     Bitrate         Retr
[  5]   0.00-10.00  sec  10.9 GBytes  9.41 Gbits/sec    3             sender
[  5]   0.00-10.00  sec  10.9 GBytes  9.40 Gbits/sec                  receiver

iperf Done.
"""


@pytest.mark.parametrize("first", [0, 2])
def test_a_summary_without_intervals_is_whole(first: int) -> None:
    parsed = parsers.parse("iperf3", b"\n".join(IPERF3.split(b"\n")[first:]))
    assert parsed.invalid is None
    assert {m.metric: m.value for m in parsed.measurements}["bitrate"] == pytest.approx(9.40e9 / 8)


@pytest.mark.skipif(not CORPUS.is_dir(), reason="no corpus")
@pytest.mark.parametrize("indent", [b"", b"  ", b"\t"])
def test_nvbandwidth_is_read_with_any_indentation_and_its_sum_is_kept(indent: bytes) -> None:
    raw = (CORPUS / "nvbandwidth" / "gh200_text_v0.6.log").read_bytes()
    shifted = b"\n".join(indent + line.strip() for line in raw.split(b"\n"))
    plain, parsed = (parsers.parse("nvbandwidth", text) for text in (raw, shifted))
    assert parsed.measurements == plain.measurements and parsed.invalid is None
    totals = {m.case: m.value for m in parsed.measurements if m.metric == "sum_bandwidth"}
    assert totals["host_to_device_memcpy_ce"] == pytest.approx(1985.60e9)


STRESS = b"""stress-ng: metrc: [1] cpu             1890530     20.00   1918.89      0.07     94526.14         985.18
stress-ng: metrc: [1] vm               190530     20.00     18.89      0.07       526.14         985.18
stress-ng: info:  [1] skipped: 0
stress-ng: info:  [1] passed: 98: cpu (96) vm (2)
stress-ng: info:  [1] failed: 0
stress-ng: info:  [1] metrics untrustworthy: 2: vm (2)
stress-ng: info:  [1] successful run completed in 20.02 secs
"""


def test_untrustworthy_rates_are_left_out_and_fail_nothing() -> None:
    parsed = parsers.parse("stress", STRESS)
    assert parsed.invalid is None
    assert parsed.notes == ("stress-ng calls its rates of vm untrustworthy: they are left out",)
    seen = {(m.metric, m.labels["stressor"]): m.value for m in parsed.measurements}
    assert seen == {("bogo_ops_per_second", "cpu"): 94526.14, ("instances", "cpu"): 96, ("instances", "vm"): 2}


@pytest.mark.skipif(not CORPUS.is_dir(), reason="no corpus")
@pytest.mark.parametrize(("rate", "is_behind"), [(1000.0, True), (0.001, False)])
def test_guidellm_says_where_the_asked_rate_was_not_kept(rate: float, is_behind: bool) -> None:
    report = json.loads((CORPUS / "guidellm" / "here_0.8.1.json").read_text())
    report["benchmarks"][0]["config"]["strategy"] = {"type_": "constant", "rate": rate}
    parsed = parsers.parse("guidellm", json.dumps(report).encode())
    assert {m.value for m in parsed.measurements if m.metric == "offered_requests_per_second"} == {rate}
    assert bool(parsed.notes) is is_behind
    assert not is_behind or "requests/s were answered of 1e+03 requested" in parsed.notes[0]


TESTPMD = b"""EAL: Detected CPU lcores: 16
EAL: No free 2048 kB hugepages reported on node 0
EAL: FATAL: Cannot get hugepage information.
EAL: Cannot get hugepage information.
EAL: Error - exiting with code: 1
  Cause: Cannot init EAL: Permission denied
"""


def test_testpmd_names_the_first_fault_and_the_cause() -> None:
    with pytest.raises(ParseError) as refused:
        parsers.parse("dpdk_testpmd", TESTPMD)
    assert "EAL: FATAL: Cannot get hugepage information.; Cannot init EAL: Permission denied" in str(refused.value)


def test_sources_that_are_not_linux_need_no_flex(tmp_path: Path) -> None:
    import hashlib

    from fleetmark.campaign.resolve import Resolved, resolve
    from fleetmark.workloads import load
    from tests.schedules import facts

    for name, is_enough in (("redis-8.tar", True), ("linux-6.12.tar", False)):
        archive = tmp_path / name
        archive.write_bytes(b"x")
        source = {"source": str(archive), "source_sha256": hashlib.sha256(b"x").hexdigest()}
        resolved = resolve(
            load("kernel_build"),
            source,
            facts(tools={"make": "/usr/bin/make", "gcc": "/usr/bin/gcc"}, work_free=1 << 40),
            "c1",
        )
        assert isinstance(resolved, Resolved) is is_enough
