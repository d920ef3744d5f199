"""Selectors over labels and facts, and what they say when nothing matches."""

from __future__ import annotations

import pytest

from fleetmark.base.errors import FleetmarkError
from fleetmark.base.facts import Cpu, Gpu
from fleetmark.record.select import Machine, choose, distinct_names, parse
from tests.schedules import facts


def machine(name: str, cores: int = 16, **labels: str) -> Machine:
    gpus = (Gpu(index=0, name="H100", vendor="nvidia"), Gpu(index=1, name="H200", vendor="nvidia"))
    return Machine("c1", name, labels, lambda: facts(cpu=Cpu(model="EPYC 9554", cores=cores), gpus=gpus))


ODD = [machine("[a]", system="Gen11 (2.25 GHz, AMD EPYC 9634)"), machine("a", host="b", system="[MAXSUN] 48G")]
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
        ("gpus.memory!=1,cpu.model!=none", ["h1", "h2", "x3"]),
        ("gpus.bus!=1", ["h1", "h2", "x3"]),  # facts have such a place, though no host says anything there
    ],
)
def test_selectors(text: str, chosen: list[str]) -> None:
    assert [m.host for m in choose(FLEET, text)] == chosen


@pytest.mark.parametrize(
    ("text", "chosen"),
    [
        ("system=Gen11 (2.25 GHz, AMD EPYC 9634)", ["[a]"]),
        ("host=?a?, system=Gen11 (2.25 GHz, AMD EPYC 9634),campaign=c1", ["[a]"]),
        ("system=[MAXSUN] 48G", ["a"]),
        ("host=[a]", ["[a]", "a"]),  # a name, and a pattern
        ("host!=[a]b", ["[a]", "a"]),
        ("host=a", ["a"]),  # whatever its label of that name says
    ],
)
def test_values_with_the_marks_of_selectors(text: str, chosen: list[str]) -> None:
    assert [m.host for m in choose(ODD, text)] == chosen


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("gen=geona", r"there are gen=genoa \(2\), gen=ice \(1\)"),
        ("gem=ice", r"none has gem \(did you mean gen\?\); labels are campaign, gen, host, site"),
        ("gen=ice,cpu.cores>=64", r"there are cpu.cores=16 \(1\)"),
        ("gen", "'gen' is not key=value"),
        ("gen=", "'gen=' is not key=value"),
        ("", "is not key=value"),
        ("cpu.cores>=many", "'many' is not a number to compare cpu.cores with"),
        ("cpu.nonsense=1", "none has cpu.nonsense"),
        ("gne!=ice", r"none has gne \(did you mean gen\?\)"),
        ("cpu.nonsense!=1", "none has cpu.nonsense"),
    ],
)
def test_what_would_match_is_said(text: str, words: str) -> None:
    with pytest.raises(FleetmarkError, match=words):
        choose(FLEET, text)


def test_an_empty_record() -> None:
    with pytest.raises(FleetmarkError, match="no machine is recorded"):
        choose([], "gen=ice")


def test_facts_are_not_asked_for_labels() -> None:
    def never() -> None:
        raise AssertionError("facts were read")

    assert choose([Machine("c", "h", {"gen": "a"}, never)], "gen=a,host=h,campaign=c")
    assert parse("a=b,c>=1")[1].key == "c"


@pytest.mark.parametrize(
    ("first", "second", "by_id", "names"),
    [
        (("10.1", "x"), ("10.1", "x"), True, ["n", "n"]),
        (("10.1", "x"), ("10.2", "x"), False, ["n", "n"]),  # moved
        (("10.1", "x"), ("10.2", "y"), False, ["n (10.1)", "n (10.2)"]),
        (("10.1", None), ("10.2", None), False, ["n (10.1)", "n (10.2)"]),
        (("10.1", "x"), ("10.1", "y"), True, ["n (x)", "n (y)"]),
        (("10.1", "x"), ("10.1", None), True, ["n", "n"]),
        (("10.1", "x"), ("", None), True, ["n", "n"]),  # an imported table has no addresses
    ],
)
def test_machines_of_one_name(
    first: tuple[str, str | None], second: tuple[str, str | None], by_id: bool, names: list[str]
) -> None:
    def named(campaign: str, address: str, machine_id: str | None) -> Machine:
        return Machine(campaign, "n", {}, lambda: facts(machine_id=machine_id), address=address)

    names_of = distinct_names([named("c1", *first), named("c2", *second)], by_id=by_id)
    assert [names_of["c1", "n"], names_of["c2", "n"]] == names
