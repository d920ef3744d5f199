"""Commands that run beside each other on a host: which answer counts, and those that give none."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import pytest

AGENT = Path(__file__).parents[2] / "playbooks" / "agent"


@pytest.fixture
def agent(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(AGENT))
    import commands  # type: ignore[import-not-found]

    return commands


def shell(text: str) -> list[str]:
    return ["sh", "-c", text]


def test_the_first_variant_that_succeeds_counts(agent: Any) -> None:
    variants = [shell("echo old; exit 2"), shell("echo new"), shell("echo never")]
    (result,) = agent.answers({"a": agent.Asked(variants, 60.0)}).values()
    assert (result["argv"], result["rc"], result["out"]) == (variants[1], 0, "new\n")


def test_where_none_succeeds_the_last_one_counts(agent: Any) -> None:
    variants = [shell("exit 2"), shell("echo why >&2; exit 3")]
    result = agent.answers({"a": agent.Asked(variants, 60.0)})["a"]
    assert (result["rc"], result["err"]) == (3, "why\n")


def test_all_are_read_at_once_however_much_they_write(agent: Any) -> None:
    much = shell("head -c 300000 /dev/zero | tr '\\0' x; head -c 300000 /dev/zero | tr '\\0' y >&2")
    results = agent.answers({name: agent.Asked([much], 60.0) for name in "abc"})
    assert {(len(r["out"]), len(r["err"])) for r in results.values()} == {(300_000, 2000)}


@pytest.mark.parametrize("text", ["sleep 600", "exec >&- 2>&-; exec sleep 600"])
def test_one_that_is_late_is_ended_and_the_others_count(agent: Any, text: str) -> None:
    others = {"quick": [shell("echo 1")], "again": [shell("exit 1"), shell("sleep 0.2; echo 2")]}
    asked = {name: agent.Asked(variants, 10.0) for name, variants in others.items()}
    late = agent.Asked([shell(text), shell("echo second")], 10.0)
    process = late.process
    results = agent.answers({"late": late, **asked})
    assert (results["late"]["rc"], results["late"]["err"]) == (None, "no answer in time")
    assert [results[name]["out"] for name in others] == ["1\n", "2\n"]
    deadline = time.monotonic() + 60
    while process.poll() is None:
        assert time.monotonic() < deadline, "it was not ended"
        time.sleep(0.01)


def test_one_that_prints_without_end_is_ended(agent: Any) -> None:
    result = agent.answer(["yes"], 600.0)
    assert (result["rc"], result["out"], result["err"]) == (None, "", "printed more than 16 MiB")


def test_what_nobody_waits_for_yet_is_read(agent: Any) -> None:
    wait = agent.beside({"much": agent.Asked([shell("head -c 300000 /dev/zero; exit 1"), shell("echo 2")], 5.0)})
    time.sleep(6.0)  # the deadline passes before somebody asks
    assert wait()["much"]["out"] == "2\n"
    assert agent.beside({})() == {}


def test_one_that_cannot_be_started_says_why(agent: Any, tmp_path: Path) -> None:
    began = time.monotonic()
    result = agent.answer([str(tmp_path / "absent")], 600.0)
    assert result["rc"] is None
    assert os.strerror(2) in result["err"]
    assert time.monotonic() - began < 300, "it was waited for"
