"""A host's session: one process there that tells facts, and may then start a job and follow it (agent/session.py).

So a host costs one start of a Python and one of SSH's sessions. Nothing depends on it: where it was cut off, another
process starts the job or follows it.
"""

from __future__ import annotations

import json
import threading
import time
import zlib
from collections.abc import Callable, Mapping
from functools import cache, wraps
from typing import Any

from fleetmark.hosts.agent import agent_source, answer_in, fact_sources, sources
from fleetmark.hosts.reach import MAX_OUTPUT, Channel, Flood, Ran, Reach, ReachError, Stalled

MARK = b"FLEETMARK"  # begins a line of the agent's; a login script may print lines too
WRITE_S = 30.0  # in which a host reads on; it is sent some 11 KB to tell facts, and 42 KB for a job

# The first suitable Python reads the agent's program from stdin; platform-python is RHEL 8's. An older one does not
# read stdin and ends with 126; then the next is tried. A separate check would start one more Python on every host.
# -I and -S: it needs neither the user's modules nor the site's, which take half of its start.
_FIND_PYTHON = """
run='import os,sys
if sys.version_info < (3, 6): sys.exit(126)
def take(n):
  data = b""
  while len(data) < n:
    more = os.read(0, n - len(data))
    if not more: os._exit(0)
    data += more
  return data
import zlib
exec(compile(zlib.decompress(take(int(take(8)))), "session.py", "exec"))
main(take)'
for p in "$1" python3 /usr/bin/python3 /usr/libexec/platform-python; do
  [ -n "$p" ] && command -v "$p" >/dev/null 2>&1 || continue
  "$p" -I -S -c "$run"
  status=$?
  [ $status = 126 ] || exit $status
done
echo "no Python 3.6 or later" >&2; exit 127
"""


class Session:
    """The agent's process on a host. ``facts`` comes first, then at most one ``start``; where that has ``started`` a
    job, ``channel`` is that of the job's follower.
    """

    def __init__(self, reach: Reach, python: str | None, sudo: bool) -> None:
        """Start it, by ``python`` or the first Python that will do. Raises ReachError."""
        self.host, self.started = reach.host.name, False
        self._sending: threading.Thread | None = None
        self.channel: Channel = reach.open(["sh", "-c", _FIND_PYTHON, "sh", python or ""], sudo=sudo)

    def facts(self, options: Mapping[str, Any], timeout: float, *, stay: bool) -> Ran:
        """Facts as they are printed (one line), or how the process ended without any. Without ``stay`` the session is
        over with them. Raises ReachError, also where they take longer than ``timeout`` seconds.
        """
        try:
            self.channel.write(_program() + _packed(json.dumps(options).encode()), WRITE_S)
            if not stay:
                self.channel.end_input()
        except ReachError:
            pass  # it may have ended without reading all: its exit status says why
        deadline = time.monotonic() + timeout
        try:
            if line := self._line(deadline):
                return Ran(0, line, b"")
            return Ran(self.channel.wait(max(0.0, deadline - time.monotonic())), b"", self.channel.errors().encode())
        except TimeoutError:
            raise ReachError(f"{self.host}: sent no facts within {timeout:g} s") from None

    def send_agent(self) -> threading.Thread:
        """Send once what a job needs, which the host loads while others still tell facts. Returns at once, with the
        thread that sends: a host may read slowly, or not at all.
        """
        if self._sending is None:
            self._sending = threading.Thread(target=self._send_agent, daemon=True)
            self._sending.start()
        return self._sending

    def _send_agent(self) -> None:
        try:
            self.channel.write(_files(), WRITE_S)
        except ReachError:
            self.close()

    def start(self, job: Mapping[str, Any], timeout: float) -> dict[str, Any]:
        """The agent's answer to ``job``, {} where it gave none. Raises ReachError, also where it takes longer than
        ``timeout`` seconds.
        """
        sending = self.send_agent()
        sending.join(WRITE_S)
        if sending.is_alive():
            raise Stalled(f"{self.host}: read no input for {WRITE_S:g} s")
        self.channel.write(_packed(json.dumps(job).encode()), WRITE_S)
        try:
            answer = answer_in((MARK + self._line(time.monotonic() + timeout)).decode(errors="replace"))
        except TimeoutError:
            raise ReachError(f"{self.host}: did not start its job within {timeout:g} s") from None
        self.started = answer.get("state") in ("started", "running", "finished")
        return answer

    def close(self) -> None:
        """End it; a job that it started goes on."""
        self.channel.close()

    def _line(self, deadline: float) -> bytes:
        """The next line of the agent's without its mark; empty when the process has ended. Raises TimeoutError, Flood,
        LinkLost.
        """
        size = 0
        while line := self.channel.readline(max(0.0, deadline - time.monotonic())):
            if line.startswith(MARK):
                return line.removeprefix(MARK)
            size += len(line)
            if size > MAX_OUTPUT:
                raise Flood(f"{self.host}: sent more than {MAX_OUTPUT >> 20} MiB where Fleetmark asked for little")
        return b""


def _packed(document: bytes) -> bytes:
    data = zlib.compress(document, 6)
    return b"%08d" % len(data) + data


def _once(make: Callable[[], bytes]) -> Callable[[], bytes]:
    """``make``, whose result is kept. Threads of many hosts that ask at the same time wait for one of them."""
    kept, lock = cache(make), threading.Lock()

    @wraps(make)
    def of_all() -> bytes:
        with lock:
            return kept()

    return of_all


@_once
def _program() -> bytes:
    return _packed(agent_source("session.py")) + _packed(json.dumps(dict(fact_sources())).encode())


@_once
def _files() -> bytes:
    return _packed(json.dumps(dict(sources())).encode())
