"""iperf 2: the corpus and outputs of three versions, held against figures read from the raw text by eye."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from fleetmark import parsers
from fleetmark.base.errors import ParseError
from fleetmark.base.measurement import Better, Parsed
from tests import corpus
from tests.parsers.reading import FIXTURES, cases, find, identities, read, value, values

GI, MI = 2.0**30, 2.0**20
KEYS = {
    "SUM_Gbps": ("bitrate", "host", 8e-9),
    "stream1_Gbps": ("bitrate", "stream-1", 8e-9),
    "stream2_Gbps": ("bitrate", "stream-2", 8e-9),
    "row1_bps": ("bitrate", "stream-1", 8.0),
    "row2_bps": ("bitrate", "stream-2", 8.0),
    "server_Mbps": ("bitrate", "host", 8e-6),
    "jitter_ms": ("jitter", "host", 1e3),
    "lost": ("lost_packets", "host", 1.0),
    "total": ("packets", "host", 1.0),
}


def fixture(name: str) -> bytes:
    return (FIXTURES / "iperf2" / name).read_bytes()


def looked_up(parsed: Parsed, key: str) -> float | None:
    """The parsed figure for a manifest key, in the key's unit."""
    if key == "rows":
        return float(len({m.subject for m in parsed.measurements}))
    metric, subject, unit = KEYS[key]
    result = value(parsed, metric, subject=subject)
    return None if result is None else result * unit


@pytest.mark.parametrize(("path", "row"), corpus.rows("iperf2"))
def test_corpus(path: Path, row: dict[str, Any]) -> None:
    parsed = parsers.parse("iperf2", path.read_bytes())
    for key, figure in row["expected"].items():
        if key != "sent":  # a count beside the server's; its rate is sent_bitrate
            assert looked_up(parsed, key) == pytest.approx(figure, rel=1e-12), key
    assert parsed.invalid is None
    assert len(set(identities(parsed))) == len(parsed.measurements)


@pytest.mark.parametrize(
    ("name", "case", "expected"),
    [
        ("2.1.8_tcp.txt", "tcp", {"bitrate": 10.8e9 / 8}),
        ("2.1.8_reverse.txt", "tcp-reverse", {"bitrate": 19.2e9 / 8}),
        ("2.1.8_intervals.csv", "tcp", {"bitrate": 9637862190 / 8}),  # not one of the seconds
        ("2.2.1_format_M.txt", "tcp", {"bitrate": 2052 * MI}),
        ("2.2.1_enhanced.csv", "tcp", {"bitrate": 15280575390 / 8, "retransmits": 0}),
        ("2.1.8_sum_only.txt", "tcp-3", {"bitrate": 6.37e9 / 8}),
        ("2.0.12_tcp_2_intervals.txt", "tcp-2", {"bitrate": 12.5e9 / 8}),
        ("2.0.12_tcp_2_sum.csv", "tcp-2", {"bitrate": 29156701455 / 8}),
        ("2.1.8_udp.txt", "udp", {"bitrate": 51.8e6 / 8, "sent_bitrate": 52.2e6 / 8, "loss": 73 / 8902}),
        ("2.1.8_udp.txt", "udp", {"jitter": 0.002e-3, "packets": 8902, "lost_packets": 73}),
        ("2.1.8_server_udp.csv", "udp", {"bitrate": 19475720 / 8, "jitter": 0.004e-3, "loss": 43 / 1748}),
        # what a client sent is not a loss of 0, though the sum prints one
        ("2.2.1_udp_2.csv", "udp-2", {"sent_bitrate": 104740117 / 8, "bitrate": None, "loss": None, "packets": None}),
        ("2.0.12_tradeoff.txt", "tcp-tradeoff", {"bitrate": 14.0e9 / 8, "reverse_bitrate": 5.69e9 / 8}),
        ("2.0.12_dualtest_2.txt", "tcp-2-bidir", {"bitrate": (2.10e9 + 2.42e9) / 8, "reverse_bitrate": 6.26e9 / 8}),
        ("2.1.8_full_duplex_2_enhanced.txt", "tcp-2-bidir", {"bitrate": 13.83e9 / 8, "reverse_bitrate": 10.04e9 / 8}),
        ("2.1.8_full_duplex_2_enhanced.txt", "tcp-2-bidir", {"retransmits": 35 + 13, "reverse_retransmits": None}),
        ("2.1.8_bounceback.txt", "tcp-bounceback", {"rtt_mean": 52e-6, "rtt_max": 458e-6, "bitrate": None}),
        # 2.0.12 overflows: a negative rate beside a sound transfer
        ("2.0.12_enhanced_overflow.txt", "tcp", {"bitrate": 2.69 * GI / 2.02, "retransmits": 16}),
        # its server counts idle seconds in
        ("2.0.12_udp.csv", "udp", {"sent_bitrate": 52425624 / 8, "bitrate": 52425624 / 8, "loss": 0}),
        ("2.0.12_udp_2_idle_server.txt", "udp-2", {"bitrate": 104.8e6 / 8, "sent_bitrate": 105e6 / 8, "packets": 8937}),
    ],
)
def test_figures_of_each_version(name: str, case: str, expected: dict[str, float | None]) -> None:
    parsed = read("iperf2", name)
    assert cases(parsed) == {case}
    for metric, figure in expected.items():
        assert value(parsed, metric) == (None if figure is None else pytest.approx(figure, rel=1e-12)), metric
    assert parsed.invalid is None
    assert len(set(identities(parsed))) == len(parsed.measurements)


