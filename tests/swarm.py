"""Simulate very many hosts in one process, with a replacement for SSH that reaches them.

``python -m tests.swarm serve SOCKET [--absent N --cut N --dead N --seconds S ...]`` simulates hosts of any name.
``python -m tests.swarm run SOCKET WORD...`` is ``fleetmark WORD...`` with SSH replaced by that socket.

The agent's protocol is real: the controller's program collects facts of this machine, jobs are stored, and followers
get events, parts of files and ends. The hosts, the duration of commands, delays, lost links and dying hosts are
simulated.
"""

from __future__ import annotations

import argparse
import asyncio
import base64
import bisect
import contextlib
import json
import random
import resource
import select
import socket
import struct
import sys
import time
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fleetmark.hosts.inventory import Host
from fleetmark.hosts.reach import CHUNK, Channel, LinkLost, Reach, ReachError

_FRAME = struct.Struct(">cI")  # type (accepted, refused, output, errors, exit status) and number of bytes that follow
# Seconds at the quantiles AT, measured over SSH to real hosts with 2% packet loss: benchmarks/links, 2026-11-23.
AT = (0.0, 0.1, 0.25, 0.5, 0.75, 0.9, 0.99, 1.0)
_CONNECT_S = (0.255, 0.588, 0.681, 0.766, 0.837, 0.936, 1.065, 1.065)
_MESSAGE_S = (0.0001, 0.0001, 0.0001, 0.0001, 0.0003, 0.0022, 0.2075, 0.4147)  # round trip
_FACTS = """\
import json, pathlib, sys, tempfile
with tempfile.TemporaryDirectory() as folder:
    for name, text in json.load(sys.stdin).items():
        pathlib.Path(folder, name).write_text(text)
    sys.path.insert(0, folder)
    import facts
    facts.main()
"""


@dataclass(kw_only=True)
class Agent:
    """One host. ``fate``: well, absent (never answers), cut (loses its link once) or dead (stops answering)."""

    name: str
    fate: str
    job: dict[str, Any] | None = None
    current: str | None = None
    results: dict[str, dict[str, bytes]] = field(default_factory=dict)  # step to its result files
    changed: asyncio.Event = field(default_factory=asyncio.Event)
    runner: asyncio.Task[None] | None = None

    @property
    def is_gone(self) -> bool:
        return self.fate == "absent" or (self.fate == "dead" and len(self.results) > 0)

    def tell(self) -> None:
        self.changed.set()
        self.changed = asyncio.Event()


