"""Measure the time and peak memory of ``fleetmark compare`` over a large record, and of reading the same file once.

``python -m benchmarks.comparison [HOSTS] [METRICS] [REPEATS] [MISSING]`` (10000 200 5 0) creates the record in a
temporary folder. MISSING is the percentage of missing figures, at random.

``python -m benchmarks.comparison scale [MILLIONS ...]`` (1 10 100) compares, diagnoses and reports a campaign with that
many values, each in a separate command. It has ten thousand hosts (a thousand for one million values) and five repeats.
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.measuring import FLEETMARK, compile_modules, measured, separately
from fleetmark import __version__
from fleetmark.base import schema

CLASSES, UNITS, SCALES = ("cpu-int", "mem-bw", "disk-iops", "net"), ("1", "B/s", "1/s", "B/s"), (1.0, 1e9, 1e4, 1e8)
BLOCK = 500  # number of hosts written at once
READ = "import sys, pyarrow.parquet as pq; pq.read_table(sys.argv[1], columns=['host', 'workload', 'case', 'metric', 'value'])"


def record(root: Path, hosts: int, metrics: int, repeats: int, missing: float = 0.0) -> Path:
    """Create a campaign of two generations under ``root``, with some figures missing; return its measurements file."""
    folder = root / "20260101T000000-large"
    folder.mkdir()
    names = [f"h{n}" for n in range(hosts)]
    listed = [{"name": n, "generation": "ab"[i % 2], "labels": {"gen": "ab"[i % 2]}} for i, n in enumerate(names)]
    campaign = {
        "schema": 1,
        "created": "2026-01-01T00:00:00Z",
        "suite": "large",
        "seed": 1,
        "command": ["fleetmark", "run"],
    }
    campaign |= {"versions": {"fleetmark": __version__}, "workloads": [f"w{n}" for n in range(-(-metrics // 20))]}
    (folder / "campaign.json").write_text(json.dumps({**campaign, "hosts": listed}))
    rng = np.random.default_rng(1)
    columns = schema.arrow()
    path = folder / "measurements.parquet"
    rows = metrics * repeats
    metric, repeat = np.arange(rows) // repeats, np.arange(rows) % repeats
    of_host = {
        "workload": [f"w{m // 20}" for m in metric],
        "case": [f"case-{m % 20 // 5}" for m in metric],
        "metric": [f"m{m % 5}" for m in metric],
        "class": [CLASSES[m // 20 % 4] for m in metric],
        "kind": ["capacity"] * len(metric),
        "unit": [UNITS[m // 20 % 4] for m in metric],
        "repeat": repeat,
    }
    fixed = {**schema.DEFAULTS, "campaign": folder.name, "better": "higher", "headline": True, "status": "passed"}
    fixed |= {"time": "2026-01-01T00:00:00Z", "tool_version": "1", "raw": "raw/x"}
    fixed = {k: v for k, v in fixed.items() if k not in of_host}
    with pq.ParquetWriter(path, columns, compression="zstd") as out:
        for first in range(0, hosts, BLOCK):
            block = range(first, min(first + BLOCK, hosts))
            many = len(block) * rows
            speed = np.repeat([1.5 if i % 2 else 1.0 for i in block], rows)
            host_effect = np.repeat(rng.normal(0, 0.02, len(block)), rows)
            values = {k: np.tile(v, len(block)) for k, v in of_host.items()}
            values |= {k: pa.repeat(v, many) for k, v in fixed.items()}
            values["host"] = np.repeat([names[i] for i in block], rows)
            level = np.tile((1.0 + metric) * [SCALES[m // 20 % 4] for m in metric], len(block))
            values["value"] = np.exp(host_effect + rng.normal(0, 0.01, many)) * level * speed
            table = pa.table({k: values[k] for k in columns.names}, schema=columns)
            if missing:
                table = table.filter(pa.array(np.repeat(rng.random(len(block) * metrics) >= missing, repeats)))
            out.write_table(table)
    return path


def scale(millions: int) -> None:
    """Measure the costs of ``compare``, ``diagnose`` and ``report`` for a campaign with that many values."""
    hosts = 10_000 if millions >= 10 else 1000
    with tempfile.TemporaryDirectory() as folder:
        path = separately(record, Path(folder), hosts, millions * 1_000_000 // hosts // 5, 5)
        print(f"{millions} million values on {hosts} hosts: {path.stat().st_size / 1e6:.0f} MB of Parquet", flush=True)
        compare = ["compare", "-b", "gen=a", "-c", "gen=b", "--format", "csv"]
        for verb in (compare, ["diagnose", "last", "--format", "json"], ["report", "last"]):
            wall, cpu, memory = measured([*FLEETMARK, *verb, "--results", folder], (0, 1))
            print(f"fleetmark {verb[0]}: {wall:.1f} s ({cpu:.1f} s of CPU), {memory:.0f} MB", flush=True)


def main() -> None:
    if sys.argv[1:2] == ["scale"]:
        compile_modules()
        for millions in [int(a) for a in sys.argv[2:]] or [1, 10, 100]:
            scale(millions)
        return
    sizes = [int(a) for a in sys.argv[1:]]
    hosts, metrics, repeats, missing = [*(sizes or (10_000, 200, 5)), 0][:4]
    compile_modules()
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        path = separately(record, root, hosts, metrics, repeats, missing / 100)
        print(
            f"{hosts} hosts x {metrics} metrics x {repeats} repeats, {missing}% missing: {path.stat().st_size / 1e6:.0f} MB of Parquet"
        )
        compare = [*FLEETMARK, "compare", "-b", "gen=a", "-c", "gen=b", "--format", "csv", "--results", folder]
        wall, cpu, memory = measured(compare)
        print(f"fleetmark compare: {wall:.1f} s ({cpu:.1f} s of CPU), {memory:.0f} MB")
        wall, cpu, memory = measured([sys.executable, "-c", READ, str(path)])
        print(f"reading five columns with pyarrow: {wall:.1f} s ({cpu:.1f} s of CPU), {memory:.0f} MB")


if __name__ == "__main__":
    main()
