"""Documents in Chinese have no English left, except names, units, benchmarks and commands."""

from __future__ import annotations

import html as escapes
import re
from collections import Counter
from pathlib import Path

import pytest

from fleetmark.reports.formats import html
from fleetmark.reports.kit.language import language
from tests.reports.kinds import KINDS

# What may be Latin: code, names of machines and files, drawings, scripts.
_LEFT_OUT = re.compile(
    r"<(script|style|code|bdi|svg|title|template)\b.*?</\1>|<head>.*?</head>|<th scope=\"row\">.*?</th>", re.S
)
_TAG = re.compile(r"<[^>]+>")
_SENTENCE = re.compile(r"(?<![\w/.=-])[A-Za-z][a-z]+(?:[ ,]+[a-z][a-z-]+){2,}(?![\w/=])")


def english(page: str) -> list[str]:
    """Return the runs of three and more English words of a page."""
    text = escapes.unescape(_TAG.sub(" | ", _LEFT_OUT.sub(" | ", page)))
    return [m[0] for m in _SENTENCE.finditer(text)]


def test_the_measure_sees_english() -> None:
    assert english("<p>测试 nothing was measured here</p>") == ["nothing was measured here"]
    assert english("<p>测试 stream triad <code>this is a command</code></p>") == []


@pytest.mark.parametrize("kind", KINDS)
def test_no_english_is_left(kind: str, tmp_path: Path) -> None:
    page = html.render(KINDS[kind](tmp_path), language("zh-CN"))
    assert Counter(english(page)) == Counter()
