"""Listen to one host over one idle connection: check replies, receive files, and pass on other events."""

from __future__ import annotations

import json
import math
import queue
import time
from collections.abc import Callable, Iterator
from typing import Any

from fleetmark.base.errors import FleetmarkError
from fleetmark.campaign.hostrun import Run
from fleetmark.campaign.receive import Receiver
from fleetmark.hosts.reach import Channel, Flood, ReachError
from fleetmark.record import replies
from fleetmark.record.archive import Archive

RETRY_S = 3.0
GREETING_S = 30.0  # timeout for a host to read the list of steps that are already stored
STEADY_S = 10.0  # a link that lasts this long counts as restored
# Remove a job's folder, and its parent if it is empty. A setting that could not be restored stays, with its old values.
REMOVE = 'test -e "$1/setting.json" || rm -rf -- "$1"; rmdir -- "${1%/*}" 2>/dev/null; :'

Words = tuple[str, str, Any]  # host, what, details


class Heard:
    """Queue the events of all hosts for the main thread.

    ``upto``: all events queued before this time (monotonic) have been handled. Deadlines are compared with it, so that
    hosts are not treated as stuck if the controller is slow.
    """

    def __init__(self) -> None:
        self._queue: queue.SimpleQueue[tuple[float, Words]] = queue.SimpleQueue()
        self.upto = time.monotonic()

    def put(self, words: Words) -> None:
        self._queue.put((time.monotonic(), words))

    def get(self, timeout: float | None = None) -> Words:
        """Return the next event. Raise queue.Empty if none arrives within ``timeout`` seconds."""
        try:
            self.upto, words = self._queue.get(timeout=timeout)
        except queue.Empty:
            self.upto = time.monotonic()
            raise
        return words

    def empty(self) -> bool:
        return self._queue.empty()


def order(**words: Any) -> bytes:
    """Encode an order to a host: a word and the id of one of its own steps, never free text."""
    return json.dumps(words).encode() + b"\n"


def listen(run: Run, archive: Archive, heard: Heard, patience_s: float, leaving: Callable[[], bool]) -> None:
    """Follow the host's job to its end, and reconnect as often as needed. This runs in its own thread.

    ``heard`` receives ``event``, ``step`` (its id, the folder with its files, its result), ``silent`` and ``back``. The
    last two report the link. The final event is ``cleaned``, or with details ``gone``, ``no reply`` (the host broke the
    protocol) or ``broken`` (an error in this process).
    """
    silent_since = None
    while True:
        have = sorted((set(run.steps) | run.settled) - run.pending)
        receiver = Receiver(archive, run.host, run.steps, have)
        try:
            run.channel = _opened(run)
            run.channel.write(order(order="have", steps=have), GREETING_S)
            if leaving():
                run.channel.write(order(order="stop"), GREETING_S)
            opened = time.monotonic()
            for event in _events(run.channel):
                if silent_since:
                    heard.put((run.host, "back", None))
                    if time.monotonic() - opened > STEADY_S:
                        silent_since = None
                _pass_on(run, receiver, event, heard)
            _end(run, run.channel, heard)
            return
        except (replies.NoReply, Flood) as error:
            heard.put((run.host, "no reply", str(error).removeprefix(f"{run.host}: ")))
            run.reach.close()
            return
        except ReachError as error:
            silent_since = _silent_since(run, silent_since)
            if run.phase == "over":
                return
            if leaving() or time.monotonic() - silent_since > patience_s:
                heard.put((run.host, "gone", str(error)))
                return
            heard.put((run.host, "silent", str(error)))
            run.reach.close()
            time.sleep(RETRY_S)
        except FleetmarkError as error:
            heard.put((run.host, "broken", error))
            return
        finally:
            receiver.forget()


def _opened(run: Run) -> Channel:
    """Return the channel that follows the host's job: that of the session that started the job, or that of a new
    process.
    """
    session, run.session = run.session, None
    if session and session.started:
        return session.channel
    if session:
        session.close()  # Ansible started the job, so the session would only idle during the measurement
    return run.reach.open([run.python, f"{run.folder}/follow.py", run.folder], sudo=run.sudo)


def _end(run: Run, channel: Channel, heard: Heard) -> None:
    """Handle the end of a follower, whose last act is to remove the job's folder; if it did not, remove it here.

    Raise ReachError if the host is not finished, or on failure.
    """
    if run.phase == "over":
        return
    if not run.cleaning:
        raise ReachError(f"{run.host}: the connection ended")
    try:
        status = channel.wait(GREETING_S)
    except TimeoutError:
        raise ReachError(f"{run.host}: its agent did not end within {GREETING_S:g} s") from None
    if status:
        run.reach.run(["sh", "-c", REMOVE, "sh", run.folder], sudo=run.sudo)
    heard.put((run.host, "cleaned", None))


def _silent_since(run: Run, before: float | None) -> float:
    """Return when the silence began (monotonic): minus infinity if the host cannot return, or now if it can."""
    returns = run.reach.returns()
    if returns is False:
        return -math.inf
    return time.monotonic() if returns or before is None else before


def _events(channel: Channel) -> Iterator[replies.Event]:
    for line in channel.lines(limit=replies.MAX_LINE):
        if line.startswith(b"{"):  # skip lines printed by a login script
            yield replies.read_event(line)


def _pass_on(run: Run, receiver: Receiver, event: replies.Event, heard: Heard) -> None:
    """Handle one event. Write parts of files to disk immediately, and delay a host that sends too fast."""
    if isinstance(event, replies.Part):
        run.arrived += receiver.take(event)
        return
    step = (event.step, *receiver.end(event)) if isinstance(event, replies.Ended) else None
    run.room.acquire()
    heard.put((run.host, "step", step) if step else (run.host, "event", event))
