"""The client of LLM servers, against a server whose delays are known by its own log, and against servers that misbehave."""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from fleetmark.base.errors import FleetmarkError
from fleetmark.base.measurement import Parsed
from fleetmark.campaign.schedule import settings_of
from fleetmark.workloads import Choice, Suite
from tests.llm.running import FILES, HOSTILE, Served, client, measured, server
from tests.workloads.scheduling import reason, scheduled

NEAR = 0.002  # seconds
TRIES = 4


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with server(tmp_path_factory.mktemp("llm")) as running:
        yield running


def value(parsed: Parsed, metric: str, case: str | None = None) -> float:
    (figure,) = {m.value for m in parsed.measurements if m.metric == metric and case in (None, m.case)}
    return figure


def legs(served: Served, seen: list[dict[str, Any]]) -> dict[str, list[float]]:
    """Seconds on the way, a value a request, sorted: to the server, and to the client with the first and the last token.

    Both stamp with the monotonic clock of one kernel.
    """
    log = {r["id"]: r for r in served.requests()}
    pairs = [(request, log[f"fleetmark-{request['id']}"]) for request in seen]
    return {
        "request": sorted(wrote["came"] - request["due"] for request, wrote in pairs),
        "first": sorted(request["first"][0] - wrote["stamps"][0] for request, wrote in pairs),
        "last": sorted(request["last"][0] - wrote["stamps"][-1] for request, wrote in pairs),
    }


