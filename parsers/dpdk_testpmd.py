"""Parse the output of dpdk-testpmd, versions 19 to 23: ``--stats-period`` and the statistics at the end.

Case: the forward mode (``io``, ``txonly``). Each port (subject ``port0``) has medians over the periods except the
first, which begins before the traffic. The medians are ``tx_rate`` and ``rx_rate`` in 1/s, and ``tx_bandwidth`` and
``rx_bandwidth`` in B/s (Tx-bps are bits; zero, as from the null driver, is not measured).

All ports together have ``packet_rate``, the sum of the rates sent (for rxonly, received). ``tx_packets``,
``rx_packets`` and ``loss`` come from the statistics at the end. Output without these statistics is truncated.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from statistics import median

from fleetmark.base.errors import ParseError
from fleetmark.base.measurement import Better, Measurement, Parsed
from fleetmark.parsers.kit.cut import cut
from fleetmark.parsers.kit.text import decode, numbered

_TOOL = "dpdk_testpmd"
_MOST_PORTS, _LONGEST = 256, 200
_MODE = re.compile(r"Set (\w{1,20}) packet forwarding mode")
_PORT = re.compile(r"\s*#+ NIC statistics for port (\d{1,4})\s+#+")
_RATE = re.compile(r"\b([RT]x)-(pps|bps):\s+(\d{1,18})\b")
_TOTALS = re.compile(r"\s*\++ Accumulated forward statistics for all ports\s*\++")
_COUNTS = re.compile(
    r"\s*([RT]X)-packets:\s+(\d{1,18})\s+[RT]X-dropped:\s+(\d{1,18})\s+[RT]X-total:\s+(\d{1,18})\b", re.ASCII
)
_FAULT = re.compile(r"\s*(?:EAL: )?(?:FATAL|Error(?! - exiting)|.*No probed ethernet devices|.*Cannot).{0,160}")
_CAUSE = re.compile(r"(?:EAL: Error - exiting.*)?\s*Cause: (.{1,160})")


def parse(raw: bytes, command: Sequence[str] = ()) -> Parsed:
    """Return the rates of each port and of all ports. Raise ParseError if no packet was counted."""
    mode, port, fault, cause = "", "", "", ""
    rates: dict[tuple[str, str], list[float]] = defaultdict(list)
    counts: dict[str, tuple[float, float, float]] = {}
    at_end = False
    for _, text in numbered(decode(raw)):
        line = text[:_LONGEST]
        if match := _MODE.search(line):
            mode = match[1]
        elif match := _PORT.match(line):
            port = match[1] if int(match[1]) < _MOST_PORTS else ""
        elif _TOTALS.match(line):
            at_end = True
        elif at_end and (match := _COUNTS.match(line)):
            counts[match[1]] = (float(match[2]), float(match[3]), float(match[4]))
        elif match := _CAUSE.match(line):
            cause = match[1].strip()
        elif _FAULT.match(line):
            fault = fault or line.strip()  # later errors are consequences of the first
        elif port:
            for way, unit, figure in _RATE.findall(line):
                rates[port, f"{way.lower()}_{'rate' if unit == 'pps' else 'bandwidth'}"].append(float(figure))
    case = mode or "testpmd"
    measurements = [*_of_ports(case, rates), *_of_all(case, counts)]
    if not measurements:
        raise ParseError(
            _TOOL, "statistics of a port", got="; ".join(dict.fromkeys(filter(None, (fault, cause)))) or "none"
        )
    ended = len(counts) == 2
    return Parsed(_TOOL, tuple(measurements), invalid=None if ended else cut("no statistics of all ports at the end"))


def _of_ports(case: str, rates: Mapping[tuple[str, str], Sequence[float]]) -> Iterator[Measurement]:
    middles = {key: median(figures[1:]) for key, figures in rates.items() if len(figures) > 1}
    for (port, metric), figure in middles.items():
        if figure:
            value, unit = (figure / 8, "B/s") if metric.endswith("bandwidth") else (figure, "1/s")
            yield Measurement(_TOOL, case, metric, value, unit, better=Better.HIGHER, subject=f"port{port}")
    way = "rx_rate" if case == "rxonly" else "tx_rate"
    total = sum(figure for (_, metric), figure in middles.items() if metric == way)
    if total:
        yield Measurement(_TOOL, case, "packet_rate", total, "1/s", better=Better.HIGHER)


def _of_all(case: str, counts: Mapping[str, tuple[float, float, float]]) -> Iterator[Measurement]:
    """Return the measurements of all ports together.

    ``counts``: packets, dropped packets and their sum for RX and TX.
    """
    for way, (packets, _, _) in counts.items():
        yield Measurement(_TOOL, case, f"{way.lower()}_packets", packets, "1", better=Better.NONE)
    handled = max((total for _, _, total in counts.values()), default=0.0)
    if handled and len(counts) == 2:
        dropped = sum(lost for _, lost, _ in counts.values())
        yield Measurement(_TOOL, case, "loss", dropped / handled, "1", better=Better.LOWER)
