"""Documents in Chinese have no English left, except names, units, benchmarks, commands and recorded texts."""

from __future__ import annotations

import html as escapes
import re
from pathlib import Path

import pytest

from fleetmark import workloads
from fleetmark.reports.formats import html
from fleetmark.reports.kit.language import language
from tests.reports.kinds import KINDS

HOUSE = Path(__file__).parents[2]
# Code, names of machines and files, drawings and scripts.
_LEFT_OUT = re.compile(
    r"<(script|style|code|bdi|svg|title|template)\b.*?</\1>|<head>.*?</head>|<th scope=\"row\">.*?</th>", re.S
)
_TAG = re.compile(r"<[^>]+>")
_SENTENCE = re.compile(r"(?<![\w/.=-])[A-Za-z][a-z]+(?:[ ,]+[a-z][a-z-]+){2,}(?![\w/=])")
# Texts of the samples: messages of tools and hosts, which documents repeat as they were recorded.
_RECORDED = (
    "fio exited with status",
    "Operation not permitted",
    "connect to host",
    "No route to host",
    "foreign cores were busy",
    "no compiler on the host",
    "install gcc and make there, or put",
    "The clock of ice-b is",
    "ahead of the controller",
    "its host key",
    "is not known",
    "fio needs fio",
    "sudo apt-get install fio",
    "power at ams",
    "demand of web in",
    "genoa over icelake",
    "too few machines",
    "bitrate, to genoa",
    "bitrate, to icelake",
    "nginx tls rps",
    "rate, of requests",
)


def english(page: str) -> list[str]:
    """Return the runs of three and more English words of a page that are no names."""
    text = escapes.unescape(_TAG.sub(" | ", _LEFT_OUT.sub(" | ", page)))
    names, manifests = workloads.names(), _manifests()
    return [
        matches
        for matches in (match[0] for match in _SENTENCE.finditer(text))
        if matches not in _RECORDED and matches not in manifests and re.split("[ ,]", matches)[0].lower() not in names
    ]


def _manifests() -> str:
    """Return the text of all manifests, whose descriptions and licences are English."""
    return " ".join(" ".join(path.read_text("utf-8").split()) for path in sorted((HOUSE / "workloads").rglob("*.yml")))


def test_the_measure_sees_english() -> None:
    assert english("<p>测试 nothing was measured here</p>") == ["nothing was measured here"]
    assert english("<p>测试 stream all-cores triad <code>this is a command</code></p>") == []


@pytest.mark.parametrize("kind", KINDS)
def test_no_english_is_left(kind: str, tmp_path: Path) -> None:
    assert english(html.render(KINDS[kind](tmp_path), language("zh-CN"))) == []
