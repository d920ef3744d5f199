"""The self-test's parser, on this machine's own uptime and on what is none."""

from pathlib import Path

import pytest

from fleetmark.base.errors import ParseError
from fleetmark.parsers import parse


def test_this_machines_uptime() -> None:
    before = Path("/proc/uptime").read_bytes()
    (uptime,) = parse("selftest", before).measurements
    assert (uptime.metric, uptime.unit) == ("uptime", "s")
    assert f"{uptime.value:.2f}" == before.split()[0].decode()


@pytest.mark.parametrize("raw", [b"", b"up 3 days", b"1.5", b"1.5 2.5\n1.5 2.5\n", b"\xff\x00", b"-1.0 2.0"])
def test_anything_else_is_refused(raw: bytes) -> None:
    with pytest.raises(ParseError, match="uptime"):
        parse("selftest", raw)
