"""Parse the self-test: the line of /proc/uptime (proc(5)), with seconds since boot and idle seconds over all CPUs."""

from __future__ import annotations

import re
from collections.abc import Sequence

from fleetmark.base.errors import ParseError
from fleetmark.base.measurement import Better, Measurement, Parsed

_LINE = re.compile(r"(\d+\.\d+) (\d+\.\d+)\s*", re.ASCII)


def parse(raw: bytes, command: Sequence[str] = ()) -> Parsed:
    """Return ``uptime`` in s. Raise ParseError for anything else than that one line."""
    text = raw.decode("ascii", errors="replace")
    match = _LINE.fullmatch(text)
    if not match or len(match[1]) > 15:
        raise ParseError(
            "selftest", "one line of /proc/uptime", line=1, got=text.splitlines()[0] if text.strip() else ""
        )
    return Parsed("selftest", (Measurement("selftest", "uptime", "uptime", float(match[1]), "s", better=Better.NONE),))