def test_each_stream_of_several() -> None:
    parsed = read("iperf2", "2.1.8_full_duplex_2_enhanced.txt")
    assert value(parsed, "bitrate", subject="stream-2") == 6.90e9 / 8
    assert value(parsed, "reverse_bitrate", subject="stream-2") == 5.48e9 / 8
    assert value(parsed, "retransmits", subject="stream-1") == 35
    assert value(read("iperf2", "2.0.12_tcp_2_intervals.txt"), "bitrate", subject="stream-3") == 7.26e9 / 8


def test_rows_without_a_time_are_summed_only_when_the_command_says_they_ran_together() -> None:
    name, rates = "2.1.8_tcp_2_no_sum.csv", (18903114485 / 8, 20097422560 / 8)
    unknown = read("iperf2", name)
    assert value(unknown, "bitrate") is None
    assert [value(unknown, "bitrate", subject=f"stream-{n}") for n in (1, 2)] == list(rates)
    assert any("in parallel" in note for note in unknown.notes)
    for argv in (("-P", "2"), ("-P2",), ("--parallel=2",), ("--parallel", "2")):
        together = read("iperf2", name, "iperf", "-c", "h2", *argv, "-y", "C")
        assert value(together, "bitrate") == sum(rates)
    assert value(read("iperf2", name, "iperf", "-P", "3"), "bitrate") is None


def test_times_tell_one_after_another_from_side_by_side() -> None:
    rows = "{}31200,10.0.0.1,50{},10.0.0.2,5001,{},0.0-10.0,1250000000,1000000000\n"
    together = "".join(rows.format("202601011", n, n) for n in (3, 4)).encode()
    assert value(parsers.parse("iperf2", together), "bitrate") == 2 * 125e6
    later = (rows.format("202601011", 3, 3) + rows.format("202601012", 4, 4)).encode()
    parsed = parsers.parse("iperf2", later)
    assert values(parsed, "bitrate", case="tcp") == [125e6, 125e6]


def test_streams_of_unlike_length_are_not_summed() -> None:
    raw = fixture("2.0.12_dualtest_2.txt").replace(
        b"[  7]  0.0- 1.0 sec   396 MBytes", b"[  7]  0.0- 9.0 sec  3564 MBytes"
    )
    parsed = parsers.parse("iperf2", raw)
    assert value(parsed, "reverse_bitrate") is None
    assert value(parsed, "reverse_bitrate", subject="stream-6") == 3.00e9 / 8


def test_a_server_whose_sums_run_on() -> None:
    parsed = read("iperf2", "2.2.1_server_udp_log.txt")
    assert values(parsed, "bitrate", case="udp")[0] == 52.0e6 / 8
    assert values(parsed, "bitrate", case="udp-2")[0] == (51.6e6 + 51.6e6) / 8  # not the 68.8 of three tests
    assert values(parsed, "loss", case="udp-2")[0] == (76 + 75) / (4460 + 4460)
    assert any("earlier test" in note for note in parsed.notes)


def test_a_sum_that_disagrees_with_its_streams() -> None:
    raw = fixture("2.0.12_tcp_2_intervals.txt").replace(b"3.00 GBytes  12.5 Gbits", b"6.00 GBytes  25.0 Gbits")
    parsed = parsers.parse("iperf2", raw)
    assert value(parsed, "bitrate") == (5.42e9 + 7.26e9) / 8
    assert any("took its streams'" in note for note in parsed.notes)


@pytest.mark.parametrize(
    ("name", "metric", "rate", "reason"),
    [
        ("2.1.8_server_killed.txt", "bitrate", 21.8e9, "tcp write failed: Connection reset by peer"),
        ("2.1.8_dualtest_bind_failed.txt", "bitrate", 3.53e9, "listener bind failed: Address already in use"),
        ("2.1.8_udp_refused.txt", "sent_bitrate", 1.06e6, "read failed: Connection refused"),
    ],
)
def test_failures_keep_what_is_sound(name: str, metric: str, rate: float, reason: str) -> None:
    parsed = read("iperf2", name)
    assert value(parsed, metric) == rate / 8
    assert parsed.invalid == reason


def test_datagrams_that_nobody_confirms_are_no_throughput() -> None:
    assert value(read("iperf2", "2.1.8_udp_refused.txt"), "bitrate") is None


