"""Run the whole LLM client in several processes with thousands of streams, and show how late the client itself was.

``python -m benchmarks.clients.crowd [--first] [--record] STREAMS:PROCESSES:GAP ...``: the test server and the client, each by its
command line, in a closed loop of STREAMS requests. A piece of an answer comes every GAP seconds. The parser decides
whether the run counts: it is invalid if the client's lateness exceeds 10 ms, the default of ``llm_serve.late``.
``--first`` gives both real-time priority (root only), so that other programs of this machine take nothing from them.
``--record`` writes benchmarks/results/crowd.json.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks.clients.__main__ import SERVER
from fleetmark.parsers import parse

HOUSE = Path(__file__).parents[2]
CLIENT = HOUSE / "playbooks" / "roles" / "llm_serve" / "files" / "client.py"
RESULT = HOUSE / "benchmarks" / "results" / "crowd.json"
FIRST = 3.0  # s to the first piece, and up to 9% more by the server, so that streams do not go in step
ANSWER = "8-24"  # pieces of an answer
ROUND = FIRST + 8  # s of a usual answer with a gap of 0.5 s
COLUMNS = (
    "streams",
    "processes",
    "chunks/s",
    "requests",
    "TTFT, p50",
    "TPOT, p50",
    "client delay, p99",
    "the run",
)


def run(streams: int, processes: int, gap: float) -> list[str]:
    """Return the row of one run."""
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "server.jsonl"
        words = [sys.executable, str(SERVER), f"--log={log}", f"--first={FIRST}", f"--gap={gap}"]
        with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as server:
            try:
                assert server.stdout
                url = f"http://127.0.0.1:{server.stdout.readline().strip()}"
                ran = subprocess.run(
                    [
                        *(sys.executable, str(CLIENT), f"--url={url}", "--model=tiny", f"--concurrency={streams}"),
                        *(f"--processes={processes}", "--prompt=16", f"--answer={ANSWER}", "--late=0.01"),
                        *(f"--warmup={2 * ROUND}", "--seconds=20", "--patience=60"),
                    ],
                    capture_output=True,
                    text=True,
                    check=False,
                    timeout=300,
                )
            finally:
                server.kill()
    if ran.returncode:
        raise SystemExit(ran.stderr.strip())
    parsed = parse("llm_serve", ran.stdout.encode())
    value = {m.metric: m.value for m in parsed.measurements}
    return [
        *(f"{streams:,}", str(processes), f"{value['output_tokens_per_second']:,.0f}", f"{value['requests']:,.0f}"),
        *(f"{1e3 * value[metric]:.1f} ms" for metric in ("ttft_p50", "tpot_p50", "client_lateness")),
        "invalid: the client was late" if "late" in (parsed.invalid or "") else parsed.invalid or "valid",
    ]


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--first", action="store_true")
    parser.add_argument("--record", action="store_true")
    parser.add_argument("runs", nargs="*", default=["1000:1:0.5", "5000:1:0.5", "5000:2:0.5", "5000:2:0.1"])
    chosen = parser.parse_args()
    if chosen.first:
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
    load, rows = os.getloadavg()[0], []
    print("  ".join(COLUMNS), flush=True)
    for words in chosen.runs:
        streams, processes, gap = words.split(":")
        rows.append(run(int(streams), int(processes), float(gap)))
        print("  ".join(rows[-1]), flush=True)
    if chosen.record:
        old = json.loads(RESULT.read_text("utf-8")) if RESULT.exists() else {}
        new = {**old, "load": f"{load:.0f}", "columns": COLUMNS, "rows": rows}
        RESULT.write_text(json.dumps(new, indent=1, ensure_ascii=False) + "\n", "utf-8")


if __name__ == "__main__":
    main()
