"""What sides are called: short, told apart, and never ambiguous."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from fleetmark.base.errors import FleetmarkError
from fleetmark.record.naming import Names, names
from fleetmark.record.select import Machine

LABELS = {"processor": "Intel(R) Xeon(R) Platinum 8380 CPU @ 2.30GHz"}


def named(*selectors: str, wished: Sequence[str] = (), taken: Sequence[str] = ()) -> Names:
    return names({s: [Machine("imports/x", "h", LABELS, lambda: None)] for s in selectors}, wished, taken)


@pytest.mark.parametrize(
    ("selectors", "expected"),
    [
        (["gen=icelake", "gen=genoa", "gen=turin"], ["icelake", "genoa", "turin"]),
        (
            ["accelerator=NVIDIA H200-SXM-141GB,gpus=8", "accelerator=NVIDIA B200-SXM-180GB,gpus=8"],
            ["H200-SXM-141GB x8", "B200-SXM-180GB x8"],
        ),
        (["accelerator=NVIDIA H100,gpus=8", "accelerator=NVIDIA H100,gpus=16"], ["H100 x8", "H100 x16"]),
        (["processor=*8380*,chips=2", "processor=AMD EPYC 9654,chips=2"], ["Xeon Platinum 8380 x2", "EPYC 9654 x2"]),
        (["gpus.name=*H200*", "gpus.name=AMD Instinct MI300X"], ["H200", "Instinct MI300X"]),
        (["vendor=aws,server=m6i.*", "vendor=aws,server=m7i.*"], ["m6i", "m7i"]),
        (["host=aws/m6i.large", "server=m7i.large"], ["aws/m6i.large", "m7i.large"]),
        (["round=v4.0,platform=X", "round=v4.1,platform=X"], ["v4.0", "v4.1"]),
        (["gen=g,site=ams", "gen=g,site=fra"], ["ams", "fra"]),
        (["gen=old,site=ams", "gen=new,site=fra"], ["old", "new"]),
        (["gen=a,site=ams", "gen=a,site=fra", "gen=b,site=fra"], ["a, ams", "a, fra", "b, fra"]),
        (["gen=a", "gen=a,round=v5.1"], ["a", "v5.1"]),
        # values that say nothing alone, and other conditions, keep their keys
        (["cores=64", "cores=128"], ["cores=64", "cores=128"]),
        (["cpu.cores>=64", "cpu.cores<64"], ["cpu.cores>=64", "cpu.cores<64"]),
        # names that two sides would share become longer
        (["gen=x", "host=x"], ["gen=x", "host=x"]),
        (["accelerator=NVIDIA H100", "accelerator=H100"], ["accelerator=NVIDIA H100", "accelerator=H100"]),
        (["gen=*", "gen=?"], ["gen=*", "gen=?"]),
    ],
)
def test_names_are_the_values_that_tell_sides_apart(selectors: list[str], expected: list[str]) -> None:
    result = named(*selectors)
    assert list(result.short.values()) == expected
    assert result.selectors == dict(zip(expected, selectors, strict=True))


def test_what_names_leave_out_stands_in_notes() -> None:
    assert list(named("gen=old,site=ams,round=v1", "gen=new,round=v1").notes) == [
        "all sides: round=v1",
        "old: gen=old,site=ams",
    ]
    assert list(named("gen=old", "gen=new").notes) == []


def test_names_of_the_user_stand_and_others_keep_away_from_them() -> None:
    assert list(named("gen=old", "gen=new", wished=["Ice"]).short.values()) == ["Ice", "new"]
    assert list(named("gen=old", "gen=new", wished=["new"]).short.values()) == ["new", "gen=new"]
    assert list(named("gen=old", taken=["old"]).short.values()) == ["gen=old"]


@pytest.mark.parametrize(
    ("wished", "taken", "expected"),
    [
        (["a", "b", "c"], [], "--name: 3 names for 2 sides"),
        (["a", "a"], [], "--name a: two sides have this name"),
        (["ref@1"], ["ref@1"], "--name ref@1: two sides have this name"),
        (["a\nb"], [], "not a name; use one line of text"),
    ],
)
def test_bad_names_are_one_sentence(wished: list[str], taken: list[str], expected: str) -> None:
    with pytest.raises(FleetmarkError) as error:
        named("gen=old", "gen=new", wished=wished, taken=taken)
    assert expected in str(error.value) and "\n" not in str(error.value)
