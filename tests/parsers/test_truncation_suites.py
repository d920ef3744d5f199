"""SPEC CPU, MLPerf and the collectives: output that is cut off anywhere is invalid, or has every figure of the whole."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from tests import corpus
from tests.parsers.outputs import SUITES
from tests.parsers.reading import FIXTURES
from tests.parsers.truncation import cuts, lost_figures

_MOST_CUTS = 130  # of one file: of longer ones, cuts spread evenly over it
_LARGE = 15_000  # bytes: what costs milliseconds to parse is cut at fewer places
_FEW_CUTS = 50

# Formats without a last line are whole by the size that the command asked for.
COMMANDS: dict[str, Sequence[str]] = {
    "hccl_failed.txt": ("reduce_scatter_test", "-e", "16K", "-f", "2"),
    "mscclpp_records.jsonl": ("allgather_test_perf", "-e", "1M", "-f", "2"),
    "2025_records.csv": ("reduce_scatter_perf", "-e", "2M", "-f", "2"),
}
# Cuts that cannot be detected, by their lines. In each of these files several results follow one
# another, each complete by itself; a text that ends between two of them is that of fewer.
BETWEEN_TESTS: dict[str, tuple[tuple[int, int], ...]] = {
    "2.17.6_two_tests_messages.txt": ((31, 36),),
    "2.8_five_tests_one_failed.txt": ((19, 21), (39, 41), (59, 61)),
    "allreduce_2.17.8_h100x8_five_tests.log": ((31, 36), (66, 71), (101, 106), (136, 141)),
    "v100x12_five_collectives_FAILED_2020.txt": ((107, 109), (161, 163), (215, 217)),
    "mscclpp_in_place_then_out.txt": ((23, 25),),
    # Behind run_stop (line 15) a throughput may follow, or not: with one run that is unknown.
    "resnet_three_runs.txt": ((15, 19), (32, 35)),
}


def outputs() -> list[object]:
    """One pytest parameter for each fixture and each file of the corpus: the tool and the path."""
    params: list[object] = []
    for tool in SUITES:
        ours = [p for p in sorted((FIXTURES / tool).glob("*")) if p.suffix != ".md"]
        more = [p.values[0] for p in corpus.rows(tool) if isinstance(p.values[0], Path) and p.values[0].is_file()]
        params += [pytest.param(tool, path, id=f"{tool}-{path.name}") for path in (*ours, *more)]
    return params


def places(raw: bytes) -> list[int]:
    """Where to cut: after every line and at places within lines, evenly fewer of a long text; always near its end."""
    sizes = cuts(raw, inside=30, tail=40)
    step = max(1, len(sizes) // (_FEW_CUTS if len(raw) > _LARGE else _MOST_CUTS))
    return sorted({*sizes[::step], *sizes[-5:]})


@pytest.mark.parametrize(("tool", "path"), outputs())
def test_output_that_is_cut(tool: str, path: Path) -> None:
    raw = path.read_bytes()
    between = BETWEEN_TESTS.get(path.name, ())
    losses = lost_figures(tool, raw, COMMANDS.get(path.name, ()), places(raw))
    assert [str(loss) for loss in losses if not any(first <= loss.line <= last for first, last in between)] == []


@pytest.mark.parametrize("name", sorted(BETWEEN_TESTS))
def test_what_is_called_invisible_is_so(name: str) -> None:
    paths = [path for tool in SUITES for path in (FIXTURES / tool).glob(name)]
    paths += [p.values[0] for tool in SUITES for p in corpus.rows(tool) if Path(p.values[0]).name == name]
    if not paths:
        pytest.skip("corpus absent")
    path, raw = Path(paths[0]), Path(paths[0]).read_bytes()
    tool = path.parent.name
    ends = [0, *(n for n, byte in enumerate(raw, 1) if byte == 0x0A)]
    for first, _ in BETWEEN_TESTS[name]:
        losses = lost_figures(tool, raw, (), [ends[first - 1] - 12, ends[first]])
        assert [(loss.line, loss.at_line_end) for loss in losses] == [(first, True)]
