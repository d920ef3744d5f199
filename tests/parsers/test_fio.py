"""Test fio's parser on the corpus and on outputs of eight versions, against figures read from the raw text by hand."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from fleetmark import parsers
from fleetmark.base.errors import ParseError
from fleetmark.base.measurement import Better, Parsed
from tests import corpus
from tests.parsers.reading import FIXTURES, cases, find, identities, read, value, values

KI, MI = 2.0**10, 2.0**20


def fixture(name: str) -> bytes:
    return (FIXTURES / "fio" / name).read_bytes()


def looked_up(parsed: Parsed, key: str) -> Any:
    """Return the parsed figure for a manifest key, in the key's unit."""
    if key == "jobs":
        return len(cases(parsed))
    if key == "client_stats_entries":
        return len({(m.case, m.subject, *sorted(m.labels.items())) for m in parsed.measurements})
    path = key.split(".")
    job, subject, labels = None, "host", {}
    if path[0] == "all_clients":
        path, subject = path[1:], "all"
    elif path[0] == "perf36_first_job":
        path, subject, labels = path[1:], "perf36", {"clone": "1"}
    elif path[0] == "randread" and path[1].startswith("clat"):
        path, job = ["read", *path[1:]], "randread"
    elif path[0] not in ("read", "write"):
        job = min((c for c in cases(parsed) if c.startswith(path[0])), key=len)
        path = path[1:]
    direction, figure = path[0], ".".join(path[1:])
    names = {
        "iops": ("iops", 1.0),
        "IOPS": ("iops", 1.0),
        "IOPS_text": ("iops", 1.0),
        "bw_KiBps": ("bw", KI),
        "bw_bytes": ("bw", 1.0),
        "BW_MiBps": ("bw", MI),
        "clat_usec_p99": ("clat_p99", 1e-6),
        "clat_ns.p99": ("clat_p99", 1e-9),
        "lat_ns.p99": ("lat_p99", 1e-9),
    }
    metric, unit = names[figure]
    result = value(parsed, f"{direction}_{metric}", case=job, subject=subject, **labels)
    if result is None:
        return None
    return result // unit if figure == "bw_KiBps" else result / unit  # fio rounds its KiB/s down


def spoken(figure: Any) -> Any:
    """Return a manifest's figure as a number; fio abbreviates it, as in ``11.4k``."""
    return float(figure[:-1]) * 1e3 if isinstance(figure, str) and figure.endswith("k") else figure


def _searched(depth: int, p99_us: float) -> bytes:
    entry = {
        "jobname": "j",
        "error": 0,
        "latency_depth": depth,
        "latency_target": 500_000,
        "latency_percentile": 99.0,
        "read": {"iops": 1000.0, "bw": 4000, "io_bytes": 1, "clat_ns": {"percentile": {"99.000000": p99_us * 1000}}},
    }
    return json.dumps({"fio version": "fio-3.33", "jobs": [entry]}).encode()


def test_a_latency_target_that_is_kept_tells_the_depth() -> None:
    parsed = parsers.parse("fio", _searched(24, 480))
    assert parsed.invalid is None and not parsed.notes
    assert {m.metric: m.value for m in parsed.measurements}["latency_depth"] == 24


def test_a_latency_target_that_cannot_be_kept_is_invalid() -> None:
    parsed = parsers.parse("fio", _searched(1, 900))
    assert parsed.invalid == (
        "job j: latency target not met even at a queue depth of 1: the 99th percentile of latency is 0.90 ms, the target 0.5 ms"
    )
    assert parsers.parse("fio", _searched(8, 520)).notes


