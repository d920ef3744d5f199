"""Find how many LLM streams the client can hold in one process before it adds 5 ms to their times.

``python -m benchmarks.streams [--first] [--rate R] [STREAMS ...]``: streams of R (50) tokens/s. A server in a process of its own writes each piece with the
time at which it was due and the time of its writing. What lies between is the server's lateness; what the client stamps
later than the writing is the client's, with its waits for a processor. Both share the machine with whatever else runs;
``--first`` gives both real-time priority (root only), so that neighbours on the same kernel take nothing from them.
"""

from __future__ import annotations

import argparse
import heapq
import importlib
import multiprocessing
import os
import re
import selectors
import socket
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

PLAYBOOKS = Path(__file__).parents[1] / "playbooks"
SECONDS = 6.0
_TEXT = re.compile(rb'"text": "([0-9.]+) ([0-9.]+)"')


def serve(listening: socket.socket, streams: int, rate: float) -> None:
    """Write ``rate`` chunks/s to each of ``streams`` connections, each at its own phase, until all are closed."""
    peers = []
    for _ in range(streams):
        peer = listening.accept()[0]
        peer.recv(65536)
        peer.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n")
        peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        peers.append(peer)
    begin = time.perf_counter() + 0.1
    due = [(begin + n / streams / rate, n) for n in range(streams)]
    end = begin + SECONDS
    while due:
        due_s, n = heapq.heappop(due)
        now = time.perf_counter()
        if due_s > now:
            time.sleep(due_s - now)
        piece = b'data: {"id": "x", "choices": [{"index": 0, "text": "%.6f %.6f", "finish_reason": null}]}\n\n'
        try:
            peers[n].sendall(piece % (due_s, time.perf_counter()))
        except OSError:
            continue
        if due_s + 1 / rate < end:
            heapq.heappush(due, (due_s + 1 / rate, n))
        else:
            peers[n].close()


@dataclass(frozen=True, slots=True)
class Held:
    """Lateness of pieces, s, sorted: of the server's writing, and of the client's stamp after it; s of the client a piece."""

    server: list[float]
    client: list[float]
    cpu: float
    waited: float  # for a processor


def waited() -> float:
    """Return the seconds in which this process was ready to run and another one ran."""
    return int(Path("/proc/self/schedstat").read_text().split()[1]) / 1e9


def hold(streams: int, rate: float) -> Held:
    """Both sides' lateness with so many streams of ``rate`` chunks/s."""
    expected = int(rate * SECONDS)  # of a stream; the client ends one that sends many times more
    sys.path.insert(0, str(PLAYBOOKS / "roles" / "llm_serve" / "files"))
    stream: Any = importlib.import_module("stream")
    answers: Any = importlib.import_module("answers")
    server: list[float] = []
    client: list[float] = []

    class Timed(answers.Answer):  # type: ignore[misc]
        __slots__ = ()

        def event(self, text: bytes, now: float) -> None:
            super().event(text, now)
            match = _TEXT.search(text)
            if match:
                due, written = map(float, match.groups())
                server.append(written - due)
                client.append(now - written)

    with socket.create_server(("127.0.0.1", 0), backlog=4096) as listening:
        process = multiprocessing.get_context("fork").Process(
            target=serve, args=(listening, streams, rate), daemon=True
        )
        process.start()
        endpoint = stream.Endpoint(f"http://127.0.0.1:{listening.getsockname()[1]}")
        endpoint.resolve()
        engine = stream.Engine(endpoint, 30.0)
        for _ in range(streams):
            engine.send(Timed(endpoint.request("POST", "/completions", b"{}"), expected))
        began, queued, ended = time.process_time(), waited(), 0
        while ended < streams:
            for answer in engine.turn(stream.clock() + 0.25):
                ended += 1
                if len(answer.stamps) < 0.9 * expected:
                    raise SystemExit(f"a stream ended after {len(answer.stamps)} of {expected} pieces: {answer.detail}")
        spent, queued = time.process_time() - began, waited() - queued
        process.join(10)
    pieces = max(1, len(client))
    return Held(sorted(server), sorted(client), spent / pieces, queued / pieces)


def main(counts: Sequence[int], rate: float) -> None:
    print(
        "streams  chunks/s  server late p50, p99  client after it p50, p99  client's CPU, wait for one, a piece   load"
    )
    for streams in counts:
        held = hold(streams, rate)
        server, client = (
            "".join(f"{1e3 * late[int(share * (len(late) - 1))]:8.2f}" for share in (0.5, 0.99)) + " ms"
            for late in (held.server, held.client)
        )
        each = f"{1e6 * held.cpu:16.1f} {1e6 * held.waited:12.1f} us"
        pieces = len(held.client) / SECONDS
        print(f"{streams:7} {pieces:9.0f}   {server}      {client}   {each}   {os.getloadavg()[0]:10.1f}", flush=True)


if __name__ == "__main__":
    assert selectors.DefaultSelector is not selectors.SelectSelector, "poll or epoll is needed"
    parser = argparse.ArgumentParser()
    parser.add_argument("--first", action="store_true")
    parser.add_argument("--rate", type=float, default=50.0)
    parser.add_argument("streams", type=int, nargs="*", default=[50, 200, 400, 800])
    chosen = parser.parse_args()
    if chosen.first:
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
    main(chosen.streams, chosen.rate)