def near(ways: dict[str, list[float]]) -> bool:
    """Whether the fastest quarter was within the limit: a steady error shifts all, a busy machine only some."""
    return all(values[len(values) // 4] < NEAR for values in ways.values())


@pytest.mark.parametrize(
    ("load", "api", "seconds"),
    [
        ("--concurrency=1", "completions", 2),
        ("--concurrency=32", "completions", 1),
        ("--concurrency=32", "chat", 1),
        ("--rates=12", "chat", 1),
        ("--rates=60", "completions", 1),
    ],
)
def test_delays_are_those_of_the_servers_own_log(tmp_path: Path, load: str, api: str, seconds: int) -> None:
    """The record agrees with the log, and the figures with the record.

    Nothing comes before it was sent, on any machine. A machine that was busy throughout may be tried again: an error
    of the client is there each time.
    """
    record = tmp_path / "requests.jsonl"
    options = [load, f"--api={api}", "--model=tiny", f"--record={record}", f"--seconds={seconds}"]
    tries = []
    with server(tmp_path) as served:
        while len(tries) < TRIES and not (tries and near(tries[-1])):
            parsed = measured(served, *options)
            seen = [json.loads(line) for line in record.read_text().splitlines()]
            tries.append(legs(served, seen))
            assert all(values[0] >= 0 for values in tries[-1].values())
    assert near(tries[-1]), [{name: values[len(values) // 4] for name, values in ways.items()} for ways in tries]

    firsts = sorted(r["first"][0] - r["due"] for r in seen)
    gaps = sorted((r["last"][0] - r["first"][0]) / 15 for r in seen)
    assert len(seen) == value(parsed, "requests")
    assert value(parsed, "ttft_p50") == pytest.approx(firsts[(len(firsts) - 1) // 2])
    assert value(parsed, "ttft_mean") == pytest.approx(statistics.mean(firsts))
    assert value(parsed, "tpot_p50") == pytest.approx(gaps[(len(gaps) - 1) // 2])
    assert value(parsed, "itl_mean") == pytest.approx(statistics.mean(gaps))
    assert value(parsed, "interactivity") == pytest.approx(1 / value(parsed, "tpot_p50"))
    assert value(parsed, "output_tokens") == 16
    assert value(parsed, "prompt_tokens") == pytest.approx(40, abs=4)
    assert parsed.invalid is None
    assert parsed.window and parsed.window[1] - parsed.window[0] == pytest.approx(seconds)
    assert abs(time.time() - parsed.window[1]) < 600 and not parsed.elsewhere, "this machine answers, now"


def test_rates_are_what_the_delays_allow(tmp_path: Path) -> None:
    """Two places of 16 tokens each: however many ask, two are served, and the others wait for their first token."""
    with server(tmp_path, "--places=2") as running:
        parsed = measured(running, "--concurrency=1,2,8", "--model=tiny")
        requests = running.requests()
    rates = [value(parsed, "output_tokens_per_second", f"c{n}") for n in (1, 2, 8)]
    took = statistics.median(r["stamps"][-1] - r["stamps"][0] for r in requests)
    assert rates[1] == pytest.approx(2 * rates[0], rel=0.25)
    assert rates[2] == pytest.approx(rates[1], rel=0.25)
    assert value(parsed, "ttft_p50", "c8") > 2 * took > value(parsed, "ttft_p50", "c2")


@pytest.mark.parametrize(
    ("model", "words"),
    [
        ("short", "c4: {n} of {n} requests failed ({n} cut, 4 of 16 tokens, finish_reason stop)"),
        ("broken", "HTTP 500, broken indeed"),
        ("busy", "HTTP 429, busy indeed"),
        ("hang", "timeout, nothing came for 1 s"),
    ],
)
def test_answers_that_fail_are_told_and_never_fast(tmp_path: Path, model: str, words: str) -> None:
    with server(tmp_path) as running:
        parsed = measured(running, "--concurrency=4", f"--model={model}", "--patience=1")
    requests = f"{value(parsed, 'requests'):g}"
    assert parsed.invalid and words.replace("{n}", requests) in parsed.invalid
    if model == "short":
        assert {m.metric for m in parsed.measurements} == {"requests", "failures"}
        assert value(parsed, "failures") == 1
    else:
        assert 0.1 < value(parsed, "failures") < 0.9
        assert not [m for m in parsed.measurements if m.metric in ("ttft_p99", "e2e_p99")]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--model=cut"], "does not answer a request of the wanted length: cut: 4 of 16 tokens, finish_reason None"),
        (["--model=later"], "longer than asked: 32 of 16 tokens"),
        (["--model=closes"], "the connection was closed before the answer's end"),
        (["--model=garbage"], "broken stream: an event that is not JSON"),
        (["--model=uncounted"], "counts no tokens (stream_options.include_usage)"),
        (["--model=gpt"], "has no model gpt; it has tiny, cut"),
        (["--model=tiny", "--answer=200000"], "maximum context length is 100000 tokens"),
        (["--prompt=12-3"], "12-3 is not a length"),
        (["--trace=/none"], "/none: No such file or directory: give a trace"),
        (["--key-env=NOT_THERE"], "NOT_THERE of the client's host is not set"),
        (["--key-file=/none"], "the key file /none cannot be read"),
        (["--concurrency=0"], "0: each must be above 0"),
    ],
)
def test_what_cannot_be_measured_is_one_sentence(served: Served, options: list[str], words: str) -> None:
    ran = client(served, *options)
    assert ran.returncode == 1
    assert words in ran.stderr and ran.stderr.count("\n") == 1


def test_an_endpoint_that_is_not_there(tmp_path: Path) -> None:
    ran = client("http://127.0.0.1:9", "--ready=0.1")
    assert ran.stderr == "http://127.0.0.1:9 is not there after 0.1 s (refused: ECONNREFUSED)\n"


def test_a_key_is_sent_and_never_written(tmp_path: Path) -> None:
    key = "sk-test-0123456789"
    (tmp_path / "key").write_text(key + "\n")
    (tmp_path / "wrong").write_text("sk-wrong-0123456789")
    with server(tmp_path, f"--key={key}") as running:
        without = client(running, "--concurrency=1")
        refused = client(running, f"--key-file={tmp_path / 'wrong'}")
        by_file = client(running, "--concurrency=1", f"--key-file={tmp_path / 'key'}", "--seconds=1")
        by_name = client(running, "--key-env=MY_KEY", env={"MY_KEY": key, "PATH": "/usr/bin:/bin"})
    assert "wants a key: set llm_serve.key_file or key_env" in without.stderr
    assert "refuses the key (HTTP 401)" in refused.stderr
    assert by_file.returncode == by_name.returncode == 0
    for ran in (without, refused, by_file, by_name):
        assert "sk-" not in ran.stdout + ran.stderr


_STREAM = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"


@contextmanager
def hostile(raw: bytes, *words: str) -> Iterator[str]:
    """The URL of a server that answers every request with ``raw``."""
    program = [sys.executable, str(HOSTILE), raw.hex(), *words]
    with subprocess.Popen(program, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        try:
            yield f"http://127.0.0.1:{process.stdout.readline().strip()}"
        finally:
            process.kill()


@pytest.mark.parametrize(
    ("raw", "words"),
    [
        (_STREAM + "-5\r\nhello, hello, hello", "a chunk without a size"),
        (_STREAM + "9" * 5000 + "\r\n", "a chunk without a size"),
        ("HTTP/1.1 2\xb20 OK\r\n\r\n", "no answer of HTTP/1"),
        ("HTTP/1.1 200 OK\r\nContent-Length: \xb2\r\n\r\n", "counts no tokens"),
        (
            'HTTP/1.1 200 OK\r\n\r\ndata: {"usage": {"prompt_tokens": 1'
            + "0" * 400
            + ', "completion_tokens": 16}}\n\n',
            "counts no tokens",
        ),
        ("HTTP/1.1 200 OK\r\n\r\n" + 'data: {"choices": [{"text": "a"}]}\n\n' * 70, "pieces of text for 1 token"),
    ],
)
def test_a_hostile_server_is_one_sentence(raw: str, words: str) -> None:
    with hostile(raw.encode("latin-1")) as url:
        ran = client(url, "--concurrency=1")
    assert ran.returncode == 1
    assert words in ran.stderr and ran.stderr.count("\n") == 1 and len(ran.stderr) < 1000


def test_a_server_that_lists_the_key_as_its_model_does_not_get_it_written(tmp_path: Path) -> None:
    (tmp_path / "key").write_text("sk-test-0123456789")
    with hostile(b"HTTP/1.1 500 No\r\nContent-Length: 0\r\n\r\n", "echo") as url:
        ran = client(url, "--concurrency=1", f"--key-file={tmp_path / 'key'}", "--model=other")
    assert "has no model other; it has model ***" in ran.stderr


def test_what_ends_a_server_is_told_without_the_key(tmp_path: Path) -> None:
    (tmp_path / "key").write_text("sk-test-0123456789")
    words = ["--address=127.0.0.1", "--port=17396", "--control=17397", "echo error: api_key=sk-test-0123456789; exit 3"]
    with subprocess.Popen(
        [sys.executable, FILES / "server.py", *words], cwd=tmp_path, stderr=subprocess.PIPE
    ) as process:
        assert process.stderr and process.stderr.readline()
        try:
            ran = client(
                "http://127.0.0.1:17396", "--watch=127.0.0.1:17397", "--ready=60", f"--key-file={tmp_path / 'key'}"
            )
        finally:
            process.kill()
    assert ran.stderr == "the server ended before it served: exit status 3: error: api_key=***\n"


def test_several_tokens_a_piece_are_told(served: Served) -> None:
    parsed = measured(served, "--concurrency=4", "--model=pieces")
    assert parsed.invalid is None
    assert any("the server sends 4 tokens per piece" in note for note in parsed.notes)
    metrics = {m.metric for m in parsed.measurements}
    assert "piece_gap_p50" in metrics and "itl_p50" not in metrics
    assert value(parsed, "output_tokens") == 16


def test_a_run_too_short_for_a_request_says_so(served: Served) -> None:
    parsed = measured(served, "--concurrency=4", "--model=tiny", "--seconds=0.001")
    assert parsed.invalid == "c4: no request was sent in the measured time; raise seconds"
    assert {m.metric: m.value for m in parsed.measurements} == {"requests": 0}


def test_answers_may_end_by_themselves(served: Served) -> None:
    parsed = measured(served, "--concurrency=2", "--model=short", "--natural")
    assert parsed.invalid is None and value(parsed, "output_tokens") == 4


def test_targets_that_nothing_keeps_have_no_figure(tmp_path: Path) -> None:
    with server(tmp_path) as running:
        parsed = measured(running, "--model=tiny", "--ttft=0.01", "--tpot=0.05", "--probe=1", "--seconds=1")
    assert parsed.invalid is not None and {m.metric for m in parsed.measurements} == {"rate_tried"}
    assert parsed.invalid.startswith(
        "the targets (99% of first tokens within 0.01 s, of later ones within 0.05 s each)"
    )


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('{"prompt_tokens": 8, "output_tokens": 4}\nx\n', "line 2 of"),
        (
            '{"prompt_tokens": 0, "output_tokens": 4}\n',
            "line 1 of {file}: prompt_tokens is not a whole number of 1 or more",
        ),
        ('{"prompt_tokens": 8}\n', "output_tokens is not a whole number"),
        ('{"prompt": "", "output_tokens": 4}\n', "prompt is not text"),
        ("\n", "has no requests"),
        ("\x80", "is not UTF-8 text"),
    ],
)
def test_wrong_lines_of_a_trace_are_named(served: Served, tmp_path: Path, text: str, words: str) -> None:
    file = tmp_path / "trace.jsonl"
    file.write_bytes(text.encode("latin-1"))
    ran = client(served, f"--trace={file}")
    assert ran.returncode == 1 and words.replace("{file}", str(file)) in ran.stderr


def test_a_trace_gives_the_lengths(served: Served, tmp_path: Path) -> None:
    file = tmp_path / "trace.jsonl"
    rows: list[dict[str, Any]] = [
        {"prompt": "one two three", "output_tokens": 6},
        {"input_length": 30, "output_length": 10},
    ]
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    parsed = measured(served, f"--trace={file}", "--concurrency=1", "--model=tiny")
    assert 6 < value(parsed, "output_tokens") < 10
    assert 3 < value(parsed, "prompt_tokens") < 31


def test_the_server_that_ended_is_told_with_its_last_words(tmp_path: Path) -> None:
    """As a model that does not fit ends its server."""
    command = "echo loading; echo 'torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 90 GiB' >&2; exit 3"
    words = ["--address=127.0.0.1", "--port=17398", "--control=17399", command]
    with subprocess.Popen(
        [sys.executable, FILES / "server.py", *words], cwd=tmp_path, stderr=subprocess.PIPE
    ) as process:
        assert process.stderr and b"ended with exit status 3" in process.stderr.readline()
        try:
            ran = client("http://127.0.0.1:17398", "--watch=127.0.0.1:17399", "--ready=60")
        finally:
            process.kill()
    assert ran.stderr == (
        "the server ended before it served: exit status 3: "
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 90 GiB\n"
    )


def test_the_client_runs_on_python_3_6() -> None:
    for file in FILES.glob("*.py"):
        vermin = [Path(sys.executable).with_name("vermin"), "-t=3.6-", "--no-tips", file]
        ran = subprocess.run(vermin, capture_output=True, text=True, check=False)
        assert ran.returncode == 0, f"{file.name}: {ran.stdout}"


# --- what is scheduled -----------------------------------------------------------------------------------------------


def test_a_command_serves_on_one_host_of_a_pair_and_the_client_runs_on_the_other() -> None:
    steps = scheduled("llm_serve", 2, command="serve --port {port}", concurrency=[4], ttft=0)
    (serving,) = [s for s in steps["h2"] if s.serves]
    (client_step,) = [s for s in steps["h1"] if not s.serves]
    assert serving.argv[-1] == "serve --port {port}" and "--address=10.0.0.2" in serving.argv
    assert "--url=http://10.0.0.2:17390" in client_step.argv and client_step.case == "p512-o128-c4"


def test_a_url_is_loaded_by_each_host_alone() -> None:
    steps = scheduled("llm_serve", 2, url="http://llm:8000", concurrency=[4], rates=[0.5], ttft=0)
    for of_host in steps.values():
        assert {s.case for s in of_host} == {"p512-o128-c4", "p512-o128-r0.5"}
        assert all(s.subject == "host" and not s.serve and not s.serves for s in of_host)


def test_without_an_endpoint_a_host_is_skipped() -> None:
    assert "llm_serve.url (an OpenAI-compatible endpoint)" in reason("llm_serve")


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"url": "h:8000"}, "begin with http"),
        ({"url": "http://h", "command": "x"}, "not both"),
        ({"url": "http://h", "key_env": "sk-abcdef"}, "never the key"),
        ({"command": "vllm serve m --api-key sk-abcdef"}, "contains the value of --api-key"),
        ({"command": "VLLM_API_KEY=sk-abcdef vllm serve m"}, "contains the value of VLLM_API_KEY"),
        ({"url": "http://h", "trace": "t.jsonl"}, "absolute path"),
        ({"url": "http://h", "reference": __file__, "quality": False}, "llm_serve.quality with llm_serve.reference"),
        ({"url": "http://h", "reference": "https://h/a.json"}, "a file on this machine"),
    ],
)
def test_mistakes_are_refused_before_any_host_is_touched(settings: dict[str, Any], words: str) -> None:
    suite = Suite(name="s", description="x", workloads={"llm_serve": Choice(set=settings)})
    with pytest.raises(FleetmarkError, match=words) as refused:
        settings_of(suite, {})
    assert "sk-abcdef" not in str(refused.value)
