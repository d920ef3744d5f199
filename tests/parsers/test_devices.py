"""Programs that users build themselves: BabelStream and OSU's tests as this project's machine ran them, SuperBench's
gpu_stream and OSU as others did (corpus), rocm-bandwidth-test in the form that its issues show. Figures read by eye."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from fleetmark import parsers
from fleetmark.base.errors import ParseError
from tests import corpus
from tests.parsers.reading import FIXTURES, cases, read, value


@pytest.mark.parametrize(
    ("name", "copy", "triad"),
    [
        ("5.0_omp.csv", 58346.1e6, 6281.38e6),
        ("5.0_omp.txt", 3981.780e6, 2586.037e6),
        ("5.0_omp_gib.csv", 107.346 * 2**30, None),
        ("5.0_omp_gib.txt", 35.419 * 2**30, None),
    ],
)
def test_babelstream_in_each_of_its_units(name: str, copy: float, triad: float | None) -> None:
    parsed = read("babelstream", name)
    assert value(parsed, "copy") == pytest.approx(copy)
    assert triad is None or value(parsed, "triad") == pytest.approx(triad)
    assert {m.metric for m in parsed.measurements} == {"copy", "mul", "add", "triad", "dot"}
    assert parsed.invalid is None and parsed.version == ("5.0" if name.endswith("txt") else None)


def test_babelstream_that_failed_its_check_or_is_cut() -> None:
    raw = (FIXTURES / "babelstream" / "5.0_omp.txt").read_bytes()
    wrong = parsers.parse("babelstream", raw + b"FAILED validation of a[3]: 1 (is) != 2 (should), diff=1 > 0\n")
    assert wrong.invalid == "FAILED validation of a[3]: 1 (is) != 2 (should), diff=1 > 0"
    assert "cut" in (parsers.parse("babelstream", raw[:-9]).invalid or "")


@pytest.mark.parametrize(("path", "row"), corpus.rows("gpu_stream"))
def test_gpu_stream(path: Path, row: dict[str, Any]) -> None:
    parsed = parsers.parse("gpu_stream", path.read_bytes())
    labels = {"gpu": "0", "buffer": "4294967296"}
    assert value(parsed, "bandwidth", case="triad_double", block="256", **labels) == pytest.approx(7414.01e9)
    assert value(parsed, "bandwidth", case="copy_double", block="128", **labels) == pytest.approx(6711.67e9)
    assert value(parsed, "peak_share", case="triad_double", block="256", **labels) == pytest.approx(0.905)
    assert cases(parsed) == {"copy_double", "scale_double", "add_double", "triad_double"}


@pytest.mark.parametrize(("path", "row"), corpus.rows("osu"))
def test_osu_corpus(path: Path, row: dict[str, Any]) -> None:
    parsed = parsers.parse("osu", path.read_bytes())
    assert parsed.version == "5.7.1" and parsed.invalid is None
    metrics = {"avg_us": ("latency", 1e6), "MBps": ("bandwidth", 1e-6), "msgs_per_s": ("message_rate", 1.0)}
    for key, figure in row["expected"].items():
        size, _, quantity = key.partition("_")
        metric, factor = metrics[quantity]
        assert (value(parsed, metric, size=size) or 0) * factor == pytest.approx(figure, rel=1e-9), key
    if cases(parsed) == {"message_rate"}:
        assert value(parsed, "peak_message_rate") == 31608531.76  # of 4 bytes, by 4 pairs
        assert value(parsed, "peak_bandwidth") == pytest.approx(252.65e6)


def test_osu_s_own_summary_and_a_barrier() -> None:
    parsed = read("osu", "5.3_bw.txt", "osu_bw", "-m", "4194304")
    assert value(parsed, "peak_bandwidth") == pytest.approx(11577.67e6) and cases(parsed) == {"bandwidth"}
    assert parsed.invalid is None
    full = read("osu", "5.3_allreduce_full.txt", "osu_allreduce", "-m", "1024")
    assert value(full, "least_latency") == pytest.approx(0.18e-6) and value(full, "latency", size="512") == 0.37e-6
    assert value(read("osu", "5.3_barrier.txt"), "latency") == pytest.approx(0.53e-6)


def test_osu_that_ends_early_is_cut() -> None:
    parsed = read("osu", "5.3_allreduce_full.txt", "osu_allreduce", "-m", "4194304")
    assert parsed.invalid == "the output is cut: it ends at 1024 of 4.1943e+06 bytes"
    raw = (FIXTURES / "osu" / "5.3_bw.txt").read_bytes().rstrip()
    assert "ends inside a figure" in (parsers.parse("osu", raw[:-1]).invalid or "")


def test_osu_of_very_many_tests_takes_time_by_their_number() -> None:
    tests = "".join(f"# OSU MPI Test{n} Latency Test\n# Size  Latency (us)\n8  {n}.50\n" for n in range(1, 30_001))
    began = time.process_time()
    parsed = parsers.parse("osu", tests.encode())
    assert value(parsed, "least_latency", case="test30000") == pytest.approx(30000.5e-6)
    assert time.process_time() - began < 20, "it took minutes"


def test_rocm_bandwidth_test_s_matrices() -> None:
    parsed = read("rocm_bandwidth_test", "2.6.0_form.txt")
    assert parsed.version == "2.6.0" and parsed.invalid is None and cases(parsed) == {"one-way", "both-ways"}
    assert value(parsed, "bandwidth", case="one-way", **{"from": "gpu1", "to": "gpu2"}) == 45.0e9
    assert value(parsed, "bandwidth", case="one-way", **{"from": "cpu0", "to": "gpu1"}) == 14.25e9
    assert value(parsed, "bandwidth", case="both-ways", **{"from": "gpu2", "to": "gpu1"}) == 88.0e9
    assert value(parsed, "local_bandwidth", case="one-way", device="gpu2") == 601.0e9
    assert value(parsed, "slowest_link", case="one-way") == 14.1e9
    assert value(parsed, "link_bandwidth", case="one-way") == pytest.approx((14.4e9 + 14.5e9) / 2)
    raw = (FIXTURES / "rocm_bandwidth_test" / "2.6.0_form.txt").read_text()
    short = parsers.parse("rocm_bandwidth_test", raw[: raw.rindex("2         25.800")].encode())
    assert short.invalid == "the output is cut: the matrix both-ways has 2 rows"


@pytest.mark.parametrize("tool", ["babelstream", "gpu_stream", "osu", "rocm_bandwidth_test"])
@pytest.mark.parametrize(
    "raw", [b"", b"error while loading shared libraries\n", b"Function MB/s Min\n# OSU MPI Latency Test\n"]
)
def test_what_holds_no_figures_is_refused(tool: str, raw: bytes) -> None:
    with pytest.raises(ParseError):
        parsers.parse(tool, raw)
