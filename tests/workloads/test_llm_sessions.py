"""Conversations, shared prefixes, thinking, tool calls and traces, against a server that tells what it was asked."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from fleetmark.base.measurement import Parsed
from fleetmark.parsers import parse
from tests.llm.running import FILES, Served, client, measured, server

CLOSE = 0.05  # of a hit rate: blocks of 16 tokens, and the first prompt of each kind


def value(parsed: Parsed, metric: str) -> float:
    (figure,) = {m.value for m in parsed.measurements if m.metric == metric}
    return figure


def hits(served: Served, fewest: int) -> float:
    """Return the share of prompt tokens that the server's cache had, without the requests before the load."""
    log = served.requests()[fewest:]
    return float(sum(r["cached"] for r in log) / sum(r["tokens"] for r in log))


# --- prefixes and conversations --------------------------------------------------------------------------------------


@pytest.mark.parametrize("engine", ["vllm", "sglang"])
def test_the_stated_hit_rate_is_the_servers(tmp_path: Path, engine: str) -> None:
    with server(tmp_path, f"--engine={engine}", "--gap=0.001") as running:
        words = ["--model=tiny", "--concurrency=8", "--prompt=640", "--shared=0.5", "--prefixes=2", "--warmup=0.6"]
        parsed = measured(running, *words)
        log = hits(running, 40)
    assert value(parsed, "reusable_prompt") == pytest.approx(0.5, abs=0.01)
    assert value(parsed, "cache_hit_rate") == pytest.approx(0.5, abs=CLOSE)
    assert value(parsed, "cached_prompt") == pytest.approx(value(parsed, "cache_hit_rate"), abs=0.01)
    assert log == pytest.approx(value(parsed, "cache_hit_rate"), abs=CLOSE)
    (source,) = {m.labels["source"] for m in parsed.measurements if m.metric == "cache_hit_rate"}
    assert source.startswith(f"{engine}:")


def test_prompts_without_a_common_beginning_hit_nothing(tmp_path: Path) -> None:
    with server(tmp_path, "--engine=vllm") as running:
        parsed = measured(running, "--model=tiny", "--concurrency=4", "--seconds=1")
    assert value(parsed, "cache_hit_rate") == value(parsed, "reusable_prompt") == 0


@pytest.mark.parametrize("more", [(), ("--shared=0.5", "--prefixes=2")])
def test_no_cache_has_the_prompts_of_an_earlier_case(tmp_path: Path, more: tuple[str, ...]) -> None:
    """A server that stays up between cases and repeats keeps what it has read; the seed is the same in all of them."""
    words = ("--model=tiny", "--concurrency=4", "--seconds=1", "--prompt=320", *more)
    with server(tmp_path, "--engine=vllm", "--gap=0.001") as running:
        first, again = (measured(running, *words) for _ in range(2))
    for parsed in (first, again):
        assert value(parsed, "cached_prompt") <= value(parsed, "reusable_prompt") + 0.01
    assert value(again, "prompt_tokens") == pytest.approx(value(first, "prompt_tokens"), rel=0.05)


def test_a_server_without_metrics_has_no_hit_rate(tmp_path: Path) -> None:
    with server(tmp_path) as running:
        parsed = measured(running, "--model=tiny", "--concurrency=4", "--seconds=0.5")
    assert not [m for m in parsed.measurements if m.metric == "cache_hit_rate"]


@pytest.mark.parametrize("load", ["--concurrency=4", "--rates=20"])
def test_each_turn_has_the_turns_before_it(tmp_path: Path, load: str) -> None:
    """Three turns of 64 new tokens and 16 of answers: prompts of 64, 144 and 224 tokens."""
    with server(tmp_path, "--engine=vllm", "--gap=0.001") as running:
        words = [load, "--model=tiny", "--api=chat", "--prompt=64", "--turns=3", "--warmup=0.5"]
        parsed = measured(running, *words)
        log = [r for r in running.requests() if r["id"] != "fleetmark-3"]
    lengths = {n: {r["tokens"] for r in log if r["messages"] == n} for n in (1, 3, 5)}
    assert all(abs(tokens - 64) <= 4 for tokens in lengths[1])
    assert all(abs(tokens - 144) <= 8 for tokens in lengths[3])
    assert all(abs(tokens - 224) <= 12 for tokens in lengths[5])
    assert value(parsed, "reusable_prompt") == pytest.approx((80 + 160) / (64 + 144 + 224), abs=0.12)
    assert value(parsed, "cache_hit_rate") == pytest.approx(value(parsed, "reusable_prompt"), abs=0.12)