class Swarm:
    """All agents behind one socket."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.options, self.agents, self.facts = options, dict[str, Agent](), dict[str, Any]()
        self.random = random.Random(options.seed)
        fates = ["absent"] * options.absent + ["cut"] * options.cut + ["dead"] * options.dead
        self.fates = {f"n{number:04d}": fate for number, fate in enumerate(fates)}
        self.asking = asyncio.Lock()
        self.began = time.time()

    def now(self) -> float:
        """Return the time of the simulated clock, in seconds since the epoch."""
        return self.began + (time.time() - self.began) * float(self.options.speed)

    async def trouble(self) -> None:
        """Each simulated hour, cut the links of some agents, switch others off, and switch on those that were off."""
        while True:
            await asyncio.sleep(3600 / self.options.speed)
            for agent in self.agents.values():
                if agent.fate in ("absent", "dead"):
                    agent.fate = "well"
            struck = self.random.sample(sorted(self.agents), min(len(self.agents), self.options.hourly))
            for number, name in enumerate(struck):
                self.agents[name].fate = "dead" if number % 10 == 0 else "cut"

    def drawn(self, seconds: Sequence[float]) -> float:
        """Return a random time from a measured distribution."""
        share = self.random.random()
        n = bisect.bisect_right(AT, share) - 1
        within = (share - AT[n]) / (AT[n + 1] - AT[n])
        return float(self.options.pace * (seconds[n] + (seconds[n + 1] - seconds[n]) * within))

    async def serve(self) -> None:
        hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
        server = await asyncio.start_unix_server(self.connected, self.options.socket, limit=64 << 20, backlog=4096)
        trouble = asyncio.create_task(self.trouble()) if self.options.hourly else None
        async with server:
            await server.serve_forever()
        del trouble

    async def connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError, ValueError):
            hello = json.loads(await reader.readline())
            agent = self.agents.setdefault(
                hello["host"], Agent(name=hello["host"], fate=self.fates.get(hello["host"], "well"))
            )
            await asyncio.sleep(self.drawn(_CONNECT_S))
            if agent.is_gone:
                await asyncio.sleep(self.options.absent_s)
                self.send(writer, b"u", b"did not answer")
            else:
                self.send(writer, b"a", b"")
                await self.answer(agent, hello["argv"], reader, writer)
            await writer.drain()
        writer.close()

    async def answer(
        self, agent: Agent, argv: Sequence[str], reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        if argv[0] == "sh":
            await self.session(agent, reader, writer)
        elif argv[-2].endswith("/follow.py"):
            await self.follow(agent, reader, writer)
        else:
            await self.say_start(agent, json.loads(await reader.read())["job"], writer)
            self.send(writer, b"x", b"0")

    async def session(self, agent: Agent, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Send facts, then receive a job and serve its follower, as agent/session.py does."""
        _, program, options = [await _document(reader) for _ in range(3)]
        facts = await self.facts_of(program, options.decode())
        await asyncio.sleep(self.drawn(_MESSAGE_S))
        self.send(writer, b"o", b"FLEETMARK" + facts + b"\n")
        _, job = [await _document(reader) for _ in range(2)]
        await self.say_start(agent, json.loads(job), writer)
        await self.follow(agent, reader, writer)

    async def say_start(self, agent: Agent, job: dict[str, Any], writer: asyncio.StreamWriter) -> None:
        await asyncio.sleep(self.drawn(_MESSAGE_S))
        self.send(writer, b"o", b"FLEETMARK" + json.dumps(self.start(agent, job)).encode() + b"\n")

    async def facts_of(self, program: bytes, options: str) -> bytes:
        async with self.asking:
            if not self.facts:
                pipe = asyncio.subprocess.PIPE
                words = [sys.executable, "-c", _FACTS, options]
                process = await asyncio.create_subprocess_exec(*words, stdin=pipe, stdout=pipe)
                self.facts = json.loads((await process.communicate(program))[0])
        return json.dumps({**self.facts, "time": time.time()}).encode()

    def start(self, agent: Agent, job: dict[str, Any]) -> dict[str, Any]:
        folder = job["folder"]
        if agent.runner and not agent.runner.done():
            is_resumed = agent.job is not None and agent.job["folder"] == folder
            return {"state": "running" if is_resumed else "busy", "dir": folder}
        if agent.job is None or agent.job["folder"] != folder:
            agent.results.clear()
        agent.job = job
        if all(step["id"] in agent.results for step in job["steps"]):
            return {"state": "finished", "dir": folder}
        agent.runner = asyncio.create_task(self.work(agent, job["steps"]))
        return {"state": "started", "dir": folder}

    async def work(self, agent: Agent, steps: Sequence[dict[str, Any]]) -> None:
        """Simulate the runner: each step takes some time and leaves files. It works without a controller."""
        for step in steps:
            if step["id"] not in agent.results:
                while step is steps[-1] and self.options.hold and self.options.hold.exists():
                    await asyncio.sleep(0.05)
                agent.current = step["id"]
                agent.tell()
                began = self.now()
                await asyncio.sleep(self.options.seconds * self.random.uniform(0.8, 1.6) / self.options.speed)
                agent.results[step["id"]] = _files(began, self.now())
        agent.current = None
        agent.tell()

    async def follow(self, agent: Agent, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        have = set(json.loads(await reader.readline())["steps"])
        orders = asyncio.create_task(reader.readline())
        begun, over = None, False
        while not orders.done():
            changed, running = agent.changed, agent.runner is not None and not agent.runner.done()
            for step in sorted(agent.results.keys() - have):
                await asyncio.sleep(self.drawn(_MESSAGE_S))
                if agent.is_gone or (agent.fate == "cut" and have):
                    if agent.fate == "cut":
                        agent.fate = "well"
                    else:
                        await asyncio.sleep(self.options.silent_s)
                    orders.cancel()
                    return  # in the middle, so that the other side sees a lost link but no end of the process
                self.say_end(writer, step, agent.results[step])
                have.add(step)
            if agent.current and agent.current != begun:
                begun = agent.current
                self.say(writer, {"e": "begin", "step": begun})
            if not running and not over:
                over = True
                self.say(writer, {"e": "finish", "state": "finished"})
                self.say(writer, {"e": "over", "remaining": 0})
            await writer.drain()
            waiting = asyncio.create_task(changed.wait())
            ends = {orders, waiting, *([agent.runner] if running and agent.runner else [])}
            await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
            waiting.cancel()
        line = orders.result()
        if line and json.loads(line).get("order") == "clean":
            self.send(writer, b"x", b"0")

    def say_end(self, writer: asyncio.StreamWriter, step: str, files: dict[str, bytes]) -> None:
        for name, data in files.items():
            packed = base64.b64encode(zlib.compress(data)).decode()
            self.say(writer, {"e": "part", "step": step, "name": name, "data": packed})
        self.say(writer, {"e": "end", "step": step, "files": {name: len(data) for name, data in files.items()}})

    def say(self, writer: asyncio.StreamWriter, event: dict[str, Any]) -> None:
        self.send(writer, b"o", json.dumps(event).encode() + b"\n")

    def send(self, writer: asyncio.StreamWriter, kind: bytes, data: bytes) -> None:
        writer.write(_FRAME.pack(kind, len(data)) + data)


async def _document(reader: asyncio.StreamReader) -> bytes:
    """Return the next document sent to a session. Raise IncompleteReadError if there is none."""
    return zlib.decompress(await reader.readexactly(int(await reader.readexactly(8))))


def _files(began: float, ended: float) -> dict[str, bytes]:
    """Return the result files of a step, with 30 s of telemetry."""
    columns = ("t", "cpu_busy", "cpu_user", "cpu_system", "cpu_iowait", "cpu_steal", "load1", "running", "temp_c_max")
    samples = {name: [round(n * 1.01, 3) for n in range(30)] for name in columns}
    summary = {name: {"min": 0.0, "mean": 0.1, "max": 0.2} for name in columns[1:]}
    telemetry = {"started": began, "samples": samples, "summary": summary, "foreign_cores": 0.0, "stolen_cores": 0.0}
    result = {"ended": "exit", "rc": 0, "started": began, "wall_s": ended - began, "telemetry": telemetry}
    return {"result.json": json.dumps(result).encode(), "stdout": b"%.2f %.2f\n" % (began % 1e6, 1.0), "stderr": b""}


class SwarmReach(Reach):
    """A reach that connects to an agent through the socket."""

    def __init__(self, host: Host, path: Path) -> None:
        super().__init__(host)
        self._path, self._channels = path, list[SwarmChannel]()

    @property
    def is_root(self) -> bool:
        return True

    def close(self) -> None:
        for channel in self._channels:
            channel.close()
        self._channels.clear()

    def _start(self, argv: Sequence[str]) -> Channel:
        channel = SwarmChannel(self.host.name, self._path, argv)
        self._channels.append(channel)
        return channel


class SwarmChannel(Channel):
    """A process of an agent, with its own connection. A connection that ends without an exit status is a lost link."""

    def __init__(self, host: str, path: Path, argv: Sequence[str]) -> None:
        super().__init__(host)
        self._buffer, self._rc = bytearray(), None
        self._socket = socket.socket(socket.AF_UNIX)
        try:
            self._socket.connect(str(path))
            self._socket.sendall(json.dumps({"host": host, "argv": list(argv)}).encode() + b"\n")
            kind = self._socket.recv(_FRAME.size)[:1]
        except OSError as error:
            raise ReachError(f"{host}: {error.strerror}") from None
        if kind != b"a":
            self._socket.close()
            raise ReachError(f"{host}: port 22 did not answer within 10 s")
        self._poll = select.poll()
        self._poll.register(self._socket, select.POLLIN)

    def write(self, data: bytes, timeout: float | None = None) -> None:
        try:
            self._socket.sendall(data)
        except OSError:
            raise LinkLost(f"{self.host}: the connection was lost") from None

    def end_input(self) -> None:
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_WR)

    def wait(self, timeout: float | None = None) -> int:
        if self._rc is None:
            raise LinkLost(f"{self.host}: the connection was lost")
        return self._rc

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)  # wakes the reading thread
        self._socket.close()
        self._ended = True

    def _fill(self, timeout: float | None) -> bool:
        if not self._poll.poll(None if timeout is None else timeout * 1000):
            return False
        try:
            data = self._socket.recv(CHUNK)
        except OSError:
            data = b""
        if not data and self._rc is None:
            raise LinkLost(f"{self.host}: the connection was lost")
        self._buffer += data
        while len(self._buffer) >= _FRAME.size:
            kind, size = _FRAME.unpack_from(self._buffer)
            if len(self._buffer) < _FRAME.size + size:
                break
            body = bytes(self._buffer[_FRAME.size : _FRAME.size + size])
            del self._buffer[: _FRAME.size + size]
            if kind == b"x":
                self._rc, self._ended = int(body), True
            else:
                (self._out if kind == b"o" else self._err).extend(body)
        return True