@pytest.mark.parametrize(("path", "row"), corpus.rows("fio"))
def test_corpus(path: Path, row: dict[str, Any]) -> None:
    raw, expected = path.read_bytes(), row["expected"]
    if expected.get("json_present") is False:
        with pytest.raises(ParseError) as caught:
            parsers.parse("fio", raw)
        assert caught.value.line == 1
        assert expected.get("error", "err={}".format(expected.get("err_code"))) in str(caught.value)
        return
    parsed = parsers.parse("fio", raw)
    for key, figure in expected.items():
        assert looked_up(parsed, key) == (None if figure is None else pytest.approx(spoken(figure), rel=1e-12)), key
    assert parsed.version == row["tool_version"]
    assert parsed.invalid is None
    assert len(set(identities(parsed))) == len(parsed.measurements)


@pytest.mark.parametrize(
    ("name", "case", "expected"),
    [
        # up to 2.x: microseconds, "bw" in KiB/s, whole IOPS; KB means KiB
        ("2.1.11_randrw.json", "mix", {"read_bw": 36610 * KI, "read_iops": 9152, "read_clat_mean": 88.97e-6}),
        ("2.1.11_randrw.json", "mix", {"write_lat_max": 55e-6, "write_clat_p99": 9e-6, "cpu_usr": 0.0240}),
        ("2.1.11_randrw.txt", "mix", {"read_bw": 58086 * KI, "read_iops": 14521, "read_clat_p99": 123e-6}),
        ("2.1.11_randrw.txt", "mix", {"write_bw": 50825 * KI, "write_lat_mean": 1.82e-6, "write_lat_min": None}),
        ("2.17_randrw.json", "mix", {"read_iops": 235631.368631, "read_lat_mean": 1.719308e-6}),
        ("2.17_randrw.txt", "mix", {"read_iops": 296e3, "write_bw": 1160 * MI, "write_clat_p99": 1e-6}),
        # 2.99 to 3.1: nanoseconds, and no bw_bytes yet
        ("3.1_randrw.json", "mix", {"write_bw": 1233774 * KI, "write_clat_p99": 1176e-9, "read_lat_max": 5916053e-9}),
        ("3.1_randrw.txt", "mix", {"write_lat_max": 15934e-6, "read_clat_p99": 924e-9, "read_clat_mean": 1059.06e-9}),
        ("3.42_randrw.json", "mix", {"read_bw": 31867780, "write_iops": 7834.165834, "write_clat_p99": 8768e-9}),
        ("3.42_randrw.txt", "mix", {"read_bw": 31.9 * MI, "write_iops": 8216, "read_clat_p99": 338e-6}),
        ("3.42_randrw.txt", "mix", {"read_clat_mean": 88319.85e-9, "write_clat_p99": 7712e-9, "cpu_sys": 0.2520}),
        # percentiles are where lat_percentiles puts them, with mixed figures next to their parts
        ("3.33_both_latpct.json", "mix", {"read_lat_p99": 1810432e-9, "read_clat_p99": None, "mixed_bw": 45820695}),
        ("3.33_both_latpct.json", "mix", {"mixed_lat_p99": 432128e-9, "write_lat_mean": 3216.824956e-9}),
        # nothing measured gives no figure, not 0
        ("3.33_gtod_reduce.json", "g", {"read_bw": 30343290, "read_clat_mean": None, "read_lat_p99": None}),
        ("3.33_kb_base_1000.txt", "k", {"read_bw": 50.3e6, "read_iops": 12.3e3}),
        ("3.33_unit_base_bits.txt", "k", {"read_bw": 336 * MI / 8, "cpu_usr": None, "cpu_sys": 0.298}),
        # terse: KiB/s and microseconds in every version
        ("3.33_terse_v3.txt", "a", {"read_bw": 1195160 * KI, "read_iops": 298790, "read_clat_p99": 10e-6}),
        ("3.33_terse_v3.txt", "b", {"write_bw": 1385082 * KI, "write_clat_max": 27875e-6, "read_bw": None}),
        ("3.33_terse_v5.txt", "a", {"read_lat_mean": 108.260212e-6, "write_iops": 7694, "write_clat_p99": 9e-6}),
    ],
)
def test_figures_of_each_version(name: str, case: str, expected: dict[str, float | None]) -> None:
    parsed = read("fio", name)
    for metric, figure in expected.items():
        assert value(parsed, metric, case=case) == (None if figure is None else pytest.approx(figure, rel=1e-9)), metric
    assert parsed.version == name.partition("_")[0]


