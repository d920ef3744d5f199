"""Compare the TTFT and ITL that the LLM client measures with known delays, at 1 and 32 concurrent requests.

``python -m benchmarks.delays [--first] [SECONDS]``: the tests' server, in a process of its own, has a delay for the first
token of each request and one for those after it, and logs when it wrote each. What the client says is held against the
delays that were asked of the server (its own lateness is in that) and against its log (the client's error alone), in
closed loops and in open ones. ``--first`` gives both real-time priority (root only), so that neighbours on the same
kernel take nothing from them.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.llm.running import FILES, Served, server

FIRST, GAP, TOKENS = 0.1, 0.02, 32  # s, s, tokens of an answer: 0.72 to 0.73 s in all
WARMUP = 1.0  # s
LIMIT = 0.002  # s
LOADS = (
    ("closed", 1.0),
    ("closed", 32.0),
    ("open", 1.0),
    ("open", 32.0),
)  # requests at once; in an open loop on average


@dataclass(slots=True)
class Errors:
    """Seconds by which the client's figures differ: from the delays asked of the server, and from what its log says."""

    requested: list[float] = field(default_factory=list)
    log: list[float] = field(default_factory=list)

    def add(self, seen: float, requested: float, logged: float) -> None:
        self.requested.append(abs(seen - requested))
        self.log.append(abs(seen - logged))


def errors(running: Served, answers: Sequence[Any]) -> tuple[Errors, Errors]:
    """Return the errors of TTFT, one per request, and of ITL, one per gap."""
    log = {request["id"]: request for request in running.requests()}
    ttft, itl = Errors(), Errors()
    for answer in answers:
        wrote = log[f"fleetmark-{answer.mark}"]
        stamps = wrote["stamps"]
        if answer.problem or len(answer.stamps) != len(stamps):
            raise SystemExit(f"a request failed: {answer.problem or 'cut'} {answer.detail}")
        ttft.add(answer.stamps[0] - answer.due, wrote["delay"], stamps[0] - wrote["came"])
        for n in range(1, len(stamps)):
            itl.add(answer.stamps[n] - answer.stamps[n - 1], GAP, stamps[n] - stamps[n - 1])
    return ttft, itl


def load(running: Served, kind: str, streams: float, seconds: float) -> Sequence[Any]:
    """Return the answers within a run's measured time. In an open loop, requests arrive so that ``streams`` are in
    flight.
    """
    if str(FILES) not in sys.path:
        sys.path.insert(0, str(FILES))
    stream, answers, loads = (importlib.import_module(name) for name in ("stream", "answers", "loads"))
    endpoint = stream.Endpoint(running.url)
    endpoint.resolve()
    engine = stream.Engine(endpoint, 30.0)
    numbers = iter(range(1 << 30))
    body = json.dumps({"model": "tiny", "prompt": "a b c", "max_tokens": TOKENS, "stream": True,
                       "stream_options": {"include_usage": True}}).encode()  # fmt: skip

    def make(due: float | None) -> Any:
        mark = f"{kind}-{streams:g}-{next(numbers)}"
        head, _, rest = endpoint.request("POST", "/completions", body, 0).partition(b"fleetmark-0")
        return answers.Answer(head + f"fleetmark-{mark}".encode() + rest, TOKENS, due, mark)

    if kind == "closed":
        run = loads.closed(engine, make, True, int(streams), WARMUP, seconds)
    else:
        rate = streams / (FIRST + GAP * (TOKENS - 1))
        run = loads.poisson(engine, make, True, rate, WARMUP, seconds, "1")
    return list(run["answers"])


def quantile(values: list[float], share: float) -> float:
    """Return the value that ``share`` of all stay below."""
    return sorted(values)[int(share * (len(values) - 1))]


def main(seconds: float) -> None:
    print("error in ms, p50 and p99:  against the delays asked of the server   against the server's log")
    print(
        "load      requests        TTFT               ITL             TTFT               ITL         within 2 ms   load"
    )
    for kind, streams in LOADS:
        with (
            tempfile.TemporaryDirectory() as folder,
            server(Path(folder), f"--first={FIRST}", f"--gap={GAP}") as running,
        ):
            ttft, itl = errors(running, load(running, kind, streams, seconds))
        cells = [
            f"{1e3 * quantile(values, 0.5):8.3f} {1e3 * quantile(values, 0.99):8.3f}"
            for values in (ttft.requested, itl.requested, ttft.log, itl.log)
        ]
        kept = [
            name
            for name, q in (("p50", 0.5), ("p99", 0.99))
            if max(quantile(ttft.requested, q), quantile(itl.requested, q)) <= LIMIT
        ]
        words, now = ", ".join(kept) or "no", os.getloadavg()[0]
        print(f"{kind:6} {streams:3g} {len(ttft.log):8}  {'  '.join(cells)}  {words:>11} {now:6.1f}", flush=True)


if __name__ == "__main__":
    words = sys.argv[1:]
    if "--first" in words:
        words.remove("--first")
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
    main(float(words[0]) if words else 20.0)
