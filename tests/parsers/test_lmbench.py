"""lmbench's parser: whole results files, summaries, and the output of single programs."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from fleetmark.base.errors import ParseError
from fleetmark.base.measurement import Better
from fleetmark.parsers.lmbench import parse
from tests import corpus
from tests.parsers.reading import FIXTURES, cases, find, read, value

US, NS, MB = 1e-6, 1e-9, 1e6
# Keys of the corpus manifest: metric, labels, factor to base units.
KEYS: Mapping[str, tuple[str, Mapping[str, str], float]] = {
    "simple_syscall_us": ("null", {}, US),
    "null_call_us": ("null", {}, US),
    "pipe_latency_us": ("pipe", {}, US),
    "fork_exit_us": ("fork", {}, US),
    "fork_us": ("fork", {}, US),
    "sh_us": ("shell", {}, US),
    "pipe_bw_MBps": ("pipe_bandwidth", {}, MB),
    "af_unix_bw_MBps": ("unix_bandwidth", {}, MB),
    "L1_ns": ("latency", {"level": "L1"}, NS),
    "L2_ns": ("latency", {"level": "L2"}, NS),
    "main_mem_ns": ("latency", {"level": "main"}, NS),
    "rand_mem_ns": ("random_latency", {"level": "main"}, NS),
    "mhz": ("clock", {}, 1e6),
    "stride128_0.00049MB_ns": ("latency", {"stride": "128", "size": "512"}, NS),
    "stride128_256MB_ns": ("latency", {"stride": "128", "size": str(256 << 20)}, NS),
    "rd_512MB_MBps": ("rd", {"size": "512000000"}, MB),
    "wr_512MB_MBps": ("wr", {"size": "512000000"}, MB),
    "rdwr_512MB_MBps": ("rdwr", {"size": "512000000"}, MB),
}


@pytest.mark.parametrize(("path", "row"), corpus.rows("lmbench"))
def test_corpus(path: Path, row: Mapping[str, Any]) -> None:
    parsed = parse(path.read_bytes())
    for key, printed in row["expected"].items():
        if key == "strides":
            assert len({m.labels["stride"] for m in parsed.measurements}) == printed
            continue
        metric, labels, factor = KEYS[key]
        figure = value(parsed, metric, **labels)
        assert figure == (None if printed is None else pytest.approx(printed * factor, rel=1e-12)), key
    assert parsed.invalid is None


def lines_with_results(text: str) -> int:
    """How many figures a results file holds, counted by the look of its lines alone."""
    lines = text.splitlines()
    count = sum(bool(re.fullmatch(r"\d\S* \d\S*(?: MB/sec)?", line)) for line in lines)
    count += sum(bool(re.search(r": \d\S* (?:nanoseconds|microseconds|[KM]B/sec)$", line)) for line in lines)
    count += sum(bool(re.search(r"parallelism: \d", line)) for line in lines)
    count += 2 * sum(bool(re.fullmatch(r"\d+k(?:\t\d+){3}", line)) for line in lines)
    count += 2 * sum(line.startswith("Avg xfer") for line in lines)
    return count + sum(bool(re.match(r"tlb: \d|\[MHZ: \d", line)) for line in lines)


RESULTS = [p for p in corpus.rows("lmbench") if p.marks or p.values[0].name.startswith("raw")]  # marked: no corpus


@pytest.mark.parametrize(("path", "row"), RESULTS)
def test_no_figure_of_a_results_file_is_lost(path: Path, row: Mapping[str, Any]) -> None:
    parsed = parse(path.read_bytes())
    assert len(parsed.measurements) == lines_with_results(path.read_text())
    assert parsed.notes == ()
    assert row["tool_version"] in ("3.0", parsed.version)


def test_results_file() -> None:
    parsed = read("lmbench", "results.txt")
    assert len(parsed.measurements) == lines_with_results((FIXTURES / "lmbench" / "results.txt").read_text())
    assert (parsed.version, parsed.invalid, parsed.notes) == ("3.0-a9", None, ())
    assert value(parsed, "null", case="lat_syscall") == 8.71e-08
    assert value(parsed, "open_close", case="lat_syscall") == 1.207e-06
    assert value(parsed, "select_tcp", fds="250") == 1.02264e-05
    assert value(parsed, "page_fault") == 1.382e-07
    assert value(parsed, "mmap", size=str(1 << 20)) == 1.1e-05
    assert value(parsed, "tcp", case="lat_tcp") == 5.1046e-06
    assert value(parsed, "tcp_connect") == 6.1476458e-03
    assert value(parsed, "tcp_bandwidth", size="512") == 283.21e6
    assert value(parsed, "file_write", case="lmdd") == 2702515e3
    assert value(parsed, "file_read_open2close", size="4096") == 593.42e6
    assert value(parsed, "bcopy_conflict", size=str(1 << 20)) == 11923.98e6
    assert value(parsed, "context_switch", size="0", processes="2") == 1.12e-06
    assert value(parsed, "clock") == 3638e6
    assert find(parsed, "tlb_pages") is not None
    assert {m.better for m in parsed.measurements if m.unit == "B/s"} == {Better.HIGHER}
    assert {m.better for m in parsed.measurements if m.unit == "s"} == {Better.LOWER}


def test_summary_agrees_with_the_results_it_was_made_of() -> None:
    results, summary = read("lmbench", "results.txt"), read("lmbench", "summary.txt")
    assert (summary.version, summary.notes) == ("3.0", ())
    latencies = [
        m for m in summary.measurements if m.case in ("lat_sig", "lat_ctx", "lat_pipe", "lat_tcp", "lat_pagefault")
    ]
    assert len(latencies) == 10
    for m in latencies:
        # cells of four characters cut figures off
        assert m.value == pytest.approx(value(results, m.metric, **m.labels), rel=0.05), m.metric
    assert value(summary, "null_io") == 0.11e-6
    assert value(summary, "context_switch", processes="16", size="16384") == 3.93e-6
    assert value(summary, "context_switch", processes="2", size="65536") is None
    assert value(summary, "frd") == 9886e6
    assert value(summary, "fwr") == 20.6e9
    assert value(summary, "random_latency", level="main") == 6.404e-9
    assert value(summary, "line_size") == 64.0


SUMMARY = """\
Context switching - times in microseconds - smaller is better
-------------------------------------------------------------------------
Host                 OS  2p/0K 2p/16K 2p/64K 8p/16K 8p/64K 16p/16K 16p/64K
                         ctxsw  ctxsw  ctxsw ctxsw  ctxsw   ctxsw   ctxsw