def test_cut_before_the_row_over_the_whole_time() -> None:
    raw = fixture("2.1.8_server_killed.txt")
    parsed = parsers.parse("iperf2", raw[: raw.index(b"tcp write failed")])
    assert value(parsed, "bitrate") == pytest.approx((21.6e9 + 22.0e9) / 2 / 8)
    assert parsed.invalid == "the output is cut: the row for the whole test is missing"


def test_the_first_interval_is_not_the_whole_test() -> None:
    raw = fixture("2.0.12_tcp_2_intervals.txt")
    raw = raw[: raw.index(b"[  3]  1.0- 2.0")]
    command = ("iperf", "-c", "h", "-P", "2", "-i", "1", "-t", "2")
    parsed = parsers.parse("iperf2", raw, command)
    assert parsed.invalid == "the output is cut: its rows end at 1 s of 2 s requested"
    usual = parsers.parse("iperf2", raw, ("taskset", "-c", "0", "/usr/bin/iperf", "-c", "h", "-P", "2"))
    assert usual.invalid == "the output is cut: its rows end at 1 s of 10 s requested"
    assert parsers.parse("iperf2", raw, ("iperf", "-c", "h", "-P", "2", "-t", "1")).invalid is None
    raw = fixture("2.1.8_server_killed.txt")
    parsed = parsers.parse("iperf2", raw[: raw.index(b"[  1] 1.0000-2.0000")])
    assert parsed.invalid == "the output is cut: its only row ends at 1.0000 s, as the first of several rows would"


def test_fewer_streams_than_asked_for_is_cut() -> None:
    raw = fixture("2.1.8_tcp_2_no_sum.csv")
    parsed = parsers.parse("iperf2", raw, ("iperf", "-c", "h", "-P", "3", "-t", "1", "-y", "C"))
    assert parsed.invalid == "the output is cut: 3 streams were requested, 2 have rows"


def test_a_client_of_datagrams_without_its_servers_report_is_cut() -> None:
    raw = fixture("2.1.8_udp.txt")
    parsed = parsers.parse("iperf2", raw[: raw.index(b"[  1] Server Report")])
    assert parsed.invalid == "the output is cut: stream 1 has no report of its server"
    multicast = raw[: raw.index(b"[  1] Server Report")].replace(
        b"connected with 127.0.0.1", b"connected with 239.1.1.1"
    )
    assert parsers.parse("iperf2", multicast).invalid is None


@pytest.mark.parametrize(
    ("name", "line"), [("2.0.12_refused.txt", 1), ("2.1.8_refused.txt", 5), ("2.2.1_refused.txt", 5)]
)
def test_refused_though_connected_with_is_printed(name: str, line: int) -> None:
    with pytest.raises(ParseError, match=r"failed.*Connection refused") as caught:
        read("iperf2", name)
    assert caught.value.line == line


def test_two_runs_in_one_file() -> None:
    parsed = parsers.parse(
        "iperf2", fixture("2.1.8_tcp.txt") + fixture("2.1.8_refused.txt") + fixture("2.1.8_reverse.txt")
    )
    assert value(parsed, "bitrate", case="tcp") == 10.8e9 / 8
    assert value(parsed, "bitrate", case="tcp-reverse") == 19.2e9 / 8
    assert any("Connection refused" in note for note in parsed.notes)


@pytest.mark.parametrize(
    ("raw", "words"),
    [
        (b"", "nothing"),
        (b"what is this\n", "what is this"),
        (b"Client connecting to h, TCP port 5001\n", "no data moved"),
        (b"20260101120000,10.0.0.1,1,10.0.0.2,2,3,0.0-x,12,34\n", "comma-separated"),
    ],
)
def test_what_holds_no_test(raw: bytes, words: str) -> None:
    with pytest.raises(ParseError, match=words):
        parsers.parse("iperf2", raw)


def test_directions_and_units_of_metrics() -> None:
    parsed = read("iperf2", "2.1.8_udp.txt")
    kinds = {m.metric: (m.unit, m.better) for m in parsed.measurements}
    assert kinds["bitrate"] == ("B/s", Better.HIGHER)
    assert kinds["sent_bitrate"] == ("B/s", Better.NONE)
    assert kinds["loss"] == ("1", Better.LOWER)
    rate = find(parsed, "bitrate")
    assert rate is not None and rate.workload == "iperf2"


@pytest.mark.parametrize("column", ["srcport", "dstport", "speed", "bytes", "istart"])
def test_a_header_that_lacks_a_column_is_no_reason_to_guess(column: str) -> None:
    names = ["time", "src", "srcport", "dst", "dstport", "transferid", "istart", "iend", "bytes", "speed"]
    row = "+0000:20261123080000.000,10.0.0.1,5001,10.0.0.2,40000,1,0.0,1.0,1250000,10000000"
    complete = ",".join(names) + "\n" + row + "\n"
    assert parsers.parse("iperf2", complete.encode()).measurements
    with pytest.raises(ParseError):
        parsers.parse("iperf2", complete.replace(column, "x", 1).encode())
