"""nccl-tests' output without results, or damaged: the reason in a sentence, and nothing invented."""

from __future__ import annotations

import pytest

from fleetmark.base.errors import ParseError
from fleetmark.parsers.nccl_tests import parse
from tests.parsers.collectives import HEADING, error, parsed, raw
from tests.parsers.reading import FIXTURES

# ---- nothing to measure


@pytest.mark.parametrize(
    ("name", "message"),
    [
        (
            "failed_nccl.txt",
            "nccl_tests line 18: expected rows of results under the heading of sendrecv (it failed or hung at the first "
            "size), got \"larch01: Test NCCL failure common.cu:415 'unhandled system error",
        ),
        (
            "failed_cuda.txt",
            'nccl_tests line 4: expected rows of results after the settings, got "hazel3: Test CUDA failure common.cu:1044 '
            "'invalid device ordinal'\"",
        ),
        (
            "failed_slots.txt",
            "nccl_tests line 2: expected rows of results, got 'There are not enough slots available in the system to "
            "satisfy the 16'",
        ),
        (
            "failed_pmi.txt",
            "nccl_tests line 1: expected rows of results, got 'slurmstepd: error: mpi/pmix_v4: rowan01 [0]: "
            "pmixp_server.c:312: cannot reach rowan02'",
        ),
        (
            "hung_after_devices.txt",
            "nccl_tests line 13: expected rows of results after the device list of broadcast: 8 ranks (it failed or hung in "
            "its set-up), got 'the end of the text'",
        ),
    ],
)
def test_runs_without_results_say_why(name: str, message: str) -> None:
    assert error(raw(name)).startswith(message)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "nccl_tests: expected the table of a collective's test, got 'no output'"),
        (
            "./all_reduce_perf: error while loading shared libraries: libnccl.so.2\n",
            "nccl_tests line 1: expected rows of results, got './all_reduce_perf: error while loading shared libraries: "
            "libnccl.so.2'",
        ),
        (
            "[1,3]<stderr>:/bin/all_reduce_perf: No such file or directory\n",
            "nccl_tests line 1: expected rows of results, got '/bin/all_reduce_perf: No such file or directory'",
        ),
        ("hello\nworld\n", "nccl_tests line 2: expected the table of a collective's test, got 'world'"),
        (HEADING + "\n", "nccl_tests line 1: expected rows of results under the heading"),
        (
            HEADING
            + "\n           0             0   float     sum      -1     7.59    0.00    0.00      0     7.5    0.00    0.00      0\n",
            "nccl_tests line 2: expected rows in which data moved",
        ),
        (
            HEADING + "\n     1048576        262144     float     sum    26.27   39.92\n",
            "nccl_tests line 1: expected whole rows",
        ),
        ('{"version":3,"env":["A=b"],"config":{}}', "nccl_tests: expected results in the JSON output"),
        ('{"version":3,"env":["A=b"],"conf', "nccl_tests line 1: expected complete results in the JSON output"),
    ],
)
def test_other_texts_without_results(text: str, message: str) -> None:
    assert error(text).startswith(message)


@pytest.mark.parametrize("name", ["mscclpp_in_place_then_out.txt", "nccom_gib.txt", "hccl_all_reduce.txt"])
def test_output_of_the_variants_is_sent_on(name: str) -> None:
    message = error((FIXTURES / "nccl_variants" / name).read_text())
    assert "(use nccl_variants for mscclpp-test, nccom-test and hccl_test)" in message


# ---- damage


def damaged() -> list[tuple[str, str]]:
    texts = {name: raw(name) for name in ("2.17.6_two_tests_messages.txt", "2.8_five_tests_one_failed.txt")}
    texts_by_damage = [
        (f"{name} cut at {size}", text[:size]) for name, text in texts.items() for size in range(0, len(text), 97)
    ]
    for name, text in texts.items():
        lines = text.splitlines(keepends=True)
        texts_by_damage += [
            (f"{name} without line {n}", "".join(lines[:n] + lines[n + 1 :])) for n in range(len(lines))
        ]
        texts_by_damage += [(f"{name} from line {n}", "".join(lines[n:])) for n in range(len(lines))]
    return texts_by_damage


def test_damage_invents_nothing() -> None:
    undamaged = {
        (m.metric, m.value)
        for name in ("2.17.6_two_tests_messages.txt", "2.8_five_tests_one_failed.txt")
        for part in (raw(name), *raw(name).split("Running: "))
        for m in (parse(part.encode()).measurements if "algbw" in part else ())
    }
    survived = 0
    for title, text in damaged():
        try:
            result = parsed(text)
        except ParseError:
            continue
        survived += 1
        # A shorter table has another peak, and a shorter device list fewer ranks.
        invented = {
            (m.metric, m.value)
            for m in result.measurements
            if m.metric not in ("peak_busbw", "ranks", "nodes") and (m.metric, m.value) not in undamaged
        }
        assert not invented, title
    assert survived > 100
