"""Compute a table of the centre, number of values and spread for each host and benchmark."""

from fleetmark.record.figures.centres import (
    BENCHMARK,
    DEVICES_POWER,
    EVERYTHING,
    HEADLINES,
    POWER,
    Figures,
    of_metrics,
    read,
    values,
)
from fleetmark.record.figures.side import PAIRS, SideFigures, of_side

__all__ = [
    "BENCHMARK",
    "DEVICES_POWER",
    "EVERYTHING",
    "HEADLINES",
    "PAIRS",
    "POWER",
    "Figures",
    "SideFigures",
    "of_metrics",
    "of_side",
    "read",
    "values",
]
