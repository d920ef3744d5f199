"""The check of answers beside speed, against a server whose answers are known."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from tests.llm.running import measured, server

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
