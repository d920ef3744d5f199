"""iperf3: the corpus and outputs of six versions, held against figures read from the raw text by eye."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from fleetmark import parsers
from fleetmark.base.errors import ParseError
from fleetmark.base.measurement import Better, Parsed
from tests import corpus
from tests.parsers.reading import FIXTURES, cases, find, identities, read, value, values

# What a manifest says of the arguments and the shape of a file, which no measurement repeats.
NOT_MEASURED = {"intervals", "omitted_intervals", "duration_arg", "bytes_arg", "error_key_present", "event"}
KEYS = {
    "sum_sent_bps": ("sent_bitrate", 8.0),
    "sum_received_bps": ("bitrate", 8.0),
    "sum_bps": ("bitrate", 8.0),
    "sum_received_bidir_reverse_bps": ("reverse_bitrate", 8.0),
    "sum_bidir_reverse_bps": ("reverse_bitrate", 8.0),
    "sender_Mbps": ("sent_bitrate", 8e-6),
    "receiver_Mbps": ("bitrate", 8e-6),
    "retransmits": ("retransmits", 1.0),
    "sum_sent_retransmits": ("retransmits", 1.0),
    "lost_packets": ("lost_packets", 1.0),
    "packets": ("packets", 1.0),
    "lost_percent": ("loss", 100.0),
    "jitter_ms": ("jitter", 1e3),
}


def fixture(name: str) -> bytes:
    return (FIXTURES / "iperf3" / name).read_bytes()


def looked_up(parsed: Parsed, key: str) -> float | None:
    """The parsed figure for a manifest key, in the key's unit."""
    if key == "streams":
        (case,) = cases(parsed)
        return float(case.split("-")[1])
    metric, unit = KEYS[key]
    result = value(parsed, metric)
    return None if result is None else result * unit


@pytest.mark.parametrize(("path", "row"), corpus.rows("iperf3"))
def test_corpus(path: Path, row: dict[str, Any]) -> None:
    raw, expected = path.read_bytes(), row["expected"]
    if expected.get("sum_received_bps", "") is None:  # the test failed, and the file may say why
        with pytest.raises(ParseError) as caught:
            parsers.parse("iperf3", raw)
        assert str(caught.value).endswith(f"expected a finished test, got {expected.get('error', 'no data moved')!r}")
        return
    parsed = parsers.parse("iperf3", raw)
    for key, figure in expected.items():
        if key not in NOT_MEASURED:
            assert looked_up(parsed, key) == pytest.approx(figure, rel=1e-12), key
    assert bool(parsed.invalid) == ("event" in expected)  # the only stream is truncated
    assert len(set(identities(parsed))) == len(parsed.measurements)


@pytest.mark.parametrize(
    ("name", "case", "expected"),
    [
        ("3.12_reverse.json", "tcp-reverse", {"bitrate": 12107853833.301168 / 8, "retransmits": 25, "rtt_mean": None}),
        ("3.12_server_2.json", "tcp-2", {"bitrate": 16860657427.227951 / 8, "sent_bitrate": None, "cpu_remote": None}),
        ("3.21_stream.jsonl", "tcp", {"bitrate": 21001438425.472225 / 8, "rtt_mean": 59e-6}),
        ("3.21_stream_full.jsonl", "tcp", {"bitrate": 20848591735.735256 / 8, "cpu_remote": 0.84882796663145}),
        ("3.12_timestamps.txt", "tcp", {"sent_bitrate": 20.7e9 / 8, "bitrate": 20.6e9 / 8, "retransmits": 0}),
        ("3.12_format_M.txt", "tcp", {"bitrate": 2568 * 2**20, "sent_bitrate": 2575 * 2**20}),
        ("3.12_tcp_3_verbose.txt", "tcp-3", {"bitrate": 20.2e9 / 8, "cpu_host": 0.223, "cpu_remote": 0.767}),
        # the server's own view, printed after the client's, adds nothing
        ("3.12_server_output.txt", "tcp", {"bitrate": 21.0e9 / 8, "sent_bitrate": 21.0e9 / 8}),
        ("3.12_bidir_2.txt", "tcp-2-bidir", {"bitrate": 12.6e9 / 8, "reverse_bitrate": 5.70e9 / 8}),
        ("3.12_bidir_2.txt", "tcp-2-bidir", {"retransmits": 13, "reverse_retransmits": 2}),
        ("3.12_udp_bidir.txt", "udp-bidir", {"jitter": 0.014e-3, "reverse_jitter": 0.009e-3, "packets": 191}),
        ("3.21_udp_omit.txt", "udp", {"bitrate": 97.1e6 / 8, "loss": 22 / 763, "jitter": 0.008e-3}),
        # 3.7 to 3.9 print the sums of both directions under one key
        ("3.9_bidir_repeated_keys.json", "tcp-bidir", {"bitrate": 12851161817.330427 / 8, "retransmits": 0}),
        ("3.9_bidir_repeated_keys.json", "tcp-bidir", {"reverse_bitrate": 8199687838.7935343 / 8, "rtt_mean": 52e-6}),
        ("3.9_udp_bidir_repeated_keys.json", "udp-bidir", {"loss": 0, "reverse_loss": 0.015075376884422111}),
        # up to 3.9 the one UDP sum has the sender's rate and the receiver's loss
        ("3.0.11_udp.json", "udp", {"sent_bitrate": 1.80363e8 / 8, "loss": 0.407774, "packets": 2727}),
        ("3.0.11_udp.json", "udp", {"bitrate": 1.80363e8 / 8 * (1 - 0.407774)}),
        ("3.0.11_udp_omit.txt", "udp", {"sent_bitrate": 95.1e6 / 8, "loss": 1551 / 2901, "jitter": None}),
        ("3.1.7_udp_2_reverse.txt", "udp-2-reverse", {"sent_bitrate": 200e6 / 8, "lost_packets": 348}),
        ("3.0.11_server_udp_nan.json", "udp", {"loss": 0.509448, "sent_bitrate": 8.64198e7 / 8}),
        # a server that does not learn the sender's rate leaves 0 in its place; its intervals have the received one
        ("3.9_server_udp.json", "udp", {"sent_bitrate": None, "loss": 0, "packets": 382}),
    ],
)
def test_figures_of_each_version(name: str, case: str, expected: dict[str, float | None]) -> None:
    parsed = read("iperf3", name)
    assert cases(parsed) == {case}
    for metric, figure in expected.items():
        assert value(parsed, metric) == (None if figure is None else pytest.approx(figure, rel=1e-12)), metric
    assert parsed.invalid is None
    if name.endswith(("json", "jsonl")):
        assert parsed.version == name.partition("_")[0]


