"""Real output cut anywhere is refused, or invalid, or has lost nothing: no figure goes missing in silence.

Where the text alone does not show it (no end marker, no expected length) the file is listed in UNSEEN,
with the lines behind which a cut goes unseen and the reason. With the command that made it, fewer of them are left.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests import corpus
from tests.parsers.reading import FIXTURES
from tests.parsers.truncation import cuts, lost_figures

TOOLS = (
    *("fio", "iperf2", "iperf3", "lmbench", "mlc", "selftest", "stream"),
    *(
        "openssl_speed",
        "redis_benchmark",
        "nginx_wrk",
        "pgbench",
        "hpcc",
        "hpl",
        "hpcg",
        "ucx_perftest",
        "qperf",
        "stress",
        "kernel_build",
        "perftest",
        "nvbandwidth",
        "dpdk_testpmd",
        "llm_serve",
        "vllm_bench",
        "sglang_bench",
        "guidellm",
        "aiperf",
        "llama_bench",
        "trtllm_bench",
        "inferencex",
        "megatron_lm",
        "deepspeed",
        "torchtitan",
        "maxtext",
        "training_recipe",
        "infer_engines",
    ),
)
_MOST_CUTS = 30  # of a JSON document, in which one place is like another

COMMANDS = {
    "iperf2/2.0.12_enhanced_overflow.txt": "iperf -c 127.0.0.1 -t 2 -i 1 -e",
    "iperf2/2.0.12_tcp_2_intervals.txt": "iperf -c 127.0.0.1 -t 2 -i 1 -P 2",
    "iperf2/2.0.12_tcp_2_sum.csv": "iperf -c 127.0.0.1 -t 1 -P 2 -y C",
    "iperf2/2.1.8_intervals.csv": "iperf -c 127.0.0.1 -t 2 -i 1 -y C",
    "iperf2/2.1.8_server_killed.txt": "iperf -c 127.0.0.1 -t 9 -i 1",
    "iperf2/2.1.8_tcp_2_no_sum.csv": "iperf -c 127.0.0.1 -t 1 -P 2 -y C",
    "iperf2/2.2.1_udp_2.csv": "iperf -c 127.0.0.1 -t 1 -u -b 50M -P 2 -y C",
    "iperf2/tcp_p2_csv.txt": "iperf -c 127.0.0.1 -t 2 -P 2 -y C",
    "lmbench/bw_mem_rd.txt": "bw_mem -N 3 1m rd",
    "lmbench/bw_mem_conflict.txt": "bw_mem 100m bcopy conflict",
    "lmbench/lat_ctx.txt": "lat_ctx -s 0 2 16",
    "lmbench/lat_mem_rd.txt": "lat_mem_rd -N 1 1 64 512",
    "lmbench/lat_mem_rd_t.txt": "lat_mem_rd -t -N 1 1 128",
    "lmbench/lat_mem_rd_strides_128_to_1024.txt": "lat_mem_rd 4096 128 256 512 1024",
    "lmbench/lat_mmap.txt": "lat_mmap 64m FILE",
    "lmbench/line.txt": "line -M 16M",
    "lmbench/par_mem.txt": "par_mem -L 64 -M 64M",
    "stream/official_c_5.10.txt": "./stream",
    "mlc/v3.11_at_odds.txt": "./mlc --latency_matrix",
    "qperf/0.4.11_tcp_lat.txt": "qperf -lp 7066 h2 tcp_lat conf",
    "qperf/0.4.11_udp_bw_verbose.txt": "qperf -lp 7066 -v h2 udp_bw conf",
    "qperf/tcp_udp_conf_0.4.11.txt": "qperf -v h2 tcp_bw tcp_lat udp_lat conf",
}


@dataclass(frozen=True, slots=True)
class Unseen:
    """Lines behind which a cut of one file goes unseen, and why; ``inside``: also within the next of them."""

    lines: frozenset[int]
    reason: str
    inside: bool = False


def unseen(*lines: int | range, reason: str, inside: bool = False) -> Unseen:
    return Unseen(frozenset(n for x in lines for n in ([x] if isinstance(x, int) else x)), reason, inside)


BETWEEN = "several outputs in one file: nothing says how many, and the cut falls between two"
SERVER = "a server's log may end after any test"
INTERVAL = "the first interval of -i looks like the whole test; -t of the command tells them apart"
NO_COUNT = "comma-separated rows do not say how many streams there are; -P of the command does"
MEMORY_NODES = "a node without cores (CXL, HBM) has a column and no row: the rows of a matrix cannot be counted"
SNAPSHOTS = "a report of --status-interval is as whole as the last one"
SUM_ROW = "iperf 2.0 and 2.2 print a row that sums the streams, 2.1 does not"
STRIDES = "nothing says how many strides were asked for; the command does"
REPORT = "whether a UDP client's rows are followed by its server's report or a sum depends on the version of iperf"
CONF = "nothing says what follows; Fleetmark's command ends with the test conf"
TESTS = "the CSV does not say how many tests there are; Fleetmark's driver marks the end"
WHOLE_TESTS = (
    "the text form does not say which tests were asked for; the command does, and Fleetmark reads the JSON form"
)
POINTS = "a JSON object a line: nothing says how many there are"
UNSEEN = {
    "vllm_bench/sc_vllm_smol_b200.jsonl": unseen(range(1, 60), reason=POINTS),
    "sglang_bench/schema.jsonl": unseen(1, reason=POINTS),
    "llama_bench/b200x2_jsonl.jsonl": unseen(range(1, 22), reason=POINTS),
    "llama_bench/cpu_only_azure_a8m.jsonl": unseen(1, 2, reason=POINTS),
    "fio/3.33_status_interval.json": unseen(270, 540, reason=SNAPSHOTS),
    "fio/3.33_status_interval.txt": unseen(range(29, 34), range(57, 63), reason=SNAPSHOTS, inside=True),
    "fio/3.33_terse_v3.txt": unseen(2, reason="terse lines do not say how many jobs there are"),
    "iperf2/2.0.12_enhanced_overflow.txt": unseen(8, reason=INTERVAL),
    "iperf2/2.0.12_tcp_2_intervals.txt": unseen(10, reason=INTERVAL),
    "iperf2/2.1.8_intervals.csv": unseen(1, reason=INTERVAL),
    "iperf2/2.0.12_tcp_2_sum.csv": unseen(1, 2, reason=NO_COUNT),
    "iperf2/2.0.12_tcp_2_sum.csv with its command": unseen(2, reason=SUM_ROW),
    "iperf2/2.1.8_tcp_2_no_sum.csv": unseen(1, reason=NO_COUNT),
    "iperf2/tcp_p2_csv.txt": unseen(1, reason=NO_COUNT),
    "iperf2/2.2.1_udp_2.csv": unseen(1, 2, reason=NO_COUNT),
    "iperf2/2.2.1_udp_2.csv with its command": unseen(2, reason=SUM_ROW),
    "iperf2/2.0.12_udp.csv": unseen(1, reason=REPORT),
    "iperf2/2.2.1_server_udp_log.txt": unseen(7, 14, 17, 20, 21, 24, reason=SERVER),
    "iperf3/3.12_server_log.txt": unseen(range(10, 14), range(21, 26), reason=SERVER),
    "lmbench/bw_mem_trace.txt": unseen(3, 4, reason=BETWEEN),
    "lmbench/bw_mem_h100_host_208p.txt": unseen(range(1, 33), reason=BETWEEN),
    "lmbench/lat_ctx.txt": unseen(3, reason="its table does not say how many rows it has; the command does"),
    "lmbench/lat_mem_rd.txt": unseen(23, reason=STRIDES),
    "lmbench/lat_mem_rd_strides_128_to_1024.txt": unseen(37, 74, 111, reason=STRIDES),
    "mlc/v3.10_idle_sweep_noroot.txt": unseen(7, 8, 15, 16, 23, 24, reason=BETWEEN),
    "mlc/v3.11b_idle_latency_runs_only.txt": unseen(range(6, 9), range(13, 16), range(20, 23), reason=BETWEEN),
    "mlc/v3.11b_options.txt": unseen(11, 22, 32, 43, 55, 60, 61, reason=BETWEEN),
    "mlc/v3.7_modes.txt": unseen(
        *(range(9, 13), range(23, 27), range(40, 43), range(57, 60), range(64, 67), range(78, 81)),
        reason=f"{BETWEEN}; {MEMORY_NODES}",
    ),
    "mlc/v3.9a_drive_and_verbose.txt": unseen(8, 9, 20, 21, 25, 26, 30, 31, reason=f"{BETWEEN}; {MEMORY_NODES}"),
    "mlc/v3.11_at_odds.txt": unseen(9, reason=MEMORY_NODES),
    "mlc/v3.11_at_odds.txt with its command": unseen(9, reason=MEMORY_NODES),
    "mlc/v3.9a_every_core.txt": unseen(
        8, 9, 10, reason="with -a there is a row of each core, and nothing says how many"
    ),
    "nvbandwidth/gh200_text_v0.6.log": unseen(
        *(16, 17, 23, 24, 30, 31, range(37, 43), 48, 49, 55, 56, 62, 63, range(69, 75), 80, 81, range(87, 93)),
        *(98, 99, 105, 106, 112, 113, range(119, 125)),
        reason=WHOLE_TESTS,
    ),
    "nvbandwidth/two_tests_v0.6.txt": unseen(16, 17, 18, reason=WHOLE_TESTS),
    "qperf/0.4.11_udp_bw_verbose.txt": unseen(2, 3, reason=CONF),
    "qperf/tcp_udp_conf_0.4.11.txt": unseen(range(2, 9), range(10, 15), 16, reason=CONF),
    "redis_benchmark/7.0_three_tests.csv": unseen(2, 3, reason=TESTS),
    "redis_benchmark/csv_7.0.15.csv": unseen(2, reason=TESTS),
    "redis_benchmark/csv_pipelined16_7.0.15.csv": unseen(2, reason=TESTS),
    "stream/fleetmark_kernels_sweep.txt": unseen(17, 18, 19, reason=BETWEEN, inside=True),
}


def files(tool: str) -> Iterator[Path]:
    yield from (p for p in sorted((FIXTURES / tool).glob("*")) if p.suffix != ".md")
    if (corpus.ROOT / "MANIFEST.jsonl").exists():
        yield from (p.values[0] for p in corpus.rows(tool))


def places(raw: bytes) -> list[int]:
    """Where to cut: fewer places of JSON, whose reading takes long, but the end of every document among them."""
    if b"{\n" not in raw:
        return cuts(raw, inside=40, tail=120)
    some = cuts(raw, inside=20, tail=10)
    ends = {match.end() for match in re.finditer(rb"^\}\n", raw, re.MULTILINE)} - {len(raw)}
    return sorted({*some[:: max(len(some) // _MOST_CUTS, 1)], *some[-10:], *ends})


CASES = [
    pytest.param(tool, path, command, id=f"{tool}/{path.name}{' with its command' * bool(command)}")
    for tool in TOOLS
    for path in files(tool)
    for command in dict.fromkeys(((), tuple(COMMANDS.get(f"{tool}/{path.name}", "").split())))
]


@pytest.mark.parametrize(("tool", "path", "command"), CASES)
def test_no_cut_loses_a_figure_in_silence(tool: str, path: Path, command: Sequence[str]) -> None:
    raw = path.read_bytes()
    losses = lost_figures(tool, raw, command, places(raw))
    key = f"{tool}/{path.name}" + (" with its command" if command else "")
    entry = UNSEEN.get(key)
    if entry is None:
        assert not losses, "\n".join(map(str, losses[:5]))
        return
    rest = [loss for loss in losses if loss.line not in entry.lines or not (loss.at_line_end or entry.inside)]
    assert not rest, "\n".join(map(str, rest[:5]))
    losing = {loss.line for loss in losses}
    assert entry.lines <= losing, f"{entry.reason}: no longer so of lines {sorted(entry.lines - losing)}"


def test_a_self_tests_line() -> None:
    raw = b"36512.34 70011.02\n"
    assert not lost_figures("selftest", raw, sizes=range(len(raw)))


def test_the_helper_sees_a_loss() -> None:
    """What the harness is worth: a text whose second half nothing announces is reported, with the line."""
    raw = b"Simple read: 0.1197 microseconds\nSimple stat: 0.5875 microseconds\n"
    (loss,) = lost_figures("lmbench", raw)
    assert (loss.line, loss.at_line_end, loss.size) == (1, True, raw.index(b"\n") + 1)
    assert str(loss).startswith("cut after line 1 (byte 33): 1 of 2 figures lost, 0 new or changed")
