"""The documentation's links lead somewhere, and mkdocs builds its site without a warning."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.documentation.text import COMMENT, FENCE, HOUSE, LINK, PAGES

MORE = [HOUSE / "CHANGELOG.md", HOUSE / "SECURITY.md"]
TARGET = re.compile(r"\]\(([^)#\s]*)(?:#([^)\s]*))?\)")


def anchors(page: Path) -> set[str]:
    """Return the anchors that GitHub and mkdocs give to the headings of a page."""
    text = FENCE.sub("", COMMENT.sub("", page.read_text("utf-8")))
    titles = (LINK.sub(r"\1", title).replace("`", "") for title in re.findall(r"^#+\s+(.*)$", text, re.MULTILINE))
    return {re.sub(r"[^\w\- ]", "", title.lower().strip()).replace(" ", "-") for title in titles}


@pytest.mark.parametrize("page", [*PAGES, *MORE], ids=lambda page: str(page.relative_to(HOUSE)))
def test_links_lead_somewhere(page: Path) -> None:
    wrong = []
    for target, anchor in TARGET.findall(FENCE.sub("", page.read_text("utf-8"))):
        if "://" in target:
            continue
        path = (page.parent / target).resolve() if target else page
        if not path.exists() or (anchor and path.suffix == ".md" and anchor not in anchors(path)):
            wrong.append(f"{target}#{anchor}")
    assert not wrong, f"{page.name}: {', '.join(wrong)}"


def test_the_site_builds_without_a_warning(tmp_path: Path) -> None:
    program = Path(sys.executable).with_name("mkdocs")
    mkdocs = os.environ.get("FLEETMARK_MKDOCS") or (str(program) if program.exists() else shutil.which("mkdocs"))
    if not mkdocs:
        pytest.skip("mkdocs is not installed: pip install mkdocs-material, or set FLEETMARK_MKDOCS to its path")
    words = [
        mkdocs,
        "build",
        "--strict",
        "--quiet",
        "--config-file",
        str(HOUSE / "mkdocs.yml"),
        "--site-dir",
        str(tmp_path),
    ]
    done = subprocess.run(words, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert (tmp_path / "tutorials" / "first-fleet" / "index.html").exists()