# --- thinking and tool calls -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("model", ["tiny", "thinks"])
def test_users_wait_for_the_token_behind_the_thinking(tmp_path: Path, model: str) -> None:
    """Eight tokens of thinking and eight of answer: by the server's marks, or by their number."""
    with server(tmp_path) as running:
        words = [f"--model={model}", "--api=chat", "--concurrency=4", "--answer=8", "--thinking=8"]
        parsed = measured(running, *words)
    assert value(parsed, "thinking_tokens") == 8 and value(parsed, "output_tokens") == 16
    waits = value(parsed, "ttft_p50"), value(parsed, "ttfa_p50"), value(parsed, "e2e_p50")
    assert waits[1] - waits[0] == pytest.approx((waits[2] - waits[0]) * 8 / 15, rel=0.2)


@pytest.mark.parametrize(("model", "share"), [("calls", 1.0), ("miscalls", 0.0)])
def test_tool_calls_are_checked_and_their_pieces_are_tokens(tmp_path: Path, model: str, share: float) -> None:
    with server(tmp_path) as running:
        parsed = measured(running, f"--model={model}", "--api=chat", "--tools", "--concurrency=4")
    assert parsed.invalid is None
    assert value(parsed, "tool_calls") == share
    assert value(parsed, "itl_p50") == pytest.approx(0.015, rel=0.5), "each piece of a call has its time"


# --- traces ----------------------------------------------------------------------------------------------------------

AZURE = "TIMESTAMP,ContextTokens,GeneratedTokens\n" + "".join(
    f"2023-11-16 18:15:{46 + k // 10}.{k % 10}805900,{30 + k},{4 + k % 5}\n" for k in range(20)
)
AZURE_24 = "TIMESTAMP,ContextTokens,GeneratedTokens\n" + "".join(
    f"2024-05-10 00:00:0{k // 10}.{k % 10}09930+00:00,{30 + k},{4 + k % 5}\n" for k in range(20)
)
BURST = "Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type\n" + "".join(
    f"{5 + k / 10},ChatGPT,{30 + k},{4 + k % 5 if k != 7 else 0},{34 + k},Conversation log\n" for k in range(20)
)
MOONCAKE = "".join(
    json.dumps({"timestamp": 100 * k, "input_length": 30 + k, "output_length": 4 + k % 5, "hash_ids": [k]}) + "\n"
    for k in range(20)
)


@pytest.mark.parametrize(("name", "text"), [("azure", AZURE), ("2024", AZURE_24), ("burst", BURST), ("moon", MOONCAKE)])
def test_a_trace_is_replayed_at_its_own_times(tmp_path: Path, name: str, text: str) -> None:
    """Twenty requests, one each 0.1 s, twice as fast: the server sees each at its time, with its lengths."""
    file, record = tmp_path / "trace", tmp_path / "requests.jsonl"
    file.write_text(text)
    with server(tmp_path, "--gap=0.001") as running:
        words = [f"--trace={file}", "--speeds=2", "--model=tiny", "--seconds=9", "--warmup=0", f"--record={record}"]
        parsed = measured(running, *words)
        log = [r for r in running.requests() if r["id"] in {f"fleetmark-{n}" for n in range(4, 30)}]
    assert parsed.invalid is None, parsed.invalid
    seen = sorted((json.loads(line) for line in record.read_text().splitlines()), key=lambda r: r["due"])
    left_out = name == "burst"
    expected = [k for k in range(20) if not (left_out and k == 7)]
    assert len(seen) == len(log) == len(expected)
    assert [r["due"] - seen[0]["due"] for r in seen] == pytest.approx([k / 20 for k in expected], abs=1e-3)
    assert [r["output_tokens"] for r in seen] == [4 + k % 5 for k in expected]
    assert all(abs(r["prompt_tokens"] - 30 - k) <= 3 for r, k in zip(seen, expected, strict=True))
    assert all(r["sent"] >= r["due"] for r in seen), "and none before its time"
    assert any("1 requests of the trace are omitted" in note for note in parsed.notes) == left_out
    assert {m.case for m in parsed.measurements} == {"x2"}


def test_equal_blocks_of_mooncake_are_equal_text(tmp_path: Path) -> None:
    """Each of ten prompts has two common blocks and one of its own: nine of them find 1,024 of 1,536 tokens."""
    file = tmp_path / "trace.jsonl"
    rows = [
        {"timestamp": 120 * k, "input_length": 1536, "output_length": 4, "hash_ids": [1, 2, 100 + k]} for k in range(10)
    ]
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    with server(tmp_path, "--engine=vllm", "--gap=0.001", "--first=0.01") as running:
        parsed = measured(running, f"--trace={file}", "--speeds=1", "--model=tiny", "--seconds=9", "--warmup=0.3")
        log = running.requests()
    assert value(parsed, "reusable_prompt") == pytest.approx(2 / 3, abs=0.01), "after the warm-up, all are known"
    assert value(parsed, "cache_hit_rate") == pytest.approx(2 / 3, abs=CLOSE)
    assert all(r["tokens"] == pytest.approx(1536, abs=8) for r in log[-10:])


