"""MLC's parser: versions, modes, ways of measuring, matrices that are not square, and text that ends early."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from fleetmark.base.errors import ParseError
from fleetmark.base.measurement import Better, Parsed
from fleetmark.parsers.mlc import parse, words
from tests import corpus
from tests.parsers.reading import FIXTURES, cases, find, find_all, identities, read, value

NS, MB = 1e-9, 1e6
# Keys of the corpus manifest that name one point: metric, labels, factor to base units.
KEYS: Mapping[str, tuple[str, Mapping[str, str], float]] = {
    "peak_all_reads_MBps": ("peak_bandwidth", {"mix": "all_reads"}, MB),
    "peak_3to1_MBps": ("peak_bandwidth", {"mix": "3:1"}, MB),
    "peak_1to1_MBps": ("peak_bandwidth", {"mix": "1:1"}, MB),
    "stream_triad_like_MBps": ("peak_bandwidth", {"mix": "stream_triad"}, MB),
    "loaded_latency_min_delay_ns": ("loaded_latency", {"delay": "0"}, NS),
    "loaded_00000_ns": ("loaded_latency", {"delay": "0"}, NS),
    "loaded_20000_ns": ("loaded_latency", {"delay": "20000"}, NS),
    "l2_hit_ns": ("c2c_latency", {"state": "HIT", "level": "L2"}, NS),
    "l1_ns": ("idle_latency", {"buffer": str(64 << 10)}, NS),
    "l2_ns": ("idle_latency", {"buffer": str(1 << 20)}, NS),
    "l3_ns": ("idle_latency", {"buffer": str(96 << 20)}, NS),
    "dram_ns": ("idle_latency", {"buffer": str(1_800_000 << 10)}, NS),
}
PAIRS = {"idle_latency": ("idle_latency", NS), "bw_matrix": ("bandwidth", MB)}
TRUNCATED = "the output is cut: it ends inside line 48"
NOT_SEQUENTIAL = {"v3.10_icelake_noroot.txt", "v3.11_noroot_2numa_unaligned_columns.txt"}
RANDOM = "latencies are of random access: not comparable with sequential ones"
PREFETCHED = (
    "latencies of sequential access with enabled prefetchers: not "
    "comparable with MLC's usual latencies or with random ones"
)


def fixture(name: str) -> str:
    return (FIXTURES / "mlc" / name).read_bytes().decode()


def ns(parsed: Parsed, metric: str, **labels: str) -> float | None:
    seconds = value(parsed, metric, **labels)
    return None if seconds is None else round(seconds / NS, 6)


def mb(parsed: Parsed, metric: str, **labels: str) -> float | None:
    rate = value(parsed, metric, **labels)
    return None if rate is None else round(rate / MB, 6)


def arrows(parsed: Parsed, metric: str, **labels: str) -> dict[str, float]:
    """A matrix as {"from>to": ns or MB/s}."""
    return {
        f"{m.labels['from']}>{m.labels['to']}": round(m.value / (NS if m.unit == "s" else MB), 6)
        for m in parsed.measurements
        if m.metric == metric and labels.items() <= dict(m.labels).items() and "from" in m.labels
    }


@pytest.mark.parametrize(("path", "row"), corpus.rows("mlc"))
def test_corpus(path: Path, row: Mapping[str, Any]) -> None:
    parsed = parse(path.read_bytes())
    suffix = "_random" if path.name in NOT_SEQUENTIAL else ""
    for key, expected in row["expected"].items():
        if key == "random_access":
            assert (parsed.notes == (RANDOM,)) is expected
        elif key == "c2c_present":
            assert any(m.metric.startswith("c2c") for m in parsed.measurements) is expected
        elif key == "loaded_rows_complete":
            both = (
                {m.labels["delay"] for m in parsed.measurements if m.metric == x}
                for x in ("loaded_latency", "loaded_bandwidth")
            )
            assert len(set.intersection(*both)) == expected
        else:
            pair = re.fullmatch(r"(\w+)_([0-9])([0-9])_(?:ns|MBps)", key)
            if pair and pair[1] in PAIRS:
                metric, factor = PAIRS[pair[1]]
                labels: Mapping[str, str] = {"from": pair[2], "to": pair[3]}
            else:
                metric, labels, factor = KEYS[key]
            figure = value(parsed, metric + (suffix if factor == NS else ""), **labels)
            assert figure == pytest.approx(expected * factor, rel=1e-12), key
    assert parsed.version == row["tool_version"].removeprefix("v")
    assert parsed.invalid == (TRUNCATED if "truncated" in path.name else None)
    assert len(set(identities(parsed))) == len(parsed.measurements)
    if suffix:
        assert not any(m.unit == "s" and not m.metric.endswith(suffix) for m in parsed.measurements)


@pytest.mark.parametrize(
    ("name", "count"),
    [
        # idle + best local + peak + its headline + matrix + curve twice + local caches + remote caches
        ("v3.1_sockets.txt", 4 + 1 + 5 + 1 + 4 + 2 * 5 + 2 + 4),
        ("v3.11b_one_node.txt", 1 + 1 + 5 + 1 + 1 + 2 * 6 + 2),
        ("v3.11a_noroot.txt", 4 + 1 + 5 + 1 + 4 + 2 * 3 + 2 + 4),
        ("v3.7_modes.txt", 4 + 1 + 4 + 5 + 1 + 5 + 1 + 1 + 2 + 2 + 4),
        ("v3.10_cxl.txt", 5 + 1 + 5 + 1 + 5 + 2 * 2 + 2 + 4),
        ("v3.12_internal_peak.txt", 8 + 1),
        ("v3.9a_every_core.txt", 8),
    ],
)
def test_every_figure_of_a_text_is_read_once(name: str, count: int) -> None:
    parsed = read("mlc", name)
    assert len(parsed.measurements) == len(set(identities(parsed))) == count
    assert cases(parsed) == {"mlc"}
    assert f"v{parsed.version}" == name.partition("_")[0] + ("-internal" if "internal" in name else "")
    assert parsed.invalid is None


def test_units_and_directions() -> None:
    parsed = read("mlc", "v3.7_modes.txt")
    kinds = {(m.metric.rpartition("_")[2], m.unit, m.better) for m in parsed.measurements}
    assert kinds == {("latency", "s", Better.LOWER), ("bandwidth", "B/s", Better.HIGHER)}
    assert value(parsed, "max_read_bandwidth") == 215930.41e6
    assert value(parsed, "idle_latency") == 80.1e-9


def test_sockets_and_the_old_headings() -> None:
    parsed = read("mlc", "v3.1_sockets.txt")
    assert arrows(parsed, "idle_latency") == {"0>0": 71.9, "0>1": 128.4, "1>0": 127.7, "1>1": 72.6}
    assert arrows(parsed, "bandwidth")["1>0"] == 24911.6
    assert ns(parsed, "local_latency") == 71.9
    assert mb(parsed, "peak_read_bandwidth") == mb(parsed, "peak_bandwidth", mix="all_reads") == 103212.7
    assert mb(parsed, "peak_bandwidth", mix="stream_triad") == 90455.8
    assert (ns(parsed, "loaded_latency", delay="50"), mb(parsed, "loaded_bandwidth", delay="50")) == (182.65, 99120.8)
    assert ns(parsed, "c2c_latency", state="HITM", level="L2") == 37.5
    assert arrows(parsed, "c2c_latency", homed="writer", level="LLC") == {"0>1": 91.2, "1>0": 90.8}
    assert arrows(parsed, "c2c_latency", homed="reader", state="HITM") == {"0>1": 117.3, "1>0": 118.1}
    assert parsed.notes == ()


def test_one_mode_a_run() -> None:
    parsed = read("mlc", "v3.7_modes.txt")
    assert arrows(parsed, "idle_latency")["0>1"] == 133.8
    assert arrows(parsed, "bandwidth")["1>1"] == 107377.1
    assert mb(parsed, "peak_bandwidth", mix="2:1") == 182590.1
    assert mb(parsed, "max_bandwidth", mix="1:1") == 172010.66
    assert ns(parsed, "loaded_latency", delay="0") == 241.83
    assert ns(parsed, "c2c_latency", state="HIT", level="L2") == 47.6
    assert parsed.notes == ()


def test_nodes_without_processors_and_cells_without_figures() -> None:
    parsed = read("mlc", "v3.10_cxl.txt")
    assert arrows(parsed, "idle_latency") == {"0>0": 114.6, "0>1": 186.2, "0>2": 402.7, "1>0": 185.5, "1>1": 115.3}
    assert arrows(parsed, "bandwidth") == {
        "0>0": 143055.7,
        "0>1": 63190.4,
        "1>0": 63211.8,
        "1>1": 142987.3,
        "1>2": 19433.6,
    }
    assert parsed.notes == ("line 24: bandwidth '0.0' left out, which is not plausible",)


def test_mixes_of_the_wordier_builds() -> None:
    parsed = read("mlc", "v3.12_internal_peak.txt")
    assert {m.labels.get("mix"): m.value for m in parsed.measurements if m.metric == "peak_bandwidth"} == {
        "all_reads": 611204.3e6,
        "4:1": 590112.8e6,
        "3:1": 581630.7e6,
        "2:1": 573922.5e6,
        "1:1": 548817.0e6,
        "stream_triad": 560043.6e6,
        "nt_writes": 402216.9e6,
        "1:1_nt": 498730.1e6,
    }


def test_latencies_measured_at_random_are_other_metrics() -> None:
    parsed = read("mlc", "v3.11a_noroot.txt")
    assert {m.metric for m in parsed.measurements if m.unit == "s"} == {
        "idle_latency_random",
        "local_latency_random",
        "loaded_latency_random",
        "c2c_latency_random",
    }
    assert {m.metric for m in parsed.measurements if m.unit == "B/s"} == {
        "peak_bandwidth",
        "peak_read_bandwidth",
        "bandwidth",
        "loaded_bandwidth",
    }
    assert ns(parsed, "local_latency_random") == 103.7
    assert parsed.notes == (RANDOM,)


@pytest.mark.parametrize(
    ("message", "suffix"),
    [
        ("Measuring idle latencies (in ns)...", ""),
        ("Measuring idle latencies for sequential access (in ns)...", ""),
        ("Measuring idle latencies for random access (in ns)...", "_random"),
        (
            "*** Unable to modify prefetchers (try executing 'modprobe msr')\nMeasuring idle latencies (in ns)...",
            "_random",
        ),
        ("*** So, enabling random access for latency measurements\nMeasuring idle latencies (in ns)...", "_random"),
        ("*** Unable to access mlcdrv.sys to modify prefetchers\nMeasuring idle latencies (in ns)...", "_random"),
        ("* Unable to modify prefetchers\nMeasuring idle latencies for sequential access (in ns)...", "_prefetched"),
        ("Command line parameters: --latency_matrix -r \nMeasuring idle latencies (in ns)...", "_random"),
        ("Command line parameters: --latency_matrix -e \nMeasuring idle latencies (in ns)...", "_prefetched"),
        ("Command line parameters: --latency_matrix -e0 \nMeasuring idle latencies (in ns)...", ""),
        ("Command line parameters: --latency_matrix -e -r \nMeasuring idle latencies (in ns)...", "_random"),
        (
            "Command line parameters: --latency_matrix -e \nMeasuring idle latencies for random access (in ns)...",
            "_random",
        ),
    ],
)
def test_how_memory_was_visited(message: str, suffix: str) -> None:
    text = (
        f"Intel(R) Memory Latency Checker - v3.9\n{message}\n\t\tNuma node\nNuma node\t     0\t\n       0\t  91.2\t\n"
    )
    parsed = parse(text.encode())
    assert {m.metric for m in parsed.measurements} == {f"idle_latency{suffix}", f"local_latency{suffix}"}
    assert parsed.notes == {"": (), "_random": (RANDOM,), "_prefetched": (PREFETCHED,)}[suffix]


def test_heading_and_message_at_odds() -> None:
    parsed = read("mlc", "v3.11_at_odds.txt")
    assert ns(parsed, "local_latency_prefetched") == 21.4
    assert parsed.notes == (PREFETCHED,)


def test_windows() -> None:
    parsed = read("mlc", "v3.9_windows.txt")
    assert ns(parsed, "local_latency_random") == 68.3
    assert mb(parsed, "peak_bandwidth", mix="1:1") == 30120.4
    assert parsed.invalid == (
        "the output is cut: no bandwidths between nodes, loaded latencies, cache-to-cache latencies"
    )


def test_a_whole_runs_options_come_with_the_command() -> None:
    text = re.sub(r"\*\*\*.*\n", "", fixture("v3.11a_noroot.txt")).replace(" for random access", "")
    assert value(parse(text.encode()), "local_latency") == 103.7e-9
    for command in (["sudo", "./Linux/mlc", "-e"], ["sh", "-c", "cd /opt/mlc; ./mlc_avx512 -e -X && echo done"]):
        assert value(parse(text.encode(), command), "local_latency_prefetched") == 103.7e-9
    assert value(parse(text.encode(), ["mlc.exe", "-r"]), "local_latency_random") == 103.7e-9
    assert value(parse(text.encode(), ["./stream", "-e"]), "local_latency") == 103.7e-9


def test_single_runs_by_their_buffers() -> None:
    parsed = read("mlc", "v3.10_idle_sweep_noroot.txt")
    assert {m.labels["buffer"]: round(m.value / NS, 6) for m in parsed.measurements} == {
        str(32 << 10): 1.0,
        str(1 << 20): 3.6,
        str(12 << 20): 13.5,
        str(2 << 30): 104.8,
    }
    assert {(m.metric, m.labels["core"]) for m in parsed.measurements} == {("idle_latency_random", "0")}


@pytest.mark.parametrize(
    ("before", "buffer"),
    [
        ("Command line parameters: --idle_latency \n\nUsing buffer size of 2000.000MiB", None),
        ("Command line parameters: --idle_latency -b64 \n\nUsing buffer size of 0.062MiB", 64 << 10),
        ("Command line parameters: --idle_latency -b10m \n\nUsing buffer size of 10.000MiB", 10 << 20),
        ("Command line parameters: --idle_latency -b?? \n\nUsing buffer size of 10.000MiB", 10 << 20),
        ("Using buffer size of 200.000MB", 200 << 20),
        ("Using buffer size of 0.062MiB", 64 << 10),
        ("Using buffer size of 1757.812MiB", 1_800_000 << 10),
        ("Using buffer size of 2GiB", 2 << 30),
        ("", None),
    ],
)
def test_buffers_asked_for_and_printed(before: str, buffer: int | None) -> None:
    parsed = parse(f"{before}\nEach iteration took 186.5 core clocks ( 78.2\tns)\n".encode())
    labels = {} if buffer is None else {"buffer": str(buffer)}
    assert ns(parsed, "idle_latency", **labels) == 78.2


def test_the_buffer_of_the_command_where_the_text_says_no_options() -> None:
    text = b"Using buffer size of 2000.000MiB\nEach iteration took 186.5 core clocks ( 78.2\tns)\n"
    assert ns(parse(text, ["mlc", "--idle_latency"]), "idle_latency") == 78.2
    parsed = parse(text, ["mlc", "--idle_latency", "-b4k", "-j1", "-l128"])
    assert ns(parsed, "idle_latency", buffer="4096", to="1", stride="128") == 78.2


@pytest.mark.parametrize(("unit", "factor"), [("ns", 1e-9), ("us", 1e-6), ("ms", 1e-3)])
def test_units_of_single_runs(unit: str, factor: float) -> None:
    parsed = parse(f"Each iteration took 9.5 base frequency clocks (\t0.3\t{unit})".encode())
    assert value(parsed, "idle_latency") == pytest.approx(0.3 * factor)


def test_options_keep_runs_apart() -> None:
    parsed = read("mlc", "v3.11b_options.txt")
    ends = {"from": "0", "to": "0"}
    assert len(set(identities(parsed))) == len(parsed.measurements) == 8
    assert mb(parsed, "bandwidth", **ends) == 66120.4
    assert mb(parsed, "bandwidth", **ends, options="-X -Y") == 68033.9
    assert mb(parsed, "bandwidth", **ends, mix="1:1", traffic="random") == 44871.2
    assert mb(parsed, "loaded_bandwidth", delay="0", mix="nt_writes") == 51233.8
    assert not find_all(parsed, "loaded_latency", delay="0", mix="nt_writes")  # -T: no latency was measured
    assert ns(parsed, "loaded_latency_random", delay="0") == 198.37
    assert ns(parsed, "idle_latency_prefetched", core="2", to="1", buffer=str(256 << 20)) == 143.5
    assert ns(parsed, "c2c_latency", state="HIT", reader_core="4", writer_core="8") == 42.0
    assert parsed.notes == (f"1 of 3 runs: {RANDOM}", f"1 of 3 runs: {PREFETCHED}")


def test_repeats_of_a_run_keep_their_names() -> None:
    text = fixture("v3.11b_one_node.txt")
    parsed = parse((text + text.replace("  93.6", "  94.1")).encode())
    assert [m.value for m in find_all(parsed, "local_latency")] == [93.6e-9, 94.1e-9]
    assert parsed.notes == ("2 equal runs in one text, which count as repeats",)


def test_every_core() -> None:
    parsed = read("mlc", "v3.9a_every_core.txt")
    assert ns(parsed, "idle_latency_random", cpu="2", to="0") == 190.9
    assert find(parsed, "local_latency_random") is None  # a core is not a node


def test_persistent_memory_and_nodes_named_one_by_one() -> None:
    parsed = read("mlc", "v3.9a_drive_and_verbose.txt")
    assert arrows(parsed, "idle_latency") == {
        "0>/mnt/pmem0": 176.4,
        "1>/mnt/pmem0": 254.9,
        "0>0": 81.0,
        "0>1": 130.1,
        "1>0": 130.9,
        "1>1": 81.8,
    }
    assert ns(parsed, "local_latency") == 81.0


@pytest.mark.parametrize(
    "change",
    [
        lambda t: t.replace("\n", "\r\n"),
        lambda t: t.expandtabs(8),
        lambda t: t.replace("\t", " "),
        lambda t: "\n".join(line.strip() for line in t.splitlines()),
        lambda t: t.strip(),
        lambda t: "\n".join(f"> {line}" for line in t.splitlines()),
        lambda t: "".join(f"[1,0]<stdout>:{line}\n" for line in t.splitlines()),
        lambda t: (
            "\N{ZERO WIDTH NO-BREAK SPACE}$ ./mlc\nWarning: clock skew\n" + t + "$ numactl -H\nnode 0 size: 64162 MB\n"
        ),
        lambda t: t.replace("\t", "\t\t"),
        lambda t: t.replace("\t 128.4", "\t 128.4  // measured several times"),
        lambda t: re.sub(r"(?m)^( [0-9]{5})\t(.*)\t(.*)$", r"| \1 | \2 | \3 |", t),
    ],
    ids=[
        "crlf",
        "spaces",
        "one space",
        "unindented",
        "stripped",
        "quoted",
        "mpirun",
        "around",
        "tabs",
        "comment",
        "markdown",
    ],
)
def test_transport_damage_that_loses_nothing(change: Callable[[str], str]) -> None:
    text = fixture("v3.1_sockets.txt")
    assert parse(change(text).encode()).measurements == parse(text.encode()).measurements


def test_every_place_where_a_text_may_end() -> None:
    """A truncated number gives no figure, and no complete figure is lost."""
    for name in ("v3.1_sockets.txt", "v3.10_cxl.txt", "v3.7_modes.txt"):
        text = fixture(name)
        complete = parse(text.encode()).measurements
        values = {(m.metric, *sorted(m.labels.items()), m.value) for m in complete if not m.metric.startswith("local")}
        longest = 0
        for end in range(len(text)):
            try:
                parsed = parse(text[:end].encode())
            except ParseError:
                assert longest == 0
                continue
            cut = {
                (m.metric, *sorted(m.labels.items()), m.value)
                for m in parsed.measurements
                if not m.metric.startswith("local")
            }
            assert cut <= values, text[:end].splitlines()[-1]
            assert len(cut) >= longest
            longest = len(cut)
        assert longest == len(values)


def test_text_that_ends_inside_a_row() -> None:
    text = fixture("v3.11b_one_node.txt")
    cut = parse(text[: text.index("41102.7") + 5].encode())
    assert (ns(cut, "loaded_latency", delay="100"), find(cut, "loaded_bandwidth", delay="100")) == (268.5, None)
    assert "line 34: loaded bandwidth '41102' left out, where the text ends" in cut.notes
    assert cut.invalid == "the output is cut: it ends inside line 34"
    cut = parse(text[: text.index("268.50") + 5].encode())
    assert find(cut, "loaded_latency", delay="100") is None
    cut = parse(text[: text.index("\nMeasuring Loaded")].encode())
    assert cut.invalid == "the output is cut: no loaded latencies, cache-to-cache latencies"


def test_a_text_that_ends_inside_the_cache_to_cache_latencies() -> None:
    text = fixture("v3.1_sockets.txt")
    reader = text.index("Remote Socket LLC->LLC HITM latency (data address homed in reader")
    between = "the output is cut: no cache-to-cache latencies between nodes, homed in writer and reader"
    for end, reason in (
        (text.index("Local Socket L2->L2 HITM"), "no cache-to-cache latencies within a socket, of HIT and HITM"),
        (text.index("Remote Socket"), between.partition(": ")[2]),
        (reader, between.partition(": ")[2]),
        (text.rindex("            1"), "no 1 of 2 rows of cache-to-cache latencies"),
    ):
        assert parse(text[:end].encode()).invalid == f"the output is cut: {reason}"


def test_a_number_without_a_point_is_cut_wherever_it_stands() -> None:
    text = fixture("v3.11b_one_node.txt")
    parsed = parse(text.replace("41102.7", "41102").encode())
    assert find(parsed, "loaded_bandwidth", delay="100") is None
    assert "line 34: loaded bandwidth '41102' left out, which is not a figure of MLC" in parsed.notes


def test_a_process_killed_inside_a_row() -> None:
    text = fixture("v3.1_sockets.txt")
    parsed = parse((text[: text.index("  72.6")] + "Killed\n").encode())
    assert arrows(parsed, "idle_latency") == {"0>0": 71.9, "0>1": 128.4, "1>0": 127.7}
    parsed = parse((text[: text.index("\nMeasuring Loaded")] + "\nSegmentation fault (core dumped)\n").encode())
    assert "line 27: Segmentation fault (core dumped)" in parsed.notes


@pytest.mark.parametrize(
    ("old", "new", "note"),
    [
        ("\t 128.4\t", "\t", "line 5: row 0 of the idle latencies '0 71.9' left out, with 1 cells under 2 nodes"),
        ("\t 128.4\t", "\t 128.4\t 1.5\t", "line 5: row 0 of the idle latencies '0 71.9 128.4 1.5' left out, with 3 cells"),
        (" 128.4", "   inf", "line 5: idle latency 'inf' left out, which is not a figure of MLC"),
        (" 128.4", " 128,4", "line 5: idle latency '128,4' left out, which is not a figure of MLC"),
        (" 128.4", "  -1.0", "line 5: idle latency '-1.0' left out, which is not a figure of MLC"),
        (" 128.4", "   0.0", "line 5: idle latency '0.0' left out, which is not plausible"),
        (" 128.4", " 9999999.9", "line 5: idle latency '9999999.9' left out, which is not plausible"),
        ("103212.7", "999999999.9", "line 12: peak bandwidth '999999999.9' left out, which is not plausible"),
        ("Socket\t     0\t     1\t\n     0\t  71.9", "     0\t  71.9", "line 4: row 0 of the idle latencies"),
        ("\t182.65\t", "\t", "line 34: loaded row 00050 '00050 99120.8' left out, with 1 figures instead of 2"),
        ("ALL Reads        :\t103212.7\t\n", "", "peak bandwidth: no figure of all reads"),
        ("\n 00200", "\n 00050", "line 35: loaded latency '97.31' left out, because the same point already has a figure"),
    ],
)  # fmt: skip
def test_damage_that_costs_a_figure_is_told(old: str, new: str, note: str) -> None:
    text = fixture("v3.1_sockets.txt")
    complete = parse(text.encode())
    assert text.count(old) == 1
    parsed = parse(text.replace(old, new).encode())
    assert any(n.startswith(note) for n in parsed.notes), parsed.notes
    assert 0 < len(parsed.measurements) < len(complete.measurements)
    # the lowest of what is left is another headline; all else is as it was
    assert all(m in complete.measurements for m in parsed.measurements if m.metric != "local_latency")


def test_a_matrix_whose_title_is_lost_is_not_taken_for_another() -> None:
    text = fixture("v3.1_sockets.txt")
    title = "Remote Socket LLC->LLC HITM latency (data address homed in reader socket)\n"
    parsed = parse(text.replace(title, "").encode())
    assert arrows(parsed, "c2c_latency", homed="writer") == {"0>1": 91.2, "1>0": 90.8}
    assert not arrows(parsed, "c2c_latency", homed="reader")
    assert any("its table has no heading" in note for note in parsed.notes)


def test_a_second_matrix_under_one_heading_is_left_out() -> None:
    text = (
        "Measuring idle latencies (in ns)...\n"
        + 2 * "\t\tNuma node\nNuma node\t 0\t 1\n 0\t 80.1\t 120.2\n 1\t 121.0\t 80.4\n"
    )
    parsed = parse(text.replace("80.1", "81.5", 1).encode())
    assert arrows(parsed, "idle_latency") == {"0>0": 81.5, "0>1": 120.2, "1>0": 121.0, "1>1": 80.4}
    assert any("row 0 of the idle latencies" in note and "(and" not in note for note in parsed.notes)


def test_ratios_without_a_heading_are_read_by_the_mode() -> None:
    rows = "Using traffic with the following read-write ratios\nALL Reads        :\t280874.6\t\n3:1 Reads-Writes :\t267733.3\t\n"
    with pytest.raises(ParseError):
        parse(rows.encode())
    assert mb(parse(rows.encode(), ["mlc", "--peak_injection_bandwidth"]), "peak_read_bandwidth") == 280874.6
    parsed = parse((rows + fixture("v3.11b_one_node.txt")).encode())
    assert mb(parsed, "peak_read_bandwidth") == 41877.5
    note = (
        "line 2: bandwidth 'ALL Reads : 280874.6' left out, because its kind is unknown: peak or maximum (and 1 more)"
    )
    assert parsed.notes == (note,)
    text = f"Command line parameters: --max_bandwidth \n{rows}"
    assert mb(parse(text.encode()), "max_bandwidth", mix="3:1") == 267733.3


def test_modes_that_are_not_read_are_told() -> None:
    scan = (
        "Running memory bandwidth scan using 8 threads on numa node 0 accessing memory on numa node 0\n"
        "phys_addr\tGBaligned_page#\tMB/sec\n---------\t---------------\t------\n0x240000000\t9\t31822\n"
    )
    parsed = parse((fixture("v3.11b_one_node.txt") + scan).encode())
    assert parsed.measurements == read("mlc", "v3.11b_one_node.txt").measurements
    assert any("'Running memory bandwidth scan using 8 threads" in note for note in parsed.notes)
    with pytest.raises(ParseError, match="mlc line 1: expected .* in a mode that is read, got 'Running memory"):
        parse(scan.encode())


@pytest.mark.parametrize(
    ("text", "place", "got"),
    [
        ("", "mlc: expected latencies or bandwidths", "'no output'"),
        ("bash: ./mlc: cannot execute binary file\n", "mlc line 1: expected latencies", "cannot execute binary file'"),
        ("# ./mlc\nKilled\n# \n", "mlc line 2: expected latencies", "got 'Killed'"),
        (
            "Intel(R) Memory Latency Checker - v3.11\nMeasuring idle latencies (in ns)...\n\t\tNuma node\n",
            "mlc line 2: expected figures under the heading of idle latencies",
            "got 'Numa node'",
        ),
        (
            "Intel(R) Memory Latency Checker - v3.11\n",
            "mlc line 1: expected latencies or bandwidths measured by Intel Memory Latency Checker",
            "Checker - v3.11'",
        ),
        ("Each iteration took 78.2 base frequency clocks (  31", "mlc line 1: expected latencies", "clocks (  31'"),
    ],
)
def test_what_holds_no_figure_is_an_error_that_says_so(text: str, place: str, got: str) -> None:
    with pytest.raises(ParseError) as error:
        parse(text.encode())
    assert str(error.value).startswith(place)
    assert str(error.value).endswith(got)


def test_write_mixes_by_their_numbers() -> None:
    assert words.options(["--loaded_latency", "-W7"]).mix == "2:1_nt"
    assert words.options(["--loaded_latency", "-W99"]).mix == "W99"
    assert words.options(["--loaded_latency", "-R"]).mix is None
    assert words.options(["-bandwidth_matrix", "-W3"]).section == "matrix"
