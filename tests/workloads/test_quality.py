"""The check of answers beside speed, against a server whose answers are known."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest

from tests.llm.model import Model
from tests.llm.running import client, measured, server

USUAL = math.e  # the server finds each token of the text with a log-probability of -1


def test_a_sound_server_calculates_and_knows_the_text(tmp_path: Path) -> None:
    with server(tmp_path) as running:
        parsed = measured(running, "--model=tiny", "--concurrency=2", "--quality", f"--perplexity={USUAL}")
    assert parsed.invalid is None
    value = {m.metric: m.value for m in parsed.measurements}
    assert (value["exact_match"], value["retrieval"], value["perplexity"]) == (1.0, 1.0, pytest.approx(USUAL))


@pytest.mark.parametrize("api", ["completions", "chat"])
def test_a_quantised_server_shows_as_such(tmp_path: Path, api: str) -> None:
    with server(tmp_path) as running:
        words = ["--model=quantised", "--concurrency=2", "--quality", f"--perplexity={USUAL}", f"--api={api}"]
        parsed = measured(running, *words)
    value = {m.metric: m.value for m in parsed.measurements}
    assert 0.3 < value["exact_match"] < 0.8
    assert 0.2 < value["retrieval"] < 0.8
    if api == "completions":
        assert value["perplexity"] == pytest.approx(math.exp(1.1))
        assert parsed.invalid == (
            "the answers are not those of the same model: the fixed text has perplexity 3.004, and 2.718 is expected, "
            "within 2%"
        )
    else:
        assert "perplexity" not in value, "chat tells no log-probabilities of a prompt"


def test_a_server_that_breaks_under_load_is_invalid(tmp_path: Path) -> None:
    with server(tmp_path, "--decays") as running:
        parsed = measured(running, "--model=tiny", "--concurrency=2", "--quality")
    assert parsed.invalid is not None
    assert parsed.invalid.startswith("answers became worse: 100% of the arithmetic was right before the runs and ")
    assert "; answers became worse: 100% of the retrieval was right before the runs and " in parsed.invalid
    assert "the fixed text has perplexity 3.004 after the runs and 2.718 before" in parsed.invalid


QUICK = ("--concurrency=1", "--seconds=0.5", "--warmup=0", "--quality")


def test_a_fixed_text_is_stored_token_by_token_and_compared(tmp_path: Path) -> None:
    """Weights of 8 bits stay within the bound, those of 4 bits and a damaged row do not: by a real model of bytes."""
    stored = tmp_path / "logprobs.json"
    with server(tmp_path) as running:
        first = measured(running, "--model=bytes", *QUICK, f"--logprobs={stored}")
        reference = json.loads(stored.read_text())
        results = {
            name: measured(running, f"--model={name}", *QUICK, f"--reference={stored}", "--bound=0.1")
            for name in ("bytes", "bytes-8bit", "bytes-4bit", "bytes-broken")
        }
    assert first.invalid is None and reference["model"] == "bytes"
    text = "".join(reference["tokens"])
    assert text.startswith("Four score") and len(reference["logprobs"]) == len(text) == len(reference["top"])
    exact = Model().following(text[:9])
    assert reference["logprobs"][9] == pytest.approx(exact[ord(text[9]) - 32])
    figures = {name: {m.metric: m.value for m in parsed.measurements} for name, parsed in results.items()}
    assert (figures["bytes"]["logprob_difference"], figures["bytes"]["top1_agreement"]) == (0, 1)
    assert results["bytes"].invalid is results["bytes-8bit"].invalid is None
    differences = [figures[name]["logprob_difference"] for name in results]
    assert differences == sorted(differences) and 0 < differences[1] < 0.1 < differences[2]
    for name in ("bytes-4bit", "bytes-broken"):
        assert figures[name]["logprob_difference_max"] > figures[name]["logprob_difference"]
        assert figures[name]["top1_agreement"] < 1
        assert (results[name].invalid or "").startswith(
            "before the runs the answers are not those of the reference: log-probabilities of the fixed text differ by "
        )


@pytest.mark.parametrize("api", ["completions", "chat"])
def test_an_endpoint_that_repeats_no_prompt_is_compared_by_its_next_tokens(tmp_path: Path, api: str) -> None:
    """Engines such as llama.cpp have no echo, and chats never: the likeliest tokens after parts of the text count."""
    stored, words = tmp_path / "logprobs.json", (*QUICK, f"--api={api}")
    with server(tmp_path, "--no-echo") as running:
        first = measured(running, "--model=bytes", *words, f"--logprobs={stored}")
        results = {
            name: measured(running, f"--model={name}", *words, f"--reference={stored}", "--bound=0.1")
            for name in ("bytes", "bytes-8bit", "bytes-4bit")
        }
    document = json.loads(stored.read_text())
    assert first.invalid is None and document["chat"] is (api == "chat") and len(document["places"]) == 40
    if api == "completions":
        assert document["places"][0] == pytest.approx(Model().tops("Four score", 5))
    figures = {name: {m.metric: m.value for m in parsed.measurements} for name, parsed in results.items()}
    assert (figures["bytes"]["logprob_difference"], figures["bytes"]["top1_agreement"]) == (0, 1)
    assert 0 < figures["bytes-8bit"]["logprob_difference"] < 0.1 < figures["bytes-4bit"]["logprob_difference"]
    assert results["bytes"].invalid is results["bytes-8bit"].invalid is None
    assert "answers are not those of the reference" in (results["bytes-4bit"].invalid or "")


def test_a_reference_of_next_tokens_holds_for_endpoints_with_echo(tmp_path: Path) -> None:
    stored = tmp_path / "logprobs.json"
    with server(tmp_path, "--no-echo") as running:
        measured(running, "--model=bytes", *QUICK, f"--logprobs={stored}")
    with server(tmp_path) as running:
        like = measured(running, "--model=bytes", *QUICK, f"--reference={stored}")
        chat = measured(running, "--model=bytes", *QUICK, f"--reference={stored}", "--api=chat")
    assert {m.metric: m.value for m in like.measurements}["logprob_difference"] == 0
    assert (chat.invalid or "").endswith("the other interface: set llm_serve.api as it was there")


def reference(tmp_path: Path, **changes: object) -> Path:
    document = {"llm_serve_reference": 1, "tokens": ["a"] * 30, "logprobs": [-1.0] * 30, "top": ["a"] * 30}
    path = tmp_path / "reference.json"
    path.write_text(json.dumps(document | changes))
    return path


@pytest.mark.parametrize(
    ("model", "words"),
    [
        ("bytes", "its tokens differ from the reference's from number 1 on: another tokenizer"),
        ("tiny", "the endpoint tells no tokens of the text"),
    ],
)
def test_what_cannot_be_compared_is_invalid(tmp_path: Path, model: str, words: str) -> None:
    with server(tmp_path) as running:
        parsed = measured(running, f"--model={model}", *QUICK, f"--reference={reference(tmp_path)}")
    assert parsed.invalid == f"the fixed text cannot be compared with the reference: {words}"
    assert not [m for m in parsed.measurements if m.metric == "logprob_difference"]


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"llm_serve_reference": 2}, "it is no logprobs.json of an earlier case"),
        ({"logprobs": [1.0] * 30}, "it has no log-probability for each token"),
        ({"logprobs": ["x"] * 30}, "it has no log-probability for each token"),
        ({"tokens": ["a"]}, "it has no log-probability for each token"),
        ({"places": [{"a": 0.5}] * 40}, "it has too few log-probabilities"),
        ({"places": 7}, "it has too few log-probabilities"),
    ],
)
def test_a_damaged_reference_is_refused_in_a_sentence(tmp_path: Path, changes: dict[str, object], words: str) -> None:
    path = reference(tmp_path, **changes)
    ran = client("http://127.0.0.1:9", "--model=tiny", *QUICK, f"--reference={path}")
    assert (ran.returncode, ran.stderr) == (1, f"the reference {path} cannot be used: {words}\n")
