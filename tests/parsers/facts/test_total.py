"""Any bytes give a reader's dict or a ParseError; any document gives Facts or a FleetmarkError. Never anything else."""

from __future__ import annotations

import copy
import json
import random
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fleetmark.base.errors import FleetmarkError, ParseError
from fleetmark.base.facts import Facts
from fleetmark.parsers.facts import normalise, parse, tools
from tests import corpus

DATA = Path(__file__).parent / "data"
SAMPLES = {tool: [p.read_bytes() for p in sorted(DATA.glob(f"{tool}*.*"))] for tool in tools()}
for _tool, _samples in SAMPLES.items():
    _samples += [p.read_bytes() for p in sorted((corpus.ROOT / _tool).glob("*"))]
    # In place of words a tool may print, what a damaged line holds where numbers and names belong.
JUNK = (b"", b"-1", b"999999999999999999999999", b"nan", b"0-99999999", b"\xff\xfe", b"null", b"{", b"]", b":", b"(")


def damaged(raw: bytes, seed: int) -> bytes:
    """``raw`` with a few lines lost, doubled, swapped, cut, or filled with junk."""
    chance = random.Random(seed)
    lines = raw.splitlines(keepends=True) or [b""]
    for _ in range(chance.randint(1, 8)):
        n, m = chance.randrange(len(lines)), chance.randrange(len(lines))
        match chance.randrange(6):
            case 0 if len(lines) > 1:
                del lines[n]
            case 1:
                lines.insert(n, lines[m])
            case 2:
                lines[n], lines[m] = lines[m], lines[n]
            case 3:
                lines[n] = lines[n][: chance.randint(0, len(lines[n]))]
            case 4:
                words = lines[n].split(b" ")
                words[chance.randrange(len(words))] = chance.choice(JUNK)
                lines[n] = b" ".join(words)
            case _:
                position = chance.randint(0, len(lines[n]))
                lines[n] = lines[n][:position] + chance.choice(JUNK) + lines[n][position:]
    return b"".join(lines)


def total(tool: str, raw: bytes) -> None:
    try:
        parsed = parse(tool, raw)
    except ParseError as refused:
        assert str(refused).startswith(f"{tool}")
    else:
        assert parsed
        json.dumps(parsed)


@pytest.mark.parametrize("tool", tools())
@given(st.integers(0, 2**32), st.integers(0, 99))
@settings(max_examples=150, deadline=None)
def test_damaged_output(tool: str, seed: int, number: int) -> None:
    samples = SAMPLES[tool] or [b'{"card0": {"Card series": "X", "VRAM Total Memory (B)": "1"}}']
    total(tool, damaged(samples[number % len(samples)], seed))


@pytest.mark.parametrize("tool", tools())
@given(st.binary(max_size=400))
@settings(max_examples=100, deadline=None)
def test_any_bytes(tool: str, raw: bytes) -> None:
    total(tool, raw)


@pytest.mark.parametrize("tool", tools())
def test_another_tools_output(tool: str) -> None:
    for samples in SAMPLES.values():
        for raw in samples:
            total(tool, raw)


@pytest.mark.parametrize("tool", tools())
def test_deep_and_huge_json(tool: str) -> None:
    total(tool, b'{"lscpu":' * 5000 + b"}" * 5000)
    total(tool, b'{"lscpu": [{"field": "CPU(s):", "data": "' + b"9" * 6000 + b'"}], "blockdevices": []}')


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=12),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=6,
)


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *(p for key, child in inner for p in places(child, (*path, key)))]


@given(st.data())
@settings(max_examples=300, deadline=None)
def test_damaged_document(data: st.DataObject) -> None:
    doc = json.loads((DATA / data.draw(st.sampled_from(["vm_root.json", "vm_nobody.json"]))).read_text())
    for _ in range(data.draw(st.integers(1, 4))):
        path = data.draw(st.sampled_from([p for p in places(doc) if p]))
        holder = doc
        for key in path[:-1]:
            holder = holder[key]
        if isinstance(holder[path[-1]], str) and data.draw(st.booleans()):
            seed = data.draw(st.integers(0, 2**32))
            holder[path[-1]] = damaged(holder[path[-1]].encode(), seed).decode("utf-8", "replace")
        else:
            holder[path[-1]] = data.draw(VALUES)
    before = copy.deepcopy(doc)
    try:
        result = normalise(doc, skew=None, root=False, work_dir="/tmp/x")
    except FleetmarkError as refused:
        assert "gather them again" in str(refused)
    else:
        assert isinstance(result, Facts)
        assert Facts.model_validate_json(result.model_dump_json()).hostname == result.hostname
    assert repr(doc) == repr(before), "the document was changed"