--------- ------------- ------ ------ ------ ------ ------ ------- -------
alpha     Linux 6.1.0-4 1.1200          11.3        11.0K             10.M
beta      Linux 6.1.0-4   13.0   12.7   11.3   14.7   15.4    15.3    16.0
"""


def test_summary_of_several_hosts_with_blank_cells_and_suffixes() -> None:
    parsed = parse(SUMMARY.encode())
    assert value(parsed, "context_switch", processes="2", size="0", host="alpha") == 1.12e-6
    assert value(parsed, "context_switch", processes="2", size="65536", host="alpha") == 11.3e-6
    assert value(parsed, "context_switch", processes="8", size="65536", host="alpha") == 11.0e-3
    assert value(parsed, "context_switch", processes="16", size="65536", host="alpha") == 10.0
    assert value(parsed, "context_switch", processes="16", size="16384", host="beta") == 15.3e-6
    assert len(parsed.measurements) == 4 + 7


def test_summary_row_that_lost_its_spaces_is_left_out() -> None:
    lost = SUMMARY.replace("1.1200          11.3        11.0K             10.M", "1.1200 11.3 11.0K 10.M")
    parsed = parse(lost.encode())
    assert len(parsed.measurements) == 7
    assert parsed.notes == ("line 6: left out, because its cells are not below their headings",)


def test_summary_with_empty_tables_only() -> None:
    with pytest.raises(ParseError, match=r"lmbench line 1: expected a figure in one of the summary's tables"):
        parse(SUMMARY[: SUMMARY.index("alpha")].encode())


def test_lat_mem_rd_curve() -> None:
    parsed = read("lmbench", "lat_mem_rd.txt", "/opt/lmbench/lat_mem_rd", "-N", "1", "1", "64", "512")
    text = (FIXTURES / "lmbench" / "lat_mem_rd.txt").read_text()
    assert cases(parsed) == {"lat_mem_rd"}
    sizes = [int(m.labels["size"]) for m in parsed.measurements if m.labels["stride"] == "512"]
    # lat_mem_rd's own steps: 512, 1024, 2048, 3072, then half a power of two each time
    assert sizes[:8] == [512, 1024, 2048, 3072, 4096, 6144, 8192, 12288]
    assert sizes[-1] == 1 << 20
    last = text.strip().splitlines()[-1].split()[1]
    assert value(parsed, "latency", stride="512", size=str(1 << 20)) == pytest.approx(float(last) * NS)
    assert value(parsed, "random_latency", stride="512", size=str(1 << 20)) is None


def test_lat_mem_rd_in_random_order_is_another_metric() -> None:
    parsed = read("lmbench", "lat_mem_rd_t.txt", "lat_mem_rd", "-t", "-N", "1", "1", "128")
    assert value(parsed, "random_latency", stride="128", size="196608") == 17.043e-9
    assert {m.metric for m in parsed.measurements} == {"random_latency"}


@pytest.mark.parametrize(
    ("command", "case", "metric"),
    [
        (("bw_mem", "-N", "3", "1m", "rd"), "bw_mem", "rd"),
        (("numactl", "-N0", "-m0", "/x/bw_mem", "-P", "16", "-W", "0", "1m", "fwr"), "bw_mem_16p", "fwr"),
        (("bw_mem", "-P1", "1m", "bcopy", "conflict"), "bw_mem", "bcopy_conflict"),
        (("sh", "-c", "cd /tmp && exec '/x/bw_mem' 1m cp >log"), "bw_mem", "cp"),
        (("bw_file_rd", "1m", "open2close", "pages"), "bw_file_rd", "file_read_open2close"),
        (("bw_mmap_rd", "1m", "mmap_only", "pages"), "bw_mmap_rd", "mmap_read"),
    ],
)
def test_rows_of_two_numbers_are_what_the_command_says(command: tuple[str, ...], case: str, metric: str) -> None:
    parsed = read("lmbench", "bw_mem_rd.txt", *command)
    assert value(parsed, metric, case=case, size=str(1 << 20)) == 81189.06e6


@pytest.mark.parametrize(
    ("command", "asks"),
    [
        ((), "a title or the command"),
        (("bw_mem", "1m", "nonsense"), "a title or the command"),
        (("lat_pipe",), "a title or the command"),
        (("sh", "-c", "bw_mem 1m rd; bw_mem 1m wr"), "one lmbench program per command"),
    ],
)
def test_rows_nobody_can_name_are_an_error_that_says_what_is_missing(command: tuple[str, ...], asks: str) -> None:
    with pytest.raises(ParseError) as error:
        read("lmbench", "bw_mem_rd.txt", *command)
    assert str(error.value).startswith(f"lmbench line 1: expected {asks}")
    assert str(error.value).endswith("got '1.05 81189.06'")


def test_commands_echoed_in_the_text_name_its_rows() -> None:
    parsed = read("lmbench", "bw_mem_trace.txt")
    assert value(parsed, "rd", size="524288") == 93672.18e6
    assert value(parsed, "cp", size="524288") == 43784.52e6


@pytest.mark.parametrize(
    ("printed", "size"),
    [
        ("0.000512", 512),
        ("0.001437", 1437),
        ("1.00", 1_000_000),
        ("1.05", 1 << 20),
        ("104.86", 100 << 20),
        ("67.11", 1 << 26),
        ("512.00", 512_000_000),
        ("10.485760", 10 << 20),
    ],
)
def test_sizes_are_the_simplest_that_print_so(printed: str, size: int) -> None:
    parsed = parse(f"rd {printed} 10.00\n".encode())
    assert parsed.measurements[0].labels == {"size": str(size)}


@pytest.mark.parametrize(
    ("name", "command", "metric", "labels", "expected"),
    [
        ("lat_ctx.txt", (), "context_switch", {"size": "0", "processes": "16"}, 1.94e-6),
        ("lat_fs.txt", (), "create", {"size": "1024"}, 4405.0),
        ("lat_fs.txt", (), "delete", {"size": "10240"}, 138895.0),
        ("lat_mmap.txt", ("lat_mmap", "64m", "pages"), "mmap", {"size": str(1 << 26)}, 191e-6),
        ("lat_pagefault.txt", (), "page_fault", {}, 0.0311e-6),
        ("lat_tcp.txt", (), "tcp", {}, 4.7202e-6),
        ("bw_tcp.txt", (), "tcp_bandwidth", {"size": str(10 << 20)}, 4675.72e6),
        ("lat_ops.txt", (), "int64_add", {}, 0.28e-9),  # printed as "uint64 add"
        ("par_mem.txt", ("par_mem", "-L", "64", "-M", "64M"), "load_parallelism", {"size": str(1 << 21)}, 8.88),
        ("stream.txt", (), "stream_copy_bandwidth", {}, 24579.93e6),
        ("lat_usleep.txt", (), "sleep_usleep", {"usecs": "1000"}, 1087e-6),
        ("mhz.txt", (), "clock", {}, 3638e6),
        ("line.txt", ("line", "-M", "16M"), "line_size", {}, 64.0),
        (
            "bw_mem_conflict.txt",
            ("bw_mem", "100m", "bcopy", "conflict"),
            "bcopy_conflict",
            {"size": "104857600"},
            6383.25e6,
        ),
    ],
)
def test_single_programs(
    name: str, command: tuple[str, ...], metric: str, labels: dict[str, str], expected: float
) -> None:
    assert value(read("lmbench", name, *command), metric, **labels) == pytest.approx(expected, rel=1e-12)


def test_lat_proc_without_its_program_is_invalid() -> None:
    parsed = read("lmbench", "lat_proc_shell_without_hello.txt")
    assert parsed.invalid == "lat_proc found no program to start (lmbench's hello)"
    assert value(parsed, "shell") is not None


@pytest.mark.parametrize(
    ("line", "metric", "labels"),
    [
        ("TCP latency using 10.1.2.3: 30.5 microseconds", "tcp", {"server": "10.1.2.3"}),
        ("TCP latency using localhost: 30.5 microseconds", "tcp", {}),
        ("UDP latency using 127.0.0.1: 30.5 microseconds", "udp", {}),
        ("RPC/udp latency using node7: 30.5 microseconds", "rpc_udp", {"server": "node7"}),
        ("TCP/IP connection cost to ::1: 30.5 microseconds", "tcp_connect", {}),
        ("socket: Connection refusedPipe latency: 30.5 microseconds", "pipe", {}),
        ("错误：无此文件 Simple stat: 30.5 microseconds", "stat", {}),
        ("Static Process fork+exit: 30.5 microseconds", "fork", {}),
        ("Null syscall: 30.5 microseconds", "write", {}),
    ],
)
def test_lines_that_say_what_they_are(line: str, metric: str, labels: dict[str, str]) -> None:
    parsed = parse(line.encode())
    assert [(m.metric, m.value, dict(m.labels)) for m in parsed.measurements] == [(metric, 30.5e-6, labels)]


def test_errors_between_title_and_rows_do_not_end_the_table() -> None:
    parsed = parse(b'"read bandwidth\nbind: Address in use\n0.000512 10.00\n\n0.001024 20.00\n')
    assert value(parsed, "file_read", size="512") == 10e6
    assert len(parsed.measurements) == 1
    assert parsed.notes == ("line 5: 1 rows of two numbers with no known title above, left out",)


def test_rows_under_a_title_nobody_knows_are_not_given_to_the_table_before() -> None:
    parsed = parse(b'"read bandwidth\n0.000512 10.00\n"quantum bandwidth\n0.000512 99.00\n')
    assert [m.value for m in parsed.measurements] == [10e6]
    assert len(parsed.notes) == 1


def test_copies_at_once_stand_in_the_case() -> None:
    parsed = parse(b"[lmbench3.0 results for Linux]\n[SYNC_MAX: 8]\nPipe latency: 2.5 microseconds\n")
    assert cases(parsed) == {"lat_pipe_8p"}


def test_several_hosts_in_one_text_carry_their_names() -> None:
    run = "[lmbench3.0 results for Linux]\n[HOSTNAME: {}]\nPipe latency: {} microseconds\n"
    parsed = parse((run.format("a", 2.5) + run.format("b", 3.5)).encode())
    assert value(parsed, "pipe", host="a") == 2.5e-6
    assert value(parsed, "pipe", host="b") == 3.5e-6


def test_repeats_keep_their_names_and_are_noted() -> None:
    parsed = parse(b"Pipe latency: 2.5 microseconds\n" * 3)
    assert Counter(m.metric for m in parsed.measurements) == {"pipe": 3}
    assert parsed.notes == ("up to 3 runs in one text, which count as repeats",)


def test_minus_one_of_lat_fs_is_absent() -> None:
    parsed = parse(b"0k\t4\t124\t1425\n1k\t-1\t-1\t-1\n")
    assert [(m.metric, m.value) for m in parsed.measurements] == [("create", 124.0), ("delete", 1425.0)]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"", "lmbench: expected results (lmbench's programs print them on standard error), got 'no output'"),
        (
            b"[lmbench3.0 results for Linux]\n[MHZ: 3034 MHz, 0.3296 nanosec clock]\n",
            "lmbench line 2: expected a result",
        ),
    ],
)
def test_text_without_results(text: bytes, message: str) -> None:
    with pytest.raises(ParseError) as error:
        parse(text)
    assert str(error.value).startswith(message)


def test_a_last_number_that_lost_its_digits_is_cut() -> None:
    raw = (FIXTURES / "lmbench" / "lat_mem_rd.txt").read_bytes()
    shorter = raw.rstrip()[:-2]
    assert shorter.endswith(b" 4.8")
    parsed = parse(shorter)
    assert parsed.invalid == "the output is cut: it ends inside line 45"
    assert parse(raw[:-1]).invalid == "the output is cut: no end of the table of stride 512"
    # the largest size that was asked for is there: nothing is lost but a blank line
    assert parse(raw[:-1], ["lat_mem_rd", "-N", "1", "1", "64", "512"]).invalid is None


@pytest.mark.parametrize(
    ("name", "lines", "command", "missing"),
    [
        ("lat_ctx.txt", 3, "lat_ctx -s 0 2 16", "no row of 16 processes"),
        ("lat_fs.txt", 3, "lat_fs DIR", "no line of 10k (lat_fs)"),
        ("lat_ops.txt", 17, "lat_ops", "no line of double bogomflops (lat_ops)"),
        ("lat_mem_rd.txt", 23, "lat_mem_rd -N 1 1 64 512", "no table of 1 of 2 strides"),
        ("par_mem.txt", 15, "par_mem -L 64 -M 64M", "no row of the largest size under 67108864 bytes"),
        ("stream.txt", 7, "stream -M 64M", "no line of STREAM triad bandwidth"),
        ("bw_mem_trace.txt", 5, "", "no figure of bw_mem -N 1 512k cp"),
        ("results.txt", 438, "", "no line with the time at its end"),
        ("summary.txt", 88, "", "no table of memory latencies with a row of each host"),
    ],
)
def test_whole_lines_that_are_missing_at_the_end(name: str, lines: int, command: str, missing: str) -> None:
    raw = (FIXTURES / "lmbench" / name).read_bytes()
    assert parse(raw, command.split()).invalid is None
    cut = b"".join(raw.splitlines(keepends=True)[:lines])
    assert parse(cut, command.split()).invalid == f"the output is cut: {missing}"


def test_a_decimal_comma_is_no_figure() -> None:
    with pytest.raises(ParseError):
        parse(b"integer mul parallelism: 2,78\n")
    assert parse(b"integer mul parallelism: 2.78\n").measurements[0].value == 2.78


def test_what_the_programs_say_instead_of_results_is_passed_on() -> None:
    with pytest.raises(ParseError, match=r"line 1: .*, got 'malloc: Cannot allocate memory'"):
        read("lmbench", "bw_mem_no_memory.txt", "bw_mem", "900g", "rd")
    with pytest.raises(ParseError, match=r"line 1: .*, got 'Usage: bw_mem "):
        read("lmbench", "bw_mem_usage.txt", "bw_mem", "1m", "foo")