def test_sync_latency_and_json_before_text() -> None:
    parsed = read("fio", "3.33_fdatasync.txt")  # --output-format=json,normal: one run, printed twice
    assert value(parsed, "sync_lat_mean") == pytest.approx(1188.40e-6, rel=1e-4)
    assert value(parsed, "sync_lat_p99") == pytest.approx(7898e-6, rel=1e-3)
    assert value(parsed, "write_bw") == pytest.approx(3293 * KI, rel=1e-3)
    assert len(set(identities(parsed))) == len(parsed.measurements)


def test_clones_keep_apart() -> None:
    parsed = read("fio", "3.33_two_clones.json")
    assert value(parsed, "read_bw", clone="1") == 34152000
    assert value(parsed, "read_bw", clone="2") == 38328903
    assert value(parsed, "read_clat_p99", clone="2") == pytest.approx(1155072e-9)


def test_group_sum_stands_beside_its_jobs() -> None:
    parsed = read("fio", "3.33_two_clones.txt")
    assert value(parsed, "read_bw", case="group 0", subject="all") == 66.3 * MI
    assert value(parsed, "read_iops", clone="1") == 8538
    assert value(read("fio", "2.1.11_two_clones.txt"), "read_bw", subject="all") == 77014 * KI
    alone = read("fio", "3.33_kb_base_1000.txt")
    assert {m.subject for m in alone.measurements} == {"host"}


def test_group_sum_that_disagrees_is_told() -> None:
    text = fixture("3.33_two_clones.txt")
    parsed = parsers.parse("fio", text.replace(b"READ: bw=66.3MiB/s", b"READ: bw=99.9MiB/s"))
    assert any("group 0: read_bw" in note for note in parsed.notes)
    assert not parsers.parse("fio", text).notes


def test_servers_and_their_aggregate() -> None:
    parsed = read("fio", "3.33_two_servers.json")
    assert value(parsed, "read_bw", subject="127.0.0.1") == 38321898
    assert value(parsed, "read_bw", subject="127.0.0.2") == 38357163
    assert value(parsed, "read_bw", case="All clients", subject="all") == 76640892
    text = read("fio", "3.33_two_servers.txt")
    assert value(text, "read_bw", subject="all") == 77.6 * MI  # printed without a unit
    assert value(text, "read_iops", clone="2") == 9871
    assert not [m for m in text.measurements if m.case.startswith("group")]


@pytest.mark.parametrize("name", ["3.33_status_interval.json", "3.33_status_interval.txt"])
def test_only_the_last_interim_report_counts(name: str) -> None:
    parsed = read("fio", name)
    assert value(parsed, "read_iops") == (9631.684158 if name.endswith("json") else 10.0e3)
    assert any("interim" in note for note in parsed.notes)


def test_two_runs_in_one_file() -> None:
    once = fixture("3.42_randrw.json")
    again = once.replace(b'"bw_bytes" : 31867780', b'"bw_bytes" : 31867781')
    parsed = parsers.parse("fio", once + b"fio: this platform process shared\n" + again)
    assert values(parsed, "read_bw") == [31867780, 31867781]
    assert any("2 runs" in note for note in parsed.notes)


def test_failures_keep_what_is_sound() -> None:
    parsed = read("fio", "3.33_verify_failed.json")
    assert value(parsed, "read_iops") == 11000
    assert "error 84" in str(parsed.invalid)
    assert "bad magic header" in str(parsed.invalid)
    assert read("fio", "3.33_interrupted.json").invalid == "fio: terminating on signal 2"


