"""How long every form of a report takes over a large record, its size and peak memory, and how soon the page can be used.

``python -m benchmarks.reports [HOSTS] [METRICS] [REPEATS]`` (1000 300 5), then 10,000 hosts x 200 metrics as a workbook,
without and with all raw values.
Every figure is a headline, every host has facts and every run an outcome, as in a campaign that was run; there are no raw
files, so no telemetry is read. Each form is made by a process of its own, from the command line on. The page is opened
in headless Chromium where that and Playwright are installed.

Beside the workbook stand figures of SuperBench's ``result summary`` of 10,000 nodes, measured on this machine when it was quiet
(2026-11-22): 24.0 s and 203 MB without raw values, as ours, and 51.7 s and 873 MB for a workbook with all of them. It is not on
PyPI; docs/performance.md has both from one session.
"""

from __future__ import annotations

import json
import shutil
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path

from benchmarks.comparison import record
from benchmarks.measuring import FLEETMARK, compile_modules, measured
from fleetmark.record.archive import Archive
from tests.reports import sample

SUPERBENCH = (24.0, 203.0)  # s, MB
PAGE_LIMIT_MS = 120_000


def campaign(root: Path, hosts: int, metrics: int, repeats: int) -> None:
    """The record of ``benchmarks.comparison``, and what a run leaves beside it: facts, and the journal."""
    path = record(root, hosts, metrics, repeats)
    archive = Archive(path.parent)
    kinds = (replace(sample.OLD, name="a"), replace(sample.NEW, name="b"))
    for number in range(hosts):
        archive.save_facts(f"h{number}", sample.facts(f"h{number}", kinds[number % 2], number), {})
    cases = sorted({(f"w{m // 20}", f"case-{m % 20 // 5}") for m in range(metrics)})
    event = {"t": "2026-01-01T01:00:00.000Z", "e": "outcome", "subject": "host", "status": "passed", "reason": ""}
    event |= {"started": "2026-01-01T00:59:00.000Z", "wall_s": 59.123456, "foreign_cores": 0.0123, "notes": []}
    with (path.parent / "journal.jsonl").open("w") as out:
        for number in range(hosts):
            for workload, case in cases:
                for repeat in range(repeats):
                    about = {"host": f"h{number}", "workload": workload, "case": case, "repeat": repeat}
                    out.write(json.dumps(event | about) + "\n")
        out.write(json.dumps({"t": "2026-01-01T01:00:01.000Z", "e": "ended", "owed": 0}) + "\n")


def forms(root: Path) -> None:
    """Every form of a comparison and of the campaign's own report."""
    compared = ["compare", "-b", "gen=a", "-c", "gen=b"]
    for verb in (compared, ["report", "last"]):
        for kind in ("html", "pdf", "xlsx"):
            file = root / f"{verb[0]}.{kind}"
            wall, cpu, memory = measured([*FLEETMARK, *verb, f"--{kind}", str(file), "--results", str(root)])
            size = file.stat().st_size / 1e6
            print(
                f"{verb[0]} --{kind}: {wall:.1f} s ({cpu:.1f} s of CPU), {size:.1f} MB, peak {memory:.0f} MB",
                flush=True,
            )
        page(root / f"{verb[0]}.html")


def page(file: Path) -> None:
    """Opens the page in Chromium: until the load event, until it answers, and how long the first sort takes."""
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        chromium = None
    if chromium is None:
        print("no Chromium, or no Playwright: the page was not opened")
        return
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        opened = browser.new_page(viewport={"width": 1280, "height": 800})
        before = time.perf_counter()
        opened.goto(file.as_uri(), timeout=PAGE_LIMIT_MS)
        opened.evaluate("() => new Promise(done => requestAnimationFrame(() => setTimeout(done)))")
        usable = time.perf_counter() - before
        loaded = opened.evaluate("() => performance.getEntriesByType('navigation')[0].loadEventEnd") / 1000
        ms = opened.evaluate(SORT)
        rows = opened.evaluate("() => document.querySelectorAll('tr').length")
        browser.close()
    sort = "no table to sort" if ms is None else f"first sort of its longest table {ms / 1000:.2f} s"
    print(
        f"{file.name} in Chromium: load event {loaded:.2f} s, answers {usable:.2f} s, {sort}, {rows:,} rows", flush=True
    )


# Milliseconds from the press of a head of the longest table that sorts to the next frame; null where none sorts.
SORT = """() => new Promise(done => {
  const heads = [...document.querySelectorAll('table.sortable th button')];
  if (!heads.length) return done(null);
  const rows = h => h.closest('table').rows.length;
  const head = heads.reduce((a, b) => rows(b) > rows(a) ? b : a);
  const before = performance.now();
  head.click();
  requestAnimationFrame(() => setTimeout(() => done(performance.now() - before)));
})"""


def main() -> None:
    sizes = [int(a) for a in sys.argv[1:]]
    hosts, metrics, repeats = sizes or (1000, 300, 5)
    compile_modules()
    with tempfile.TemporaryDirectory() as folder:
        campaign(Path(folder), hosts, metrics, repeats)
        print(f"{hosts} hosts x {metrics} metrics x {repeats} repeats", flush=True)
        forms(Path(folder))
    if sizes:
        return
    with tempfile.TemporaryDirectory() as folder:
        campaign(Path(folder), 10_000, 200, 1)
        file = Path(folder) / "summary.xlsx"
        for raw in ([], ["--raw"]):
            command = ["report", "last", "--xlsx", str(file), *raw, "--results", folder]
            wall, cpu, memory = measured([*FLEETMARK, *command])
            called, size = " ".join(["report --xlsx", *raw]), file.stat().st_size / 1e6
            print(
                f"10000 hosts x 200 metrics, {called}: {wall:.1f} s ({cpu:.1f} s of CPU), peak {memory:.0f} MB, {size:.1f} MB",
                flush=True,
            )
        print(
            f"SuperBench, result summary of 10000 nodes without raw values (2026-11-22): {SUPERBENCH[0]:.0f} s, {SUPERBENCH[1]:.0f} MB"
        )


if __name__ == "__main__":
    main()
