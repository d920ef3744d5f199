"""Parse ``openssl speed -mr``: OpenSSL 1.1.1 to 3, one process or several (``-multi``).

Case: the algorithm (``aes-256-gcm``, ``rsa2048``, ``ecdsap256``, ``ecdhx25519``, ``ed25519``). Metrics, all higher:
``throughput`` in B/s of ciphers and hashes, with a label ``size`` if several block sizes were measured; ``sign`` and
``verify`` in 1/s of RSA, DSA, ECDSA and EdDSA; ``exchange`` in 1/s of ECDH. Figures of several processes are openssl's
own sums. If fewer processes report than were started, the sum is too low and the run is ``invalid``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from fleetmark.base.errors import ParseError
from fleetmark.base.measurement import Better, Measurement, Parsed
from fleetmark.parsers.kit.cut import cut, cut_in_line
from fleetmark.parsers.kit.text import decode, number, numbered

_TOOL = "openssl_speed"
_LONGEST = 1000  # maximum line length in characters
_VERSION = re.compile(r"OpenSSL (\d+\.\d+\.\w{1,12})\b")
_SIZES = re.compile(r"(?:Got: )?\+H((?::[0-9]{1,9}){1,32})(?: from [0-9]+)?")  # only children print "Got"
_BULK = re.compile(r"\+F:[0-9]{1,4}:([\w./-]{1,60})((?::[0-9.]{1,24}){1,32})", re.ASCII)
_KEY = re.compile(r"\+F([2-6]):[0-9]{1,4}:([0-9]{1,6})(?::([A-Za-z0-9_-]{1,40}))?:([0-9.]{1,24})(?::([0-9.]{1,24}))?")
_CURVES = {"ecdh": {"253": "x25519", "448": "x448"}}
_FAMILIES = {"2": "rsa", "3": "dsa", "4": "ecdsa", "5": "ecdh", "6": "eddsa"}


def parse(raw: bytes, command: Sequence[str] = ()) -> Parsed:
    """Return the sums that openssl prints last. Raise ParseError if it prints none."""
    text = decode(raw)
    lines = [(n, line.strip()) for n, line in numbered(text) if len(line) <= _LONGEST]
    sizes: list[str] = []
    measurements: dict[tuple[str, str, str], Measurement] = {}
    version = None
    for _, line in lines:
        if match := _VERSION.match(line):
            version = match[1]
        elif match := _SIZES.fullmatch(line):
            sizes = match[1][1:].split(":")
        for m in _row(line, sizes):
            measurements[m.case, m.metric, m.labels.get("size", "")] = m
    if not measurements:
        last = next(((n, line) for n, line in reversed(lines) if line), (1, "no output"))
        raise ParseError(_TOOL, "a line +F of openssl speed -mr", line=last[0], got=last[1])
    invalid = cut_in_line(text) or _lost([line for _, line in lines])
    return Parsed(_TOOL, tuple(measurements.values()), version, invalid)


def _row(line: str, sizes: Sequence[str]) -> Iterator[Measurement]:
    if match := _BULK.fullmatch(line):
        figures = match[2][1:].split(":")
        for size, figure in zip(sizes, figures, strict=False) if len(sizes) == len(figures) else ():
            if rate := number(figure):
                labels = {"size": size} if len(sizes) > 1 else {}
                yield Measurement(
                    _TOOL, match[1].lower(), "throughput", rate, "B/s", better=Better.HIGHER, labels=labels
                )
    elif match := _KEY.fullmatch(line):
        family = _FAMILIES[match[1]]
        named = _CURVES.get(family, {}).get(match[2], f"p{match[2]}" if family.startswith("ec") else match[2])
        case = match[3].lower() if family == "eddsa" and match[3] else family + named
        # The second figure of ECDH is the time of one exchange.
        for metric, figure in zip(
            ("exchange",) if family == "ecdh" else ("sign", "verify"), (match[4], match[5]), strict=False
        ):
            if rate := number(figure or ""):
                yield Measurement(_TOOL, case, metric, rate, "1/s", better=Better.HIGHER)


def _lost(lines: Sequence[str]) -> str | None:
    """Return why the sums do not cover all processes; None if they do."""
    forked = sum(line.startswith("Forked child ") for line in lines)
    reported = sum(line.startswith("Got: +F") for line in lines)
    if reported < forked:
        return cut(f"{forked} processes were started, and {reported} of them report a result")
    return None
