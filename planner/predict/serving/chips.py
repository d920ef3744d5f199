"""Chips by their data sheets, with measured rates in place of those of the sheet."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace

from fleetmark.base.errors import FleetmarkError
from fleetmark.planner.peak import table
from fleetmark.planner.predict.serving.roofline import SIZES, Chip

# Names without the board that they mean; peaks.yml tells boards apart.
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
# What benchmarks of a device usually reach of its sheet, by which a measured rate is divided: efficiencies of serving
# are shares of sheets. Memory: copies of 0.82 to 0.90 of B200 and H100. Products: bf16 of 0.65 to 0.80 of H100 and
# A100. Link: the bus bandwidth of an all-reduce of 8 H100 is 482 GB/s, of 450 on the sheet (in-network reduction).
USUAL: Mapping[str, float] = {"memory": 0.88, "products": 0.72, "link": 1.07}


def from_sheet(name: str) -> Chip:
    """Return a chip by the name of its device.

    Raise FleetmarkError if the table lacks its memory bandwidth or its products.
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
        source={**sheet, **({"link": (pair or each or memory).source} if link else {})},
    )


def generation(name: str) -> str:
    """Return the generation of a device by its name; the name itself if no generation is known."""
    return next((g for pattern, g in _GENERATIONS.items() if re.search(pattern, name, re.IGNORECASE)), name)


def measured(chip: Chip, rates: Mapping[str, float]) -> Chip:
    """Return a chip with measured rates in place of the sheet's.

    ``rates``: ``memory`` and ``link`` (bus bandwidth) in B/s, and operations a second of ``bf16``, ``fp8`` and ``fp4``.
    Precisions that were not measured change as bf16 does.
    """
    dense = dict(chip.dense)
    source = dict(chip.source)
    if "bf16" in rates:
        change = rates["bf16"] / USUAL["products"] / chip.dense["bf16"]
        dense = {p: rate * change for p, rate in dense.items()}
        source["products"] = "measured"
    dense |= {p: rates[p] / USUAL["products"] for p in dense if p in rates}
    memory, link = chip.memory, chip.link
    if "memory" in rates:
        memory, source["memory"] = rates["memory"] / USUAL["memory"], "measured"
    if "link" in rates:
        link, source["link"] = rates["link"] / USUAL["link"], "measured"
    is_switched = chip.is_switched or "link" in rates
    return replace(chip, memory=memory, dense=dense, link=link, is_switched=is_switched, source=source)
