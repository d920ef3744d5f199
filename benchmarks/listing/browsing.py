"""Measure the pages of ``fleetmark serve`` over a large fleet: ``python -m benchmarks.listing.browsing [HOSTS]`` (10000).

The record has one campaign of HOSTS hosts of two generations, METRICS metrics and REPEATS repeats. The server makes the
pages of the newest campaign before anyone asks; that is the first row. Each page is then requested twice by a program,
which waits for it: these seconds are CPU time of this process, which answers the requests. A browser gets an answer
before a slow page is ready; a second server measures the time until then. The result is written to benchmarks/results/browsing.json.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.comparison import record
from benchmarks.measuring import RESULTS, circumstances, separately
from fleetmark.reports.kit.language import Language
from fleetmark.verbs.serve.application import application
from fleetmark.verbs.serve.guard import Guard
from fleetmark.verbs.serve.pages import Pages

METRICS, REPEATS = 20, 3
BASELINE = "baseline=gen%3Da&candidate=gen%3Db"


def requested(pages: Pages, path: str, query: str) -> tuple[float, int]:
    """Return the CPU seconds of a request, and the bytes of its page. Raise SystemExit if it fails."""
    environ = {"REQUEST_METHOD": "GET", "PATH_INFO": path, "QUERY_STRING": query, "HTTP_HOST": "localhost:8300"}
    statuses: list[str] = []
    began = time.process_time()
    answer = application(pages, Guard(None, ("localhost",)))
    body = b"".join(answer(environ, lambda status, headers: statuses.append(status)))
    if statuses != ["200 OK"]:
        raise SystemExit(f"{path}?{query}: {statuses}: {body[:500]!r}")
    return time.process_time() - began, len(body)


def browsed(pages: Pages, path: str, query: str) -> str:
    """Return the time until a browser has an answer in seconds, and whether it is the page."""
    environ = {"REQUEST_METHOD": "GET", "PATH_INFO": path, "QUERY_STRING": query, "HTTP_HOST": "localhost:8300"}
    statuses: list[str] = []
    began = time.perf_counter()
    answer = application(pages, Guard(None, ("localhost",)))
    b"".join(answer(environ | {"HTTP_ACCEPT": "text/html"}, lambda status, headers: statuses.append(status)))
    return f"{time.perf_counter() - began:.2f}" + (", to wait" if statuses == ["202 Accepted"] else "")


def main() -> None:
    hosts = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000
    with tempfile.TemporaryDirectory() as name:
        separately(record, Path(name), hosts, METRICS, REPEATS)
        (campaign,) = (folder.name for folder in Path(name).iterdir())
        pages = Pages(Path(name), Language())
        requests = [("/", ""), ("/hosts", ""), ("/hosts", "q=gen%3Da"), ("/host", "name=h17")]
        requests += [(f"/campaigns/{campaign}", ""), (f"/campaigns/{campaign}/findings", ""), ("/compare", BASELINE)]
        began = time.process_time()
        pages.make_newest()
        rows = [["rendered when the server starts", f"{time.process_time() - began:.2f}", "", "", ""]]
        by_browser = Pages(Path(name), Language())
        by_browser.make_newest()
        for path, query in requests:
            (first, size), (again, _) = (requested(pages, path, query) for _ in range(2))
            shown = path.replace(campaign, "ID") + (f"?{query}" if query else "")
            answer = browsed(by_browser, path, query)
            rows.append([shown, f"{first:.2f}", f"{again:.2f}", answer, f"{size / 1000:.0f}"])
            print(rows[-1], flush=True)
        by_browser.close()
    document = {
        "section": "What Fleetmark costs",
        "title": "Browsing the record",
        "description": f"Pages of `fleetmark serve` over {hosts:,} hosts, {METRICS} metrics and {REPEATS} repeats.",
        "command": f"python -m benchmarks.listing.browsing {hosts}",
        **circumstances(),
        "load": f"{os.getloadavg()[0]:.0f}",
        "columns": [
            "page",
            "CPU of the first load, s",
            "CPU of the next load, s",
            "first response in a browser, s",
            "kB",
        ],
        "rows": rows,
    }
    (RESULTS / "browsing.json").write_text(json.dumps(document, indent=1) + "\n")


if __name__ == "__main__":
    main()
