"""The terminal recording: its screen behaves like a terminal, and its picture is small, valid and complete."""

from __future__ import annotations

import re
from xml.etree import ElementTree

from scripts.terminal import Frame, Screen, picture
from tests.documentation.text import DOCS, HOUSE

SVG = "{http://www.w3.org/2000/svg}"
LARGEST_BYTES = 400_000


def test_a_screen_keeps_colours_and_erases_what_is_printed_again() -> None:
    screen = Screen("\x1b[1;32m$\x1b[0m run\r\n")
    screen.feed("1 of 2\r\nh1 busy\r\x1b[2K\x1b[1A\x1b[2K2 of 2")
    assert screen.text() == "$ run\n2 of 2\n"
    assert screen.rows() == [((0, "$", (1, 32)), (2, "run", ())), ((0, "2 of 2", ()),), ()]


def test_wide_gaps_are_not_drawn() -> None:
    assert Screen("a b    c").rows() == [((0, "a b", ()), (7, "c", ()))]


def test_a_picture_draws_each_row_once_and_escapes_it() -> None:
    rows = Screen("a<b & c").rows()
    drawn = ElementTree.fromstring(picture([Frame(rows, 1.0), Frame([(), *rows], 3.0)]))
    texts = [element.text for element in drawn.iter(f"{SVG}text")]
    assert texts == ["a<b & c"] and len(list(drawn.iter(f"{SVG}use"))) == 2
    assert "25.000%{transform:translateY(-598px)}" in ElementTree.tostring(drawn, "unicode")


def test_the_recording_is_small_and_shows_the_commands() -> None:
    file = DOCS / "images" / "tour.svg"
    assert file.stat().st_size < LARGEST_BYTES
    texts = " ".join(element.text or "" for element in ElementTree.parse(file).iter(f"{SVG}text"))
    assert not [verb for verb in ("hosts", "run", "report", "compare", "diagnose") if f"fleetmark {verb} " not in texts]
    assert not re.search(r"Traceback|/tmp/|/root/", texts)
    assert all("images/tour.svg" in page.read_text("utf-8") for page in (HOUSE / "README.md", DOCS / "index.md"))
