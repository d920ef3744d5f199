"""Listens to one host over one idle connection: checks every reply, receives its files, and passes on the rest."""

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
GREETING_S = 30.0  # in which a host reads the list of steps that are here already
STEADY_S = 10.0  # a link that lasts so long counts as restored

Words = tuple[str, str, Any]  # host, what, details


class Heard:
    """The queue of all hosts' words to the main thread. ``upto``: all that was put before that moment (monotonic) has
    been taken. Deadlines are held against it: a controller that is behind must not blame its hosts.
    """

    def __init__(self) -> None:
        self._queue: queue.SimpleQueue[tuple[float, Words]] = queue.SimpleQueue()
        self.upto = time.monotonic()

    def put(self, words: Words) -> None:
        self._queue.put((time.monotonic(), words))

    def get(self, timeout: float | None = None) -> Words:
        """The next words. Raises queue.Empty where none come within ``timeout`` seconds."""
        try:
            self.upto, words = self._queue.get(timeout=timeout)
        except queue.Empty:
            self.upto = time.monotonic()
            raise
        return words

    def empty(self) -> bool:
        return self._queue.empty()


def order(**words: Any) -> bytes:
    """An order to a host as it is sent: a word and the id of one of its own steps, never a text."""
    return json.dumps(words).encode() + b"\n"


def listen(run: Run, archive: Archive, heard: Heard, patience_s: float, leaving: Callable[[], bool]) -> None:
    """Follow the host's job to its end and reconnect as often as needed; runs in a thread of its own.

    ``heard`` gets ``event``, ``step`` (its id, the folder with its files, its result), ``silent`` and ``back`` (the
    link), and at last ``gone``, ``no reply`` (it broke the protocol) or ``broken`` (an error here), each with details.
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
            if run.phase == "over":
                return
            raise ReachError(f"{run.host}: the connection ended")
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
    """The follower of the host's job: the session that started it, or a process of its own."""
    session, run.session = run.session, None
    if session and session.started:
        return session.channel
    if session:
        session.close()  # it waits for a job that Ansible started: nothing idles beside what is measured
    return run.reach.open([run.python, f"{run.folder}/follow.py", run.folder], sudo=run.sudo)


def _silent_since(run: Run, before: float | None) -> float:
    """Since when patience is tried (monotonic): for ever where the host will not return, not yet where it will."""
    returns = run.reach.returns()
    if returns is False:
        return -math.inf
    return time.monotonic() if returns or before is None else before


def _events(channel: Channel) -> Iterator[replies.Event]:
    for line in channel.lines(limit=replies.MAX_LINE):
        if line.startswith(b"{"):  # a login script may print lines too
            yield replies.read_event(line)


def _pass_on(run: Run, receiver: Receiver, event: replies.Event, heard: Heard) -> None:
    """Handle one event. Parts of files go to disk at once; a host that sends faster than the queue empties waits."""
    if isinstance(event, replies.Part):
        run.arrived += receiver.take(event)
        return
    step = (event.step, *receiver.end(event)) if isinstance(event, replies.Ended) else None
    run.room.acquire()
    heard.put((run.host, "step", step) if step else (run.host, "event", event))
