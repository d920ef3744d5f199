"""Commands that run beside each other on a host: which answer counts, and those that give none."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

AGENT = Path(__file__).parents[2] / "playbooks" / "agent" / "facts"


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
def test_one_that_does_not_end_holds_up_no_other(agent: Any, text: str) -> None:
    variants = {"quick": [shell("echo 1")], "again": [shell("exit 1"), shell("echo 2")]}
    others = {name: agent.Asked(words, 600.0) for name, words in variants.items()}
    late = agent.Asked([shell(text), shell("echo second")], 600.0)
    process = late.process
    wait = agent.collect({"late": late, **others})
    until(lambda: [other.result["out"] for other in others.values()] == ["1\n", "2\n"])
    os.killpg(process.pid, signal.SIGKILL)
    assert wait()["late"]["out"] == "second\n"


@pytest.mark.parametrize("text", ["sleep 600", "exec >&- 2>&-; exec sleep 600"])
def test_one_that_is_late_is_ended(agent: Any, text: str) -> None:
    late = agent.Asked([shell(text), shell("echo second")], 0.5)
    process = late.process
    assert agent.answers({"late": late})["late"]["err"] == "no answer in time"
    until(lambda: process.poll() is not None)


def test_what_nobody_waits_for_yet_is_read(agent: Any) -> None:
    much = agent.Asked([shell("head -c 300000 /dev/zero; exit 1"), shell("echo 2")], 600.0)
    wait = agent.collect({"much": much})
    until(lambda: much.result["out"] == "2\n")
    assert wait() == {"much": much.result}
    assert agent.collect({})() == {}


def until(holds: Callable[[], object]) -> None:
    deadline = time.monotonic() + 120
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_one_that_prints_without_end_is_ended(agent: Any) -> None:
    result = agent.answer(["yes"], 600.0)
    assert (result["rc"], result["out"], result["err"]) == (None, "", "printed more than 16 MiB")


def test_one_that_cannot_be_started_says_why(agent: Any, tmp_path: Path) -> None:
    began = time.monotonic()
    result = agent.answer([str(tmp_path / "absent")], 600.0)
    assert result["rc"] is None
    assert os.strerror(2) in result["err"]
    assert time.monotonic() - began < 300, "it was waited for"
