"""Control the session of a host: one process that reports facts, starts a job and follows it (agent/session.py).

A host therefore needs only one Python process and one SSH session. If a session is interrupted, another process starts
or follows the job.
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

MARK = b"FLEETMARK"  # prefix of the agent's lines, because a login script may print lines too
WRITE_S = 30.0  # timeout for a host to read its input: about 11 KB for facts, and 42 KB for a job

# The first suitable Python reads the agent's program from stdin. platform-python belongs to RHEL 8. An older Python
# exits with 126 before reading stdin, and the next one is tried. A separate check would start one more Python.
# -I and -S skip the modules of the user and the site, which halves the start time.
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
    """Control the agent's process on a host.

    Call ``facts`` first, then ``start`` at most once. If it has ``started`` a job, ``channel`` belongs to the job's
    follower.
    """

    def __init__(self, reach: Reach, python: str | None, sudo: bool) -> None:
        """Start the process with ``python``, or with the first suitable Python. Raise ReachError on failure."""
        self.host, self.started = reach.host.name, False
        self._sending: threading.Thread | None = None
        self.channel: Channel = reach.open(["sh", "-c", _FIND_PYTHON, "sh", python or ""], sudo=sudo)

    def facts(self, options: Mapping[str, Any], timeout: float, *, stay: bool) -> Ran:
        """Return the facts as printed (one line), or how the process ended without facts.

        Without ``stay``, the session ends afterwards. Raise ReachError on failure or after ``timeout`` seconds.
        """
        try:
            self.channel.write(_program() + _packed(json.dumps(options).encode()), WRITE_S)
            if not stay:
                self.channel.end_input()
        except ReachError:
            pass  # the process may end without reading everything; its exit status says why
        deadline = time.monotonic() + timeout
        try:
            if line := self._line(deadline):
                return Ran(0, line, b"")
            return Ran(self.channel.wait(max(0.0, deadline - time.monotonic())), b"", self.channel.errors().encode())
        except TimeoutError:
            raise ReachError(f"{self.host}: sent no facts within {timeout:g} s") from None

    def send_agent(self) -> threading.Thread:
        """Send the agent's files once, so that the host loads them while other hosts still report facts.

        Return the sending thread immediately, because a host may read slowly, or not at all.
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
        """Start ``job``, and return the agent's answer, or {} if there is none.

        Raise ReachError on failure, or if the answer takes longer than ``timeout`` seconds.
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
        """End the session. A job that it started continues."""
        self.channel.close()

    def _line(self, deadline: float) -> bytes:
        """Return the agent's next line without its mark, or nothing if the process has ended.

        Raise TimeoutError, Flood or LinkLost.
        """
        size = 0
        while line := self.channel.readline(max(0.0, deadline - time.monotonic())):
            if line.startswith(MARK):
                return line.removeprefix(MARK)
            size += len(line)
            if size > MAX_OUTPUT:
                raise Flood(f"{self.host}: sent more than {MAX_OUTPUT >> 20} MiB, more than Fleetmark expects")
        return b""


def _packed(document: bytes) -> bytes:
    data = zlib.compress(document, 6)
    return b"%08d" % len(data) + data


def _once(make: Callable[[], bytes]) -> Callable[[], bytes]:
    """Cache the result of ``make``. One thread computes it, and others wait."""
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
