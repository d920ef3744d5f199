"""How many streams of an LLM server the client holds at 50 tokens/s each before it adds 5 ms to their times.

``python -m benchmarks.streams [STREAMS ...]``: a server in a process of its own writes each piece with the time of its
writing in it; what the client stamps later than that is its own. Both share the machine.
"""

from __future__ import annotations

import heapq
import importlib
import multiprocessing
import re
import selectors
import socket
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

PLAYBOOKS = Path(__file__).parents[1] / "playbooks"
RATE = 50.0  # tokens a second of each stream
SECONDS = 6.0
_TEXT = re.compile(rb'"text": "([0-9.]+)"')


def serve(listening: socket.socket, streams: int) -> None:
    """Write to ``streams`` connections, each at its own phase, until all are closed."""
    peers = []
    for _ in range(streams):
        peer = listening.accept()[0]
        peer.recv(65536)
        peer.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n")
        peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        peers.append(peer)
    begin = time.perf_counter() + 0.1
    due = [(begin + n / streams / RATE, n) for n in range(streams)]
    end = begin + SECONDS
    while due:
        at, n = heapq.heappop(due)
        now = time.perf_counter()
        if at > now:
            time.sleep(at - now)
        piece = b'data: {"id": "x", "choices": [{"index": 0, "text": "%.6f", "finish_reason": null}]}\n\n'
        try:
            peers[n].sendall(piece % time.perf_counter())
        except OSError:
            continue
        if at + 1 / RATE < end:
            heapq.heappush(due, (at + 1 / RATE, n))
        else:
            peers[n].close()


def hold(streams: int) -> tuple[list[float], float]:
    """How late each piece was stamped (s, sorted), and the client's CPU time a piece (s)."""
    sys.path.insert(0, str(PLAYBOOKS / "roles" / "llm_serve" / "files"))
    stream: Any = importlib.import_module("stream")
    late: list[float] = []

    class Timed(stream.Answer):  # type: ignore[misc]
        __slots__ = ()

        def event(self, text: bytes, now: float) -> None:
            super().event(text, now)
            match = _TEXT.search(text)
            if match:
                late.append(now - float(match[1]))

    with socket.create_server(("127.0.0.1", 0), backlog=4096) as listening:
        process = multiprocessing.get_context("fork").Process(target=serve, args=(listening, streams), daemon=True)
        process.start()
        endpoint = stream.Endpoint(f"http://127.0.0.1:{listening.getsockname()[1]}")
        endpoint.resolve()
        engine = stream.Engine(endpoint, 30.0)
        for _ in range(streams):
            engine.send(Timed(endpoint.request("POST", "/completions", b"{}"), 1))
        began, ended = time.process_time(), 0
        while ended < streams:
            ended += len(engine.turn(stream.clock() + 0.25))
        spent = time.process_time() - began
        process.join(10)
    return sorted(late), spent / max(1, len(late))


def main(counts: Sequence[int]) -> None:
    print("streams  pieces/s  p50 late  p99 late  client's CPU a piece")
    for streams in counts:
        late, each = hold(streams)
        middle, most = (1e3 * late[int(share * (len(late) - 1))] for share in (0.5, 0.99))
        rate = len(late) / SECONDS
        print(f"{streams:7} {rate:9.0f} {middle:6.2f} ms {most:6.2f} ms {1e6 * each:8.1f} us")


if __name__ == "__main__":
    assert selectors.DefaultSelector is not selectors.SelectSelector, "poll or epoll is needed"
    main([int(word) for word in sys.argv[1:]] or [50, 200, 400, 800])