def test_a_turn_of_a_session_waits_for_the_one_before_it(tmp_path: Path) -> None:
    """The second turn is due before the first one ends, so it follows its delay after that end."""
    file, record = tmp_path / "trace.jsonl", tmp_path / "requests.jsonl"
    rows: list[dict[str, Any]] = [
        {"timestamp": 0, "session_id": "a", "input_length": 64, "output_length": 16},
        {"timestamp": 10, "session_id": "b", "input_length": 64, "output_length": 16},
        {"session_id": "a", "delay": 200, "input_length": 32, "output_length": 16},
        {"timestamp": 20, "session_id": "b", "input_length": 32, "output_length": 16},
        {"timestamp": 1500, "input_length": 32, "output_length": 16},
    ]
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    with server(tmp_path) as running:
        words = [f"--trace={file}", "--speeds=1", "--model=tiny", "--seconds=9", "--warmup=0", f"--record={record}"]
        parsed = measured(running, *words)
    assert parsed.invalid is None
    a, b, b2, a2, last = sorted((json.loads(line) for line in record.read_text().splitlines()), key=lambda r: r["due"])
    assert a2["due"] - a["end"] == pytest.approx(0.2, abs=1e-6)
    assert b2["due"] == pytest.approx(b["end"], abs=1e-6)
    assert last["due"] - a["due"] == pytest.approx(1.5, abs=1e-6)
    assert a2["prompt_tokens"] == pytest.approx(64 + 16 + 32, abs=6), "new text behind all that was said"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("TIMESTAMP,ContextTokens,GeneratedTokens\nyesterday,5,5\n", "line 2 of {file}: TIMESTAMP is not a date"),
        ("TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:15:46,5\n", "has 2 columns, and the header 3"),
        (
            "TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:15:46,-5,5\n",
            "contexttokens is not a whole number: -5",
        ),
        ("Timestamp,Request tokens,Response tokens\n1e99,5,5\n", "Timestamp is not a time of 0 or more: 1e99"),
        ("Timestamp,Request tokens,Response tokens\nnan,5,5\n", "Timestamp is not a time of 0 or more: nan"),
        ('{"timestamp": -1, "input_length": 5, "output_length": 5}\n', "timestamp is not a time of 0 or more"),
        (
            '{"input_length": 600, "output_length": 5, "hash_ids": [1]}\n',
            "1 hash_ids for 600 tokens: one stands for 512",
        ),
        ('{"input_length": 6, "output_length": 5, "hash_ids": ["x"]}\n', "hash_ids is not a list"),
        ('{"input_length": 6, "output_length": 5, "delay": 5}\n', "delay needs a session_id"),
        ('{"input_length": 6, "output_length": 5}\n', "{file} cannot be replayed: not each request has a timestamp"),
        ("Timestamp,Request tokens,Response tokens\n5,5,0\n", "has no requests"),
    ],
)
def test_wrong_traces_are_one_sentence(tmp_path: Path, text: str, words: str) -> None:
    file = tmp_path / "trace"
    file.write_text(text)
    ran = client("http://127.0.0.1:9", f"--trace={file}", "--speeds=1")
    assert ran.returncode == 1 and ran.stderr.count("\n") == 1
    assert words.replace("{file}", str(file)) in ran.stderr


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--speeds=1"], "only a trace can be replayed"),
        (["--tools"], "tool calls need the chat interface"),
        (["--shared=1"], "at least 0 and below 1"),
        (["--turns=0"], "must be at least 1"),
    ],
)
def test_options_that_do_not_go_together(options: list[str], words: str) -> None:
    ran = client("http://127.0.0.1:9", *options)
    assert ran.returncode == 1 and words in ran.stderr and ran.stderr.count("\n") == 1


# --- targets of the whole answer -------------------------------------------------------------------------------------


def test_goodput_keeps_a_target_of_the_whole_answer(tmp_path: Path) -> None:
    """Eight places of 0.05 s serve 160 requests/s; TTFT alone would allow more."""
    with server(tmp_path, "--places=8", "--first=0.02", "--gap=0.002") as running:
        words = ["--model=tiny", "--e2e=0.4", "--share=0.9", "--probe=1", "--effort=90", "--warmup=0.2"]
        ran = client(running, *words)
    assert ran.returncode == 0, ran.stderr
    parsed = parse("llm_serve", ran.stdout.encode())
    assert parsed.invalid is None, parsed.invalid
    assert 20 < value(parsed, "goodput") < 250
    assert value(parsed, "e2e_p90") <= 0.4


