"""Spare Cores' table of cloud types: what a column is, what is left out, and the corpus."""

from __future__ import annotations

import pytest

from fleetmark.base.errors import FleetmarkError
from fleetmark.parsers.published import Table, sparecores
from tests.corpus import ROOT

CORPUS = ROOT / "sparecores_published" / "sc_servers.csv"
HEAD = (
    "vendor,server,arch,cpu_model,cpus,sockets,threads_per_core,stressng_full_1core_bogo_ops_s,"
    "stressng_full_best_bogo_ops_s,bw_mem_rd_256MB_MBps,bw_mem_rd_512MB_MBps,llm_SmolLM_pp_512,llm_gemma_tg_128,gpu,"
    "nvbw_host_to_device_memcpy_ce_sum_GBps,nvbw_device_local_copy_sum_GBps"
)
SMALL = "aws,m7i.large,x86_64,Xeon 8488C,2,1,2,1900,1950,20000.5,20100,80,9.5,,,"
LARGE = 'gcp,a3,x86_64,Xeon 8481C,208,2,2,1800,150000,900000,910000,9000,200,"NVIDIA H100, NVIDIA H100",55.5,2400'


def read(*lines: str) -> Table:
    return sparecores.read("\n".join(lines).encode())


def test_a_row_is_a_type_and_a_column_a_figure() -> None:
    table = read(HEAD, SMALL, LARGE, SMALL)
    row_by_case = {(r.machine, r.measurement.case): r for r in table.rows}
    assert len(row_by_case) == len(table.rows) == 6 + 8
    best = row_by_case["aws/m7i.large", "stress-ng div16"]
    assert (best.measurement.value, best.measurement.unit, best.class_, best.place) == (
        1950,
        "1/s",
        "cpu-int",
        "line 2",
    )
    assert row_by_case["aws/m7i.large", "stress-ng div16 1 core"].class_ == "cpu-int-speed"
    assert row_by_case["aws/m7i.large", "bw_mem rd 256MB"].measurement.value == 20000.5e6
    assert [row_by_case["gcp/a3", f"bw_mem rd {n}MB"].headline for n in (256, 512)] == [False, True]
    assert row_by_case["gcp/a3", "llama-bench SmolLM pp512"].class_ == "llm-prompt"
    assert row_by_case["gcp/a3", "llama-bench gemma tg128"].class_ == "llm-answer"
    assert row_by_case["gcp/a3", "nvbandwidth host_to_device_memcpy_ce"].measurement.value == 55.5e9
    assert row_by_case["gcp/a3", "nvbandwidth device_local_copy"].class_ == "gpu-memory"
    assert table.machines["gcp/a3"] == {
        "vendor": "gcp",
        "server": "a3",
        "arch": "x86_64",
        "processor": "Xeon 8481C",
        "threads": "208",
        "sockets": "2",
        "threads_per_core": "2",
        "cores": "104",
        "accelerator": "NVIDIA H100",
        "gpus": "2",
    }
    assert table.left_out == {"not measured on that type": 2, "the same row again": 1}
    assert table.notes == ("the table has no prices: --per money needs columns price, currency, price_date",)


def test_prices_need_a_currency() -> None:
    table = read(f"{HEAD},price,currency,price_date", f"{SMALL},0.1,USD,2026-01-05", f"{LARGE},9,,")
    assert table.machines["aws/m7i.large"]["price"] == "0.1"
    assert table.machines["aws/m7i.large"]["price_date"] == "2026-01-05"
    assert "price" not in table.machines["gcp/a3"]
    assert table.notes == ("1 prices are left out because they have no currency; add the column currency",)


def test_a_list_of_gpus_that_the_cell_cuts_has_no_number() -> None:
    cut = ", ".join(["NVIDIA A100-SXM4-80GB"] * 8)[:120]
    table = read(HEAD, LARGE.replace("NVIDIA H100, NVIDIA H100", cut))
    assert table.machines["gcp/a3"]["accelerator"] == "NVIDIA A100-SXM4-80GB"
    assert "gpus" not in table.machines["gcp/a3"]
    assert table.notes[0].startswith("1 types list more GPUs")


def test_figures_that_are_none() -> None:
    table = read(HEAD, SMALL.replace("1900", "0").replace("1950", "-3").replace("20100", "n/a"))
    assert table.left_out["stressng_full_1core_bogo_ops_s: zero"] == 1
    assert table.left_out["stressng_full_best_bogo_ops_s: negative"] == 1
    assert table.left_out["bw_mem_rd_512MB_MBps: not a number"] == 1


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        (("machine,benchmark\na,b",), "without vendor, server, cpu_model"),
        (("vendor,server,cpu_model\na,b,c",), "with no figure"),
        ((HEAD, SMALL.replace("aws", "")), "line 2: no vendor"),
        ((HEAD, SMALL.replace("m7i.large", "")), "line 2: no server"),
        ((HEAD, "aws,x,,,,,,,,,,,,,,"), "none of its 1 rows has a figure"),
        ((HEAD,), "without rows"),
    ],
)
def test_bad_tables_are_one_sentence(lines: tuple[str, ...], expected: str) -> None:
    with pytest.raises(FleetmarkError) as error:
        read(*lines)
    assert expected in str(error.value) and "\n" not in str(error.value)


@pytest.mark.skipif(not CORPUS.exists(), reason=f"corpus absent: no {CORPUS} (set FLEETMARK_CORPUS)")
def test_the_published_table() -> None:
    table = sparecores.read(CORPUS.read_bytes())
    assert (table.read, len(table.machines), len(table.rows)) == (3614, 3614, 46103)
    assert set(table.left_out) == {"not measured on that type"}
    assert sum("gpus" in labels for labels in table.machines.values()) == 126
    assert {r.class_ for r in table.rows} == {
        "cpu-int",
        "cpu-int-speed",
        "mem-bw",
        "llm-prompt",
        "llm-answer",
        "gpu-link",
        "gpu-memory",
    }
