"""Every command of the README, tutorials, guides and explanations runs (`tests/documentation/stage.py` says how)."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from tests.corpus import ROOT as CORPUS
from tests.documentation import pages, stage
from tests.documentation.text import HOUSE

JUDGED = {"design", "diagnose", "gate", "history", "review"}  # 1: something is slow, broken, changed or not decided
ELSEWHERE = {  # pages whose commands another test runs one after another
    "own-benchmark": "tests/workloads/test_external.py",
    "python": "tests/test_tutorial.py",
}
NOT_RUN = {
    "needs wheels from the internet": 5,
    "needs files of InferenceX": 2,
    "needs a host with accelerators": 2,
}  # commands of all pages that no test runs, by reason
STAGED = [page for page in pages.PAGES if page.stem not in ELSEWHERE and any(c.is_staged for c in pages.commands(page))]
ALL = [command for page in pages.PAGES for command in pages.commands(page)]


@pytest.mark.job
@pytest.mark.parametrize("page", STAGED, ids=lambda page: page.stem)
def test_the_commands_of_a_page_run(page: Path, tmp_path: Path) -> None:
    if stage.tables(page) and not CORPUS.exists():
        pytest.skip(f"corpus absent: no {CORPUS} (set FLEETMARK_CORPUS)")
    for done in stage.perform(page, tmp_path):
        line = done.command.line
        assert "Traceback" not in done.output, f"{line}\n{done.output}"
        assert done.status in ((0, 1) if JUDGED & set(line.split()) else (0,)), f"{line}\n{done.output}"


def test_commands_that_no_test_runs_are_counted_with_their_reasons() -> None:
    assert Counter(command.reason for command in ALL if command.reason) == NOT_RUN


def test_commands_that_are_left_out_run_elsewhere() -> None:
    places = [*ELSEWHERE.values(), *(command.elsewhere for command in ALL if command.elsewhere)]
    assert [place for place in places if not (HOUSE / place).is_file()] == []
    wrong = [
        f"{command.line}: not in {command.elsewhere}"
        for command in ALL
        if command.elsewhere
        and not all(word in (HOUSE / command.elsewhere).read_text() for word in telling(command.line))
    ]
    assert wrong == []


def telling(line: str) -> list[str]:
    """Return what a test that runs the command must contain: its first option, or the scheme of its address."""
    address = [word for word in ("s3://", "spark") if word in line]
    return address or [word for word in line.split() if word.startswith("--") and word != "--suite"][:1]


def test_most_commands_run() -> None:
    staged = [command.line for command in ALL if command.is_staged]
    assert len(staged) > 120 and {"fleetmark diagnose last", "make test"} <= set(staged)


def test_commands_are_found_and_marked(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        "Use `fleetmark run`, or `fleetmark run --resume last`. <!-- run by tests/x.py -->\n\n"
        "```bash\nfleetmark compare \\\n  -b a -c b   # both\nfleetmark campaigns\n```\n\n"
        "<!-- not run: needs a cluster -->\n```bash\njq . a |\n  kubectl taint\n```\n\n"
        "```console\n$ fleetmark hosts\nhost OS\n```\n\n    fleetmark in an indented block\n"
    )
    assert [(c.line, c.elsewhere, c.reason) for c in pages.commands(page)] == [
        ("fleetmark run --resume last", "tests/x.py", ""),
        ("fleetmark compare   -b a -c b", "", ""),
        ("fleetmark campaigns", "", ""),
        ("jq . a |  kubectl taint", "", "needs a cluster"),
        ("fleetmark hosts", "", ""),
    ]


@pytest.mark.parametrize(
    "page", [page for page in pages.PAGES if page.stem not in ELSEWHERE], ids=lambda page: page.stem
)
def test_commands_stand_in_blocks_that_are_run(page: Path) -> None:
    lines = page.read_text("utf-8").splitlines()
    assert [
        line for line in lines if line.startswith(("    fleetmark ", "    pip ", "    make ", "    ansible "))
    ] == []


def test_runs_and_plans_become_small() -> None:
    assert stage.small(["run", "-i", "h.yml", "--suite", "standard", "--set", "fio.size=1GiB", "--become"]) == [
        *("run", "-i", "h.yml", "--suite", "openssl_speed"),
        *stage.SMALL_RUN,
    ]
    assert stage.small(["plan", "demand.yml"]) == ["plan", "demand.yml", *stage.SMALL_PLAN]
    assert stage.small(["run", "--resume", "last"]) == ["run", "--resume", "last"]