def test_a_target_of_the_whole_answer_that_nothing_keeps(tmp_path: Path) -> None:
    with server(tmp_path) as running:
        parsed = measured(running, "--model=tiny", "--e2e=0.1", "--probe=1", "--seconds=1")
    assert parsed.invalid and "the targets (99% of whole answers within 0.1 s) are not kept" in parsed.invalid


# --- several processes, and lateness ---------------------------------------------------------------------------------


@pytest.mark.parametrize("load", ["--concurrency=12", "--rates=30"])
def test_several_processes_measure_what_one_does(tmp_path: Path, load: str) -> None:
    record = tmp_path / "requests.jsonl"
    with server(tmp_path) as running:
        words = [load, "--model=tiny", "--processes=3", f"--record={record}"]
        parsed = measured(running, *words)
        log = {r["id"]: r for r in running.requests()}
    assert parsed.invalid is None
    seen = [json.loads(line) for line in record.read_text().splitlines()]
    assert len(seen) == value(parsed, "requests") > 20
    for request in seen:
        wrote = log[f"fleetmark-{request['id']}"]
        assert request["due"] <= request["sent"] <= wrote["came"]
        assert wrote["stamps"][0] <= request["first"][0] and wrote["stamps"][-1] <= request["last"][0]
        assert request["output_tokens"] == 16
    if load.startswith("--rates"):
        assert len(seen) == 45, "as many as the rate asks, by whichever process"


def test_a_search_of_goodput_in_several_processes(tmp_path: Path) -> None:
    with server(tmp_path, "--places=8", "--first=0.02", "--gap=0.002") as running:
        words = ["--model=tiny", "--ttft=0.4", "--tpot=0.2", "--share=0.9", "--probe=1", "--effort=90", "--warmup=0.2"]
        ran = client(running, *words, "--processes=2")
    assert ran.returncode == 0, ran.stderr
    parsed = parse("llm_serve", ran.stdout.encode())
    assert parsed.invalid is None and 20 < value(parsed, "goodput") < 250


def test_a_client_that_was_late_is_invalid(served_slowly: Served, tmp_path: Path) -> None:
    """The client is stopped for 0.4 s amid its answers: the server's log knows when they came, and so does the kernel."""
    words = [sys.executable, str(FILES / "client.py"), f"--url={served_slowly.url}", "--model=tiny", "--prompt=40"]
    words += ["--answer=16", "--seconds=4", "--warmup=0.2", "--concurrency=32", "--ready=60"]
    with subprocess.Popen(words, stdout=subprocess.PIPE) as process:
        assert process.stdout and process.stdout.readline()
        time.sleep(1)
        began = time.monotonic()
        os.kill(process.pid, signal.SIGSTOP)
        time.sleep(0.4)
        os.kill(process.pid, signal.SIGCONT)
        stopped_s = time.monotonic() - began
        text = process.stdout.read()
    parsed = parse("llm_serve", b'{"llm_serve": 1, "limit": 0.01}\n' + text)
    assert parsed.invalid and "c32: the client itself was 0." in parsed.invalid
    assert 0.1 < value(parsed, "client_lateness") < stopped_s + 1


@pytest.fixture
def served_slowly(tmp_path: Path) -> Any:
    with server(tmp_path) as running:
        yield running


def test_lateness_is_told_of_every_run() -> None:
    head = {"llm_serve": 1, "model": "m", "here": False, "limit": 0.01}
    run = {"run": "open", "rate": 2, "requests": 200, "answered": 200, "ttft": {"p50": 0.1}, "late": 0.004}
    trial = {"run": "trial", "rate": 3, "late": 0.004}

    def invalid(**late: float) -> str | None:
        lines = (
            head,
            {**run, "late": late.get("run", 0.004)},
            {**trial, "late": late.get("trial", 0.004)},
            {"end": True},
        )
        return parse("llm_serve", "".join(json.dumps(line) + "\n" for line in lines).encode()).invalid

    assert invalid() is None
    assert invalid(run=0.02) == (
        "r2: the client itself was 0.02 s late (99%), more than 0.01 s; raise processes, give the client's host more "
        "processors, or reduce the load"
    )
    assert str(invalid(trial=0.02)).startswith("search at 3/s: the client itself was 0.02 s late")
