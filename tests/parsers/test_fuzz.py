"""Test that every parser is total: damaged output gives sound measurements or a ParseError, and no invented figure."""

from __future__ import annotations

import random
import re
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.examples import examples
from tests.parsers.damage import MUTATIONS, TOOLS, check
from tests.parsers.outputs import seeds


@pytest.mark.parametrize("tool", TOOLS)
def test_seeds_hold_what_is_promised(tool: str) -> None:
    outcomes = [check(tool, raw) for raw in seeds(tool)]
    if seeds(tool) != (b"",):
        assert any(outcomes), "no seed of this tool parses: the mutations below would test nothing"


@pytest.mark.parametrize("tool", TOOLS)
@examples(300)
@given(
    number=st.integers(0, 10**6),
    seed=st.integers(0, 2**32),
    steps=st.lists(st.sampled_from(MUTATIONS), min_size=1, max_size=5),
)
def test_damaged_output(
    tool: str, number: int, seed: int, steps: list[Callable[[bytes, random.Random], bytes]]
) -> None:
    raw, pick = seeds(tool)[number % len(seeds(tool))], random.Random(seed)
    for step in steps:
        raw = step(raw, pick)
    check(tool, raw)


@pytest.mark.parametrize("tool", TOOLS)
@pytest.mark.parametrize("digits", ["٠١٢٣٤٥٦٧٨٩", "⁰¹²³⁴⁵⁶⁷⁸⁹"], ids=["arabic", "superscript"])
def test_digits_of_other_scripts_are_no_figures(tool: str, digits: str) -> None:
    foreign, pick = str.maketrans("0123456789", digits), random.Random(tool)
    for raw in sorted(seeds(tool), key=len)[:3]:
        text = raw[:20_000].decode("utf-8", "replace")
        places = list(re.finditer(r"[0-9]+", text))
        for place in pick.sample(places, min(30, len(places))):
            check(tool, (text[: place.start()] + place[0].translate(foreign) + text[place.end() :]).encode())


@pytest.mark.parametrize("tool", TOOLS)
@examples(100)
@given(raw=st.one_of(st.binary(max_size=300), st.text(max_size=300).map(str.encode)))
def test_anything_at_all(tool: str, raw: bytes) -> None:
    check(tool, raw)


@pytest.mark.parametrize("tool", TOOLS)
def test_outputs_of_other_tools(tool: str) -> None:
    for other in TOOLS:
        if other != tool:
            for raw in seeds(other):
                check(tool, raw)


@pytest.mark.parametrize("tool", TOOLS)
@pytest.mark.parametrize(
    "raw",
    [
        b'{"a":' * 20_000,
        b'{"a":' * 20_000 + b"1" + b"}" * 20_000,
        b'{"jobs": ' + b"[" * 20_000 + b"]" * 20_000 + b"}",
        b'{"start": {}, "end": {"sum_received": {"bits_per_second": 1e400}}, "intervals": []}',
        b'{"start": {}, "end": {"sum_received": {"bits_per_second": ' + b"9" * 5000 + b"}}}",
        b"[" * 100_000,
        b"{" * 100_000,
        b'{"a": 1\n' * 20_000,
        b"9" * 100_000,
        b" " * 100_000,
        b"fio: " * 20_000,
        b"[  1] " * 20_000,
        b"a,b;c " * 20_000,
    ],
    ids=[
        "nested",
        "nested and closed",
        "nested lists",
        "infinite",
        "huge",
        "brackets",
        "braces",
        "broken",
        "digits",
        "spaces",
        "words",
        "marks",
        "separators",
    ],
)
def test_hostile_sizes_end_soon(tool: str, raw: bytes) -> None:
    check(tool, raw)


@pytest.mark.parametrize("tool", TOOLS)
def test_the_same_bytes_give_the_same(tool: str) -> None:
    for raw in seeds(tool):
        first, second = check(tool, raw), check(tool, raw)
        assert first == second