def test_mean_of_intervals_is_weighted_by_time() -> None:
    parsed = read("iperf3", "3.9_server_udp.json")
    bits = 95674428.034936324 * 1.00008499622345 + 102754159.45103532 * 0.043370001018047333
    assert value(parsed, "bitrate") == pytest.approx(bits / (1.00008499622345 + 0.043370001018047333) / 8)


def test_a_sending_server_knows_no_loss() -> None:
    parsed = read("iperf3", "3.12_server_reverse.json")
    assert cases(parsed) == {"tcp-reverse"}
    assert value(parsed, "bitrate") == value(parsed, "sent_bitrate") == 18819153965.213146 / 8
    assert any("receiver's count is missing" in note for note in parsed.notes)
    raw = fixture("3.9_server_udp.json").replace(b'"reverse":\t0', b'"reverse":\t1')
    assert value(parsers.parse("iperf3", raw), "loss") is None


def test_every_test_in_a_servers_log() -> None:
    parsed = read("iperf3", "3.12_server_log.txt")
    assert value(parsed, "bitrate", case="tcp") == 11.2e9 / 8
    assert value(parsed, "sent_bitrate", case="tcp-reverse") == 8.07e9 / 8
    assert value(parsed, "bitrate", case="udp") == 39.9e6 / 8
    assert value(parsed, "jitter", case="udp") == pytest.approx(1.141e-3)


@pytest.mark.parametrize(
    ("name", "rate", "reason"),
    [
        ("3.12_interrupted.json", 19959714517.184929, "interrupt - the client has terminated"),
        ("3.12_interrupted.txt", 15.4e9, "interrupt - the client has terminated"),
        ("3.12_server_killed.json", 18776840248.959766, "unable to write to stream socket: Connection reset by peer"),
        ("3.0.11_server_killed.txt", 18.0e9, "error - control socket has closed unexpectedly"),
    ],
)
def test_what_was_measured_before_the_end_is_kept_and_invalid(name: str, rate: float, reason: str) -> None:
    parsed = read("iperf3", name)
    assert value(parsed, "bitrate") == pytest.approx(rate / 8)
    assert parsed.invalid == reason


@pytest.mark.parametrize("name", ["3.0.11_refused.json", "3.12_refused.txt"])
def test_failure_in_iperf3s_own_words(name: str) -> None:
    with pytest.raises(ParseError, match="unable to connect to server: Connection refused"):
        read("iperf3", name)


def test_a_retry_after_a_failure_counts() -> None:
    good = fixture("3.12_reverse.json")
    parsed = parsers.parse("iperf3", fixture("3.0.11_refused.json") + good)
    assert parsed.measurements == parsers.parse("iperf3", good).measurements
    assert parsed.invalid is None
    assert any("Connection refused" in note for note in parsed.notes)


