"""Parse the text (``-S``) of memcaslap and memaslap, from a manual run or from Fleetmark's driver.

Case: ``get9-set1`` from the printed proportions. Metrics: ``requests_per_second`` in 1/s (higher is better);
``latency_mean``, ``_min``, ``_max``, ``_p50``, ``_p99`` in s (lower is better); ``clients``, the number of connections.
The bins of the histogram are powers of two in microseconds (row ``8:`` begins with [128 us, 256 us)). A percentile is
the upper end of its bin, so it is at least the true value and less than twice as large. A run is ``invalid`` if more
than 1% of the reads missed.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from fleetmark.base.errors import ParseError
from fleetmark.base.measurement import Better, Measurement, Parsed
from fleetmark.parsers.kit.cut import cut
from fleetmark.parsers.kit.load import last, latencies
from fleetmark.parsers.kit.text import decode, number

_TOOL = "memcached"
_END = re.compile(r"^Run time: ([0-9.]{1,12})s Ops: ([0-9]{1,15}) TPS: ([0-9]{1,12}) Net_rate: ", re.MULTILINE)
_TOTAL = re.compile(r"^Total Statistics \([0-9]{1,15} events\)$", re.MULTILINE)
_ONE = re.compile(r"^ {1,8}(Min|Max|Avg): {1,12}([0-9]{1,12})$", re.MULTILINE)
_BINS = re.compile(r"^ {4,10}([0-9]{1,2}):((?: {1,12}[0-9]{1,12}){1,4})$", re.MULTILINE)
_CLIENTS = re.compile(r"^concurrency: ([0-9]{1,7})$", re.MULTILINE)
_COUNT = re.compile(r"^(cmd_get|get_misses): ([0-9]{1,15})$", re.MULTILINE)
_GET = re.compile(r"^get proportion: get_prop=([0-9]\.[0-9]{1,4})$", re.MULTILINE)
_MISSED = 0.01  # maximum share of missed reads


def parse(raw: bytes, command: Sequence[str] = ()) -> Parsed:
    """Return the run that counts. Raise ParseError if it has no rate."""
    load = last(decode(raw))
    text = load.section.text
    end = _END.search(text)
    rate = number(end[3]) if end else None
    if not rate:
        n, line = next(((n, line) for n, line in reversed(load.section.lines) if line.strip()), (1, "no output"))
        raise ParseError(_TOOL, "memcaslap's line Run time", line=n, got=line)
    share = _GET.search(text)
    reads = round(10 * (number(share[1]) or 0)) if share else 9
    case = f"get{reads}-set{10 - reads}"
    total = _TOTAL.search(text)
    block = text[total.end() :] if total else ""
    times = {{"Avg": "mean"}.get(name, name.lower()): int(us) * 1e-6 for name, us in _ONE.findall(block)}
    bins = {int(first) + n: int(word) for first, words in _BINS.findall(block) for n, word in enumerate(words.split())}
    percentiles = {f"p{share}": _below(bins, share / 100) for share in (50, 99)}
    measurements = [Measurement(_TOOL, case, "requests_per_second", rate, "1/s", better=Better.HIGHER)]
    measurements += latencies(_TOOL, case, {**times, **percentiles})
    if (clients := _CLIENTS.search(text)) and int(clients[1]):
        measurements.append(Measurement(_TOOL, case, "clients", float(clients[1]), "1", better=Better.NONE))
    return Parsed(_TOOL, tuple(measurements), invalid=_missed(text) or load.invalid(percentiles["p99"]) or _cut(bins))


def _below(bins: Mapping[int, int], share: float) -> float | None:
    """Return the upper end, in s, of the bin that contains the quantile ``share`` of the requests."""
    reached, total = 0, sum(bins.values())
    for power in sorted(bins):
        reached += bins[power]
        if total and reached >= share * total:
            return 2.0**power * 1e-6
    return None


def _missed(text: str) -> str | None:
    counts = {name: int(count) for name, count in _COUNT.findall(text)}
    missed, requested = counts.get("get_misses", 0), counts.get("cmd_get", 0)
    return (
        f"{missed} of {requested} reads missed: the server has too little memory"
        if missed > _MISSED * requested
        else None
    )


def _cut(bins: Mapping[int, int]) -> str | None:
    return None if bins else cut("no histogram of all requests; run it with -S")
