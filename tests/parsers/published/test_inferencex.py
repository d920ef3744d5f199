"""InferenceX's points as machines, by a fixture after its public form: figures of whole machines, loads on one frontier."""

from __future__ import annotations

import pytest

from fleetmark.base.errors import FleetmarkError
from fleetmark.parsers.published.inferencex import read
from tests.parsers.reading import FIXTURES

RAW = (FIXTURES / "inferencex" / "agg_schema.json").read_bytes()


def test_a_machine_is_a_kind_of_accelerator_under_a_framework() -> None:
    table = read(RAW)
    assert dict(table.machines) == {
        "b200-trt trt fp4": {"hw": "b200-trt", "framework": "trt", "precision": "fp4", "gpus": "1"}
    }
    figures = {(r.measurement.case, r.measurement.metric): r.measurement.value for r in table.rows}
    case = "p1024-o1024-c64-tp4-ep1"
    assert figures[case, "output_tokens_per_second"] == pytest.approx(4 * 2600.25)
    assert figures[case, "accelerators"] == 4 and figures[case, "interactivity"] == 166.67


def test_power_is_of_all_boards_where_it_is_valid() -> None:
    table = read((FIXTURES / "inferencex" / "agg_disagg_schema.json").read_bytes())
    (row,) = [r for r in table.rows if r.measurement.metric == "accelerator_power"]
    assert row.measurement.case == "p1024-o1024-c1024" and row.measurement.value == 10_800
    assert row.measurement.labels == {"source": "GPU boards"}


def test_a_point_without_its_gpus_is_left_out_and_counted() -> None:
    two = RAW.replace(b'"tp": 4', b'"tp": null', 1)
    assert dict(read(two).left_out) == {"without hw, or the number of GPUs": 1}


def test_a_point_that_failed_is_left_out_and_counted() -> None:
    failed = RAW.replace(b'"tp": 4,', b'"tp": 4, "benchmark_outcome": {"status": "failed"},', 1)
    assert dict(read(failed).left_out) == {"whose run failed": 1}
    several = RAW.replace(b'"tp": 4,', b'"tp": 4, "pp": 2, "pcp_size": 1,', 1)
    assert "p1024-o1024-c64-tp4-pp2-ep1" in {r.measurement.case for r in read(several).rows}


@pytest.mark.parametrize(
    ("raw", "words"),
    [(b"", "empty"), (b"{}", "no point of InferenceX"), (RAW[:900], "damaged or incomplete"), (b"[1, 2]", "no point")],
)
def test_what_is_none_is_refused(raw: bytes, words: str) -> None:
    with pytest.raises(FleetmarkError, match=words):
        read(raw)
