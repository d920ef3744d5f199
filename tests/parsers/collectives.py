"""Outputs of nccl-tests and what their parser makes of a text: measurements, notes, or one sentence of error."""

from __future__ import annotations

import pytest

from fleetmark.base.errors import ParseError
from fleetmark.base.measurement import Parsed
from fleetmark.parsers.nccl_tests import parse
from tests.parsers.reading import FIXTURES, identities

TOOL = "nccl_tests"
SECRETS = ("tok-5f2b", "wren", "API_TOKEN", "TRICK")
DERIVED = "ranks and nodes are derived from the device list"


def raw(name: str) -> str:
    return (FIXTURES / TOOL / name).read_text()


TWO = raw("2.17.6_two_tests_messages.txt")
ONE = TWO.split("\n\n", maxsplit=1)[0] + "\n"  # all_reduce: 8 sizes, of which one row is interrupted
HEADING = next(line for line in ONE.splitlines() if "algbw" in line)


def parsed(text: str, *command: str) -> Parsed:
    result = parse(text.encode(), command)
    assert len(identities(result)) == len(set(identities(result)))
    return result


def notes(result: Parsed) -> list[str]:
    """The notes without the one that every device list adds."""
    return [note for note in result.notes if DERIVED not in note]


def error(text: str) -> str:
    with pytest.raises(ParseError) as caught:
        parse(text.encode())
    assert "\n" not in str(caught.value)
    return str(caught.value)