@pytest.mark.parametrize(
    ("name", "line", "words"),
    [
        ("3.33_bad_option.txt", 1, "failed parsing rw=banana"),
        ("3.33_no_file.json", 2, "Invalid argument"),
        ("3.33_trim_impossible.txt", 5, "Inappropriate ioctl for device"),
    ],
)
def test_no_io_is_an_error_in_fios_words(name: str, line: int, words: str) -> None:
    with pytest.raises(ParseError, match=words) as caught:
        read("fio", name)
    assert caught.value.line == line


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        (b"", "nothing"),
        (b"\n\n \n", "nothing"),
        (b"hello\n", "hello"),
        (b'{"fio version": "fio-3.33"}', "fio version"),
        (b'{"jobs": [{"jobname": "x", "read": {}}]}', "without any I/O"),
    ],
)
def test_what_is_not_fio(raw: bytes, expected: str) -> None:
    with pytest.raises(ParseError, match=expected):
        parsers.parse("fio", raw)


def test_cut_json_names_the_line_where_it_ends() -> None:
    lines = fixture("3.42_randrw.json").splitlines(keepends=True)
    with pytest.raises(ParseError) as caught:
        parsers.parse("fio", b"".join(lines[:100]))
    assert caught.value.line in (100, 101)


def test_a_whole_document_survives_a_cut_one() -> None:
    complete = fixture("3.42_randrw.json")
    parsed = parsers.parse("fio", complete[:2000] + b"\n" + complete)
    assert value(parsed, "read_bw") == 31867780
    assert any("cut or damaged" in note for note in parsed.notes)


def test_bom_utf16_crlf_and_noise_change_nothing() -> None:
    plain = fixture("3.33_gtod_reduce.json")
    clean = parsers.parse("fio", plain)
    text = plain.decode()
    for raw in (
        b"\xef\xbb\xbf" + plain,
        text.encode("utf-16"),
        text.replace("\n", "\r\n").encode(),
        b"note: \xff\xfe both iodepth\x00 >= 1\n" + plain + b"\nfio: done {not json\n",
    ):
        assert parsers.parse("fio", raw).measurements == clean.measurements


def test_directions_and_units_of_metrics() -> None:
    parsed = read("fio", "3.42_randrw.json")
    kinds = {m.metric: (m.unit, m.better) for m in parsed.measurements}
    assert kinds["read_bw"] == ("B/s", Better.HIGHER)
    assert kinds["write_iops"] == ("1/s", Better.HIGHER)
    assert kinds["read_clat_p99.9"] == ("s", Better.LOWER)
    assert kinds["cpu_sys"] == ("1", Better.NONE)
    bw = find(parsed, "read_bw")
    assert bw is not None and bw.workload == "fio"


@pytest.mark.parametrize(
    ("name", "end", "reason"),
    [
        ("3.42_randrw.txt", b"\nRun status group", "no status of group 0"),
        ("3.42_randrw.txt", b"  WRITE: bw=", "no status of group 0"),
        ("3.33_two_servers.txt", b"All clients", "no section of all clients to its end"),
        ("3.33_two_servers.txt", b"lat (usec): min=19, max=16196, avg=99.75", "no section of all clients to its end"),
    ],
)
def test_normal_output_that_ends_too_early(name: str, end: bytes, reason: str) -> None:
    raw = (FIXTURES / "fio" / name).read_bytes()
    parsed = parsers.parse("fio", raw[: raw.index(end)])
    assert parsed.measurements
    assert parsed.invalid == f"the output is cut: {reason}"


def test_json_that_ends_inside_a_second_run() -> None:
    raw = (FIXTURES / "fio" / "3.42_randrw.json").read_bytes()
    parsed = parsers.parse("fio", raw + raw[:-100])
    line = raw.count(b"\n") + 1
    assert parsed.invalid == f"the output is cut: the JSON that begins on line {line} is not complete"
    assert parsed.measurements == parsers.parse("fio", raw).measurements
