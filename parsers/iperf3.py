"""iperf3: throughput, loss and jitter of a test, from JSON (``-J``), a JSON stream or text, of the client or the server.

Metrics: ``bitrate`` (B/s: what the receiver counted), ``sent_bitrate`` (what the sender handed to its socket: describes,
never judges), ``retransmits``, ``rtt_mean`` (s, averaged over the streams), ``loss`` (fraction), ``jitter`` (s),
``packets`` and ``lost_packets``, ``cpu_host`` and ``cpu_remote`` (fractions of one core). The way back of ``--bidir`` has
the same names after ``reverse_``. The case is protocol, streams (where more than one) and direction: ``tcp``, ``tcp-4``,
``udp-reverse``, ``tcp-2-bidir``. Several tests in one file carry a label ``run``, counted from 1.

Read against iperf 3.0.11 to 3.21 (iperf_api.c, iperf_locale.c). Up to 3.9 a UDP client reports one sum, with the sender's
rate and the receiver's loss: ``bitrate`` is then derived, sent rate times one minus loss. From 3.7 to 3.9 ``--bidir``
prints the keys of both directions under the same name.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fleetmark.model import Better, Measurement, Parsed, ParseError
from parsers._iperf3_text import ERROR, Run, read_text, settle
from parsers._text import Document, Found, decode, dig, every, find_json, matches, number, numbered, objects

_KINDS = {
    "bitrate": ("B/s", Better.HIGHER),
    "sent_bitrate": ("B/s", Better.NONE),
    "retransmits": ("1", Better.LOWER),
    "rtt_mean": ("s", Better.LOWER),
    "loss": ("1", Better.LOWER),
    "jitter": ("s", Better.LOWER),
    "packets": ("1", Better.NONE),
    "lost_packets": ("1", Better.NONE),
    "cpu_host": ("1", Better.NONE),
    "cpu_remote": ("1", Better.NONE),
}
_DISAGREE = 0.02


def parse(raw: bytes, command: Sequence[str] = ()) -> Parsed:
    """Every test in ``raw``.

    ``invalid`` is set where the one test there ended with an error or before its summary; what its intervals told is
    kept. Raises ParseError, with iperf3's own sentence where there is one, when no test moved any data.
    """
    found = find_json(decode(raw))
    runs = [_read_json(t) for t in _tests(found)]
    if not any(r.values for r in runs):
        runs += read_text(found.around)
    said = [m["what"].strip() for _, m in matches(ERROR, found.around)]
    good = [r for r in runs if r.values]
    if not good:
        raise _nothing(found, runs, said)
    notes = [
        f"the JSON that begins on line {cut.line} is cut or damaged at line {cut.at}: nothing of it was read"
        for cut in found.broken
    ]
    invalid = None
    measurements: list[Measurement] = []
    for n, run in enumerate(runs, 1):
        where = f"test {n}: " if len(runs) > 1 else ""
        notes += [where + note for note in run.notes]
        wrong = run.error or (said[0] if said and len(runs) == 1 else None)
        if wrong and len(runs) == 1:
            invalid = wrong
        elif wrong:
            notes.append(where + wrong)
        if not run.values or (wrong and len(good) > 1):
            continue
        labels = {"run": str(n)} if len(runs) > 1 else {}
        for metric, value in run.values.items():
            unit, better = _KINDS[metric.removeprefix("reverse_")]
            measurements.append(Measurement("iperf3", run.case, metric, value, unit, better, labels=labels))
    version = next((r.version for r in runs if r.version), None)
    return Parsed("iperf3", tuple(measurements), version, invalid, tuple(dict.fromkeys(notes)))
