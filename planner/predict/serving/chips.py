"""Describe chips by their data sheets, with measured rates in place of those in the sheet."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace

from fleetmark.base.errors import FleetmarkError
from fleetmark.planner.peak import table
from fleetmark.planner.predict.serving.roofline import SIZES, Chip

MEASURED, GIVEN = "measured", "given by the user"  # sources of rates that are not from a data sheet
# Short names, with the board that they mean; peaks.yml distinguishes boards.
_BOARDS: Mapping[str, str] = {"H100": "H100 80GB HBM3", "H100 SXM": "H100 80GB HBM3", "A100": "A100-SXM4-80GB"}
_GENERATIONS: Mapping[str, str] = {
    r"\bG?B[23]00\b": "Blackwell",
    r"\bH(100|200|800|20)\b": "Hopper",
    r"\bL(4|40S?)\b": "Ada",
    r"\bA[18]00|\bA10\b": "Ampere",
    r"\bMI35[05]X\b": "CDNA 4",
    r"\bMI3(00|25)X\b": "CDNA 3",
    r"\bMI250X?\b": "CDNA 2",
}
# Shares of the data sheet that benchmarks of a device usually reach. Efficiencies of serving are relative to data
# sheets, so measured rates are divided by these shares. Memory: copies reach 0.82 to 0.90 on Blackwell. Products: an
# assumption, as public figures differ between chips and clocks. Bus: NCCL-tests' all-reduce reaches 482 GB/s on 8 H100
# with 450 on the sheet, as switches reduce. Pair: copies between two H100 reach 364 of 450 GB/s.
USUAL: Mapping[str, float] = {"memory": 0.88, "products": 0.72, "bus": 1.07, "pair": 0.81}


def from_sheet(name: str) -> Chip:
    """Return a chip by its device name.

    Raise FleetmarkError if the table lacks its memory bandwidth or its rate of products.
    """
    board = _BOARDS.get(name.upper().strip(), name.strip())
    memory, products = table.memory(board), table.dense(board, "bf16")
    if memory is None or products is None:
        known = "H100, H200, B200, GB200, B300, A100, L40S, MI300X, MI325X, MI355X"
        raise FleetmarkError(f"--chip {name!r}: no data sheet of it is in the table; known are {known} and others")
    dense = {p: entry.value for p in SIZES if (entry := table.dense(board, p))}
    links, each, pair = table.nvlinks(board), table.nvlink(board), table.pair_link(board)
    link = pair.value if pair else links.value * each.value if links and each else 0.0
    size, watts = table.memory_size(board), table.watts(board)
    sheet = {"memory": memory.source, "products": products.source}
    return Chip(
        name=name.strip(),
        generation=generation(board),
        memory=memory.value,
        dense=dense,
        link=link,
        is_switched=pair is None,
        size=size.value if size else 0.0,
        watts=watts.value if watts else 0.0,
        source={
            **sheet,
            **({"link": (pair or each or memory).source} if link else {}),
            **({"power": watts.source} if watts else {}),
        },
    )


def generation(name: str) -> str:
    """Return the generation of a device by its name, or the name itself if the generation is unknown."""
    return next((g for pattern, g in _GENERATIONS.items() if re.search(pattern, name, re.IGNORECASE)), name)


def measured(chip: Chip, rates: Mapping[str, float]) -> Chip:
    """Return a chip with measured rates in place of the sheet's.

    ``rates`` has the rates of ``memory`` and of the ``bus`` of an all-reduce, or else of a ``pair`` of devices, in B/s.
    It also has the rates of products in ``bf16``, ``fp8`` and ``fp4``, in operations per second. Precisions that were
    not measured change by the same factor as bf16.
    """
    dense, source = dict(chip.dense), dict(chip.source)
    memory, link, is_switched = chip.memory, chip.link, chip.is_switched
    if "bf16" in rates:
        change = rates["bf16"] / USUAL["products"] / chip.dense["bf16"]
        dense = {p: rate * change for p, rate in dense.items()}
    dense |= {p: rates[p] / USUAL["products"] for p in dense if p in rates}
    if rates.keys() & dense.keys():
        source["products"] = MEASURED
    if "memory" in rates:
        memory, source["memory"] = rates["memory"] / USUAL["memory"], MEASURED
    if "bus" in rates:
        link, is_switched, source["link"] = rates["bus"] / USUAL["bus"], True, MEASURED
    elif "pair" in rates:
        link, source["link"] = rates["pair"] / USUAL["pair"], MEASURED
    return replace(chip, memory=memory, dense=dense, link=link, is_switched=is_switched, source=source)