def inventory(folder: Path, size: int) -> Path:
    """Write an inventory of ``size`` agents."""
    file = folder / "agents.ini"
    file.write_text("[agents]\n" + "".join(f"n{number:04d}\n" for number in range(size)))
    return file


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    verbs = parser.add_subparsers(dest="verb", required=True)
    serve = verbs.add_parser("serve")
    serve.add_argument("socket")
    for fate in ("absent", "cut", "dead", "seed"):
        serve.add_argument(f"--{fate}", type=int, default=0)
    serve.add_argument("--seconds", type=float, default=0.2)
    serve.add_argument("--speed", type=float, default=1.0, help="of the agents' clock")
    serve.add_argument("--hourly", type=int, default=0, help="agents that lose their link in each hour; a tenth dies")
    serve.add_argument("--pace", type=float, default=1.0, help="of the delays that were measured")
    serve.add_argument("--absent-s", type=float, default=0.0, help="until it is known that one does not answer")
    serve.add_argument("--silent-s", type=float, default=0.0, help="until it is known that one has died")
    serve.add_argument("--hold", type=Path, help="a file: while it exists, no agent begins its last command")
    run = verbs.add_parser("run")
    run.add_argument("socket")
    run.add_argument("words", nargs=argparse.REMAINDER)
    options = parser.parse_args()
    if options.verb == "serve":
        asyncio.run(Swarm(options).serve())
        return
    from fleetmark import cli
    from fleetmark.campaign import prepare

    prepare.connect = lambda host, _=None: SwarmReach(host, Path(options.socket))  # type: ignore[attr-defined]
    sys.argv = ["fleetmark", *options.words]
    cli.main()


if __name__ == "__main__":
    main()
