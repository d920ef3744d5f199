"""The line that is quoted of a command that failed."""

from __future__ import annotations

import pytest

from fleetmark.campaign.outcome import _last_words

RULE = "-" * 74


@pytest.mark.parametrize(
    ("output", "quoted"),
    [
        ("one\ntwo\n", "two"),
        ("", "it printed nothing"),
        (f"Host key verification failed.\n{RULE}\nORTE was unable to start.\n\n  * firewalls).\n{RULE}\n", "Host key verification failed."),
        (f"{RULE}\nThere are not enough slots.\nAsk for fewer.\n{RULE}\n", "There are not enough slots."),
        ("usage:\n----\n", "----"),
    ],
)  # fmt: skip
def test_a_launchers_explanations_are_not_its_last_words(output: str, quoted: str) -> None:
    assert _last_words(output) == quoted
