"""Find implausible figures of a campaign, which measured a cache or the host itself instead of the device."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from fleetmark.base.text import Message, message
from fleetmark.record.figures.metric import Metric
from fleetmark.reports.campaign.against import Against
from fleetmark.reports.campaign.deviation import title
from fleetmark.reports.campaign.view import View
from fleetmark.reports.kit import format as fmt

FASTER_WRITES = 2.0  # ratio of writes to reads; no drive writes so much faster than it reads
FASTEST_DISK_S = 5e-6  # shortest plausible access time of a drive; the fastest drives (Optane on PCIe) take about 10 µs
NETWORK = frozenset(("net", "net-flow"))  # classes that a single host cannot measure
ABOVE_PEAK = 1.05  # share of the peak above which the data must have come from a cache
_ARRAYS = re.compile(r"--set[= ](\S+)\.array_elements=(\d+)")
_ELEMENT, _TIMES_CACHE = 8, 4  # bytes of an element; arrays must exceed the last-level caches by this factor


@dataclass(frozen=True, slots=True)
class _Rate:
    metric: Metric
    value: float
    text: str


def suspects(view: View, against: Against) -> Iterator[Message]:
    """Yield a sentence for each unreliable headline, with what to do about it."""
    yield from _buffered_writes(view)
    yield from _in_memory(view)
    yield from _loopback(view)
    yield from _in_cache(view, against)


def _buffered_writes(view: View) -> Iterator[Message]:
    """Yield the storage benchmarks that write much faster than they read."""
    rates: dict[tuple[str, str, str], dict[str, _Rate]] = {}
    for metric, rows, shown in view.headlines:
        way, _, rest = metric.metric.partition("_")
        if way not in ("read", "write") or not str(rows["class"].iloc[0]).startswith("disk") or metric.unit == "s":
            continue
        value = float(rows["value"].max())
        key = metric.workload, re.sub("read|write", "", metric.case), rest
        rates.setdefault(key, {})[way] = _Rate(metric, value, shown.quantity(value))
    for pair in rates.values():
        if len(pair) == 2 and pair["write"].value > FASTER_WRITES * pair["read"].value:
            yield message(
                "Suspect: {benchmark} writes {write} but reads only {read}, so the writes went to the page cache. "
                "Repeat it with direct I/O on a disk that supports it",
                benchmark=title(pair["write"].metric),
                write=pair["write"].text,
                read=pair["read"].text,
            )


def _in_memory(view: View) -> Iterator[Message]:
    """Yield the storage benchmark with the lowest latency, if no drive can be that fast."""
    latencies = [
        (float(rows["value"].min()), metric, shown)
        for metric, rows, shown in view.headlines
        if str(rows["class"].iloc[0]).startswith("disk") and metric.unit == "s"
    ]
    value, metric, shown = min(latencies, key=lambda item: item[0], default=(FASTEST_DISK_S, None, None))
    if metric and shown and value < FASTEST_DISK_S:
        yield message(
            "Suspect: {benchmark} of {value} is faster than any drive, so memory answered. Repeat it with direct I/O "
            "on a disk that supports it",
            benchmark=title(metric),
            value=shown.quantity(value),
        )


def _loopback(view: View) -> Iterator[Message]:
    """Yield the network benchmarks that a single host ran with itself."""
    if len(view.hosts) != 1:
        return
    names = {metric.workload for metric, rows, _ in view.headlines if str(rows["class"].iloc[0]) in NETWORK}
    for workload in sorted(names):
        yield message(
            "Suspect: {workload} ran over the loopback of one host, so it measured no network. Run it on two hosts",
            workload=fmt.clean(workload),
        )


def _in_cache(view: View, against: Against) -> Iterator[Message]:
    """Yield the memory benchmarks whose data fitted into a cache."""
    small = _small_arrays(view)
    for metric, rows, shown in view.headlines:
        if str(rows["class"].iloc[0]) != "mem-bw":
            continue
        value = float(rows["value"].max())
        shares = [against.context_of(metric, side).share.value or 0.0 for side in view.generations]
        values = {"benchmark": title(metric), "value": shown.quantity(value)}
        if max(shares, default=0.0) > ABOVE_PEAK:
            yield message(
                "Suspect: {benchmark} shows {value}, more than the peak of the memory, so its data fitted into the "
                "caches. Repeat it with larger arrays",
                **values,
            )
        elif metric.workload in small:
            yield message(
                "Suspect: {benchmark} shows {value}, but its arrays of {size} fit into the caches. Repeat it without "
                "--set {workload}.array_elements",
                size=fmt.size(small[metric.workload]),
                workload=fmt.clean(metric.workload),
                **values,
            )


def _small_arrays(view: View) -> Mapping[str, int]:
    """Return the size of an array in bytes for each workload whose arrays were set too small for some host."""
    caches = [h.facts.cpu.llc_bytes for h in view.hosts if h.facts and h.facts.cpu.llc_bytes]
    settings = _ARRAYS.findall(" ".join(view.results.campaign.command))
    sizes = {workload: int(elements) * _ELEMENT for workload, elements in settings}
    return {w: size for w, size in sizes.items() if caches and size < _TIMES_CACHE * max(caches)}
