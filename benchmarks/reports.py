"""Measure the time, size and peak memory of every report format over a large record, and how soon the page is usable.

``python -m benchmarks.reports [HOSTS] [METRICS] [REPEATS]`` (1000 300 5) also creates workbooks for 10,000 hosts x 200
metrics, without and with all raw values.

Every figure is a headline, and every host has facts and outcomes, as in a real campaign. There are no raw files, so no
telemetry is read. Each format is created by a separate command. The page is opened in headless Chromium if Playwright
and Chromium are installed.

For comparison, SuperBench's ``result summary`` of 10,000 nodes took 24.0 s and 203 MB without raw values, and 51.7 s
and 873 MB for a workbook with all of them. This was measured on the same machine without other load (2026-11-22).
SuperBench is not on PyPI; docs/reference/performance.md has both tools from one session.
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
from benchmarks.measuring import FLEETMARK, compile_modules, measured, separately
from fleetmark.record.archive import Archive
from tests.reports import sample

SUPERBENCH = (24.0, 203.0)  # s, MB
PAGE_LIMIT_MS = 120_000


def campaign(root: Path, hosts: int, metrics: int, repeats: int) -> None:
    """Create the record of ``benchmarks.comparison`` with the facts and the journal of a real run."""
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
                    step = {"host": f"h{number}", "workload": workload, "case": case, "repeat": repeat}
                    out.write(json.dumps(event | step) + "\n")
        out.write(json.dumps({"t": "2026-01-01T01:00:01.000Z", "e": "ended", "owed": 0}) + "\n")


def forms(root: Path) -> None:
    """Measure every format of a comparison and of the campaign's own report."""
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
    """Open the page in Chromium; print the time to the load event, to the first response, and of the first sort."""
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


# Milliseconds from a click on the head of the longest sortable table to the next frame; null if there is none.
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
        separately(campaign, Path(folder), hosts, metrics, repeats)
        print(f"{hosts} hosts x {metrics} metrics x {repeats} repeats", flush=True)
        forms(Path(folder))
    if sizes:
        return
    with tempfile.TemporaryDirectory() as folder:
        separately(campaign, Path(folder), 10_000, 200, 1)
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