def test_two_tests_in_one_file() -> None:
    parsed = parsers.parse("iperf3", fixture("3.12_reverse.json") + fixture("3.12_server_2.json"))
    assert values(parsed, "bitrate") == [12107853833.301168 / 8, 16860657427.227951 / 8]
    assert any("2 tests" in note for note in parsed.notes)


def test_a_stream_cut_before_its_end() -> None:
    lines = fixture("3.21_stream.jsonl").splitlines(keepends=True)
    parsed = parsers.parse("iperf3", b"".join(lines[:2]))
    assert value(parsed, "bitrate") == 21013734561.069332 / 8
    assert parsed.invalid == "the output is cut: the test on line 1 has no summary"
    assert parsed.version == "3.21"


def test_events_that_lost_their_start() -> None:
    lines = fixture("3.21_stream.jsonl").splitlines(keepends=True)
    parsed = parsers.parse("iperf3", b"".join(lines[1:]))
    assert value(parsed, "bitrate", case="tcp") == 21001438425.472225 / 8


def test_text_cut_before_the_sum() -> None:
    raw = fixture("3.12_bidir_2.txt")
    parsed = parsers.parse("iperf3", raw[: raw.rindex(b"[SUM][RX-C]   0.00-1.00   sec   688")])
    assert value(parsed, "bitrate") == 12.6e9 / 8
    assert value(parsed, "reverse_bitrate") == 5.71e9 / 8  # of the interval: the sum is not there
    assert parsed.invalid == "the output is cut: the test on line 1 has no 'iperf Done.'"


@pytest.mark.parametrize("ends_with", ["sender", "receiver"])
def test_two_streams_cut_inside_the_summary_are_no_total(ends_with: str) -> None:
    raw = fixture("3.12_tcp_3_verbose.txt")
    row = raw.index(b"[  7]   0.00-1.00   sec   818 MBytes  6.86 Gbits/sec    0             sender")
    parsed = parsers.parse("iperf3", raw[: raw.index(ends_with.encode(), row) + len(ends_with) + 1])
    assert parsed.invalid == "the output is cut: the test on line 5 has no 'iperf Done.'"


def test_a_servers_log_that_ends_inside_its_last_test() -> None:
    raw = fixture("3.12_server_log.txt")
    parsed = parsers.parse("iperf3", raw[: raw.rindex(b"- - - -")])
    assert parsed.invalid == "the output is cut: the test on line 26 has no summary"
    assert value(parsed, "bitrate", case="tcp") == 11.2e9 / 8


def test_json_that_ends_inside_its_second_test() -> None:
    raw = fixture("3.12_reverse.json")
    for end in (raw[:2], raw[:-200], raw[:-2]):
        parsed = parsers.parse("iperf3", raw + end)
        assert parsed.invalid is not None and parsed.invalid.startswith("the output is cut: the JSON that begins on")
        assert values(parsed, "bitrate") == [12107853833.301168 / 8]


def test_zero_received_is_unknown_except_when_all_was_lost() -> None:
    raw = fixture("3.21_udp_omit.txt").replace(
        b"97.1 Mbits/sec  0.008 ms  22/763 (2.9%)", b"0.00 bits/sec  0.000 ms  763/763 (100%)"
    )
    parsed = parsers.parse("iperf3", raw)
    assert value(parsed, "bitrate") == 0.0
    assert value(parsed, "loss") == 1.0


@pytest.mark.parametrize(
    ("raw", "words"),
    [
        (b"", "nothing"),
        (b"\x00\x00\n", "nothing"),
        (b"iperf 2 is another tool\n", "another tool"),
        (b'{"start": 1, "bananas": 2}', "JSON with start, bananas"),
        (b'{"start": {}, "intervals": [], "end": {}, "error": "unable to bind"}', "unable to bind"),
        (b'{"start":{"connected":[', "Expecting value|Unterminated|property name"),
    ],
)
def test_what_holds_no_test(raw: bytes, words: str) -> None:
    with pytest.raises(ParseError, match=words):
        parsers.parse("iperf3", raw)


def test_directions_and_units_of_metrics() -> None:
    parsed = read("iperf3", "3.12_udp_bidir.txt")
    kinds = {m.metric: (m.unit, m.better) for m in parsed.measurements}
    assert kinds["bitrate"] == kinds["reverse_bitrate"] == ("B/s", Better.HIGHER)
    assert kinds["sent_bitrate"] == ("B/s", Better.NONE)
    assert kinds["loss"] == ("1", Better.LOWER)
    assert kinds["jitter"] == ("s", Better.LOWER)
    rate = find(parsed, "bitrate")
    assert rate is not None and rate.workload == "iperf3"
