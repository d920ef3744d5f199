"""openssl speed -mr: outputs of OpenSSL 3.0, held against figures read from the raw text by eye."""

from __future__ import annotations

import pytest

from fleetmark import parsers
from fleetmark.base.errors import ParseError
from tests.parsers.reading import FIXTURES, cases, read, value

TOOL = "openssl_speed"


@pytest.mark.parametrize(
    ("name", "case", "figures"),
    [
        ("3.0_aes_256_gcm_2p.txt", "aes-256-gcm", {"throughput": 1836151024.94}),
        ("3.0_rsa2048_2p.txt", "rsa2048", {"sign": 1426.567657, "verify": 24197.0}),
        ("3.0_ecdsap256.txt", "ecdsap256", {"sign": 21150.0, "verify": 7029.70297}),
        ("3.0_ecdhx25519_2p.txt", "ecdhx25519", {"exchange": 12884.921569}),
        ("3.0_ed25519.txt", "ed25519", {"sign": 13333.663366, "verify": 4974.0}),
    ],
)
def test_figures(name: str, case: str, figures: dict[str, float]) -> None:
    parsed = read(TOOL, name)
    assert cases(parsed) == {case}
    assert {m.metric: m.value for m in parsed.measurements} == figures
    assert (parsed.version, parsed.invalid) == ("3.0.19", None)


def test_each_block_size_is_a_label() -> None:
    parsed = read(TOOL, "3.0_sha256_sizes.txt")
    assert value(parsed, "throughput", size="16") == 63644640
    assert value(parsed, "throughput", size="16384") == 513857394.06
    assert len(parsed.measurements) == 6


def test_a_process_that_reports_nothing_makes_the_sum_too_low() -> None:
    raw = (FIXTURES / TOOL / "3.0_rsa2048_2p.txt").read_bytes()
    parsed = parsers.parse(TOOL, raw.replace(b"Got: +F2:2:2048:716.666667:12097.000000 from 1\n", b""))
    assert parsed.invalid == "the output is cut: 2 processes were started, and 1 of them report a result"


@pytest.mark.parametrize(
    "raw", [b"", b"speed: Unknown algorithm nosuch\n", b"+F:25:sha256:1.0:2.0\n", b"+F2:2:2048:x:y\n"]
)
def test_what_holds_no_figure_is_refused(raw: bytes) -> None:
    with pytest.raises(ParseError, match="openssl speed -mr"):
        parsers.parse(TOOL, raw)
