"""Run the benchmark of the watch, and store its results in ``results/watch.json``."""

from __future__ import annotations

import argparse
import json
import shutil
import sys

from benchmarks import watch
from benchmarks.measuring import RESULTS, circumstances
from benchmarks.watch import hour


def main() -> None:
    parser = argparse.ArgumentParser(description=watch.__doc__)
    parser.add_argument("part", nargs="?", choices=["hour", "collector"], default="hour")
    parser.add_argument("--minutes", type=float, default=60.0)
    options = parser.parse_args()
    if options.part == "collector":
        reading = circumstances() | watch.collector()
        print(json.dumps(reading, indent=1))
        (RESULTS / "collector.json").write_text(json.dumps(reading, indent=1) + "\n")
        sys.exit(0 if reading["kept"] else 1)
    if shutil.which("prometheus") is None:
        sys.exit("prometheus is not installed: apt-get install prometheus")
    result = hour.exhibit(circumstances() | hour.hour(options.minutes))
    print(json.dumps(result, indent=1))
    (RESULTS / "watch.json").write_text(json.dumps(result, indent=1) + "\n")


main()
