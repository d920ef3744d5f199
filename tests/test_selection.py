"""Selectors over labels and facts, and what they say when nothing matches."""

from __future__ import annotations

import pytest

from fleetmark.facts import Cpu, Gpu
from fleetmark.model import FleetmarkError
from fleetmark.selection import Machine, choose, parse
from tests.test_plan import facts


def machine(name: str, cores: int = 16, **labels: str) -> Machine:
    gpus = (Gpu(index=0, name="H100", vendor="nvidia"), Gpu(index=1, name="H200", vendor="nvidia"))
    return Machine("c1", name, labels, lambda: facts(cpu=Cpu(model="EPYC 9554", cores=cores), gpus=gpus))


FLEET = [machine("h1", gen="ice", site="ams"), machine("h2", 64, gen="genoa"), machine("x3", 96, gen="genoa")]


@pytest.mark.parametrize(
    ("text", "chosen"),
    [
        ("gen=ice", ["h1"]),
        ("gen=g*", ["h2", "x3"]),
        ("gen!=ice", ["h2", "x3"]),
        ("host=h?", ["h1", "h2"]),
        ("cpu.cores>=64", ["h2", "x3"]),
        ("cpu.cores>64, gen=genoa", ["x3"]),
        ("cpu.cores < 64", ["h1"]),
        ("gpus.name=H200", ["h1", "h2", "x3"]),
        ("cpu.model=EPYC*,campaign=c1,host=x3", ["x3"]),
        ("site!=ams", ["h2", "x3"]),
    ],
)
def test_selectors(text: str, chosen: list[str]) -> None:
    assert [m.host for m in choose(FLEET, text)] == chosen


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("gen=geona", r"there are gen=genoa \(2\), gen=ice \(1\)"),
        ("gem=ice", r"none has gem \(did you mean gen\?\); labels are campaign, gen, host, site"),
        ("gen=ice,cpu.cores>=64", r"there are cpu.cores=16 \(1\)"),
        ("gen", "'gen' is not key=value"),
        ("gen=", "'gen=' is not key=value"),
        ("", "is not key=value"),
        ("cpu.cores>=many", "'many' is no number to compare cpu.cores with"),
        ("cpu.nonsense=1", "none has cpu.nonsense"),
    ],
)
def test_what_would_match_is_said(text: str, words: str) -> None:
    with pytest.raises(FleetmarkError, match=words):
        choose(FLEET, text)


def test_an_empty_record() -> None:
    with pytest.raises(FleetmarkError, match="nothing on record"):
        choose([], "gen=ice")


def test_facts_are_not_asked_for_labels() -> None:
    def never() -> None:
        raise AssertionError("facts were read")

    assert choose([Machine("c", "h", {"gen": "a"}, never)], "gen=a,host=h,campaign=c")
    assert parse("a=b,c>=1")[1].key == "c"
