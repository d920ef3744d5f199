"""The state of one host while a campaign runs, and the deadline of its next message.

Every wait for a host has a deadline, which the host can extend only a finite number of times: each step sets it once
when it may leave its gate, once when it begins and once when it has arrived; files extend it up to a step's size limit.
"""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass, field

from fleetmark.hosts.reach import Channel, Reach
from fleetmark.hosts.session import Session
from fleetmark.record.replies import MAX_STEP
from fleetmark.record.steps import Step

STUCK_S = 120.0  # after which the next message of a host is overdue; where a step runs, after its timeout
SLOWEST = 32 << 10  # B/s, the slowest link on which files arrive in time
MOST_UNHEARD = 64  # queued replies of one host; beyond that the host has to wait


@dataclass(slots=True)
class Run:
    """Only the main thread changes it, except ``session``, ``channel``, ``arrived`` and ``room``: ``listen`` and
    ``start`` do.
    """

    host: str
    reach: Reach
    python: str
    sudo: bool
    folder: str  # of the job, on the host
    steps: dict[str, Step]
    pending: set[str] = field(default_factory=set)
    trial: bool = False  # its job tries a setting
    phase: str = "launching"  # before it queued, where hosts take turns; then running, over
    why: str = ""  # why steps still pending at the end are lost
    waiting: str | None = None  # the gated step it stands at
    waiting_since: float = 0.0  # monotonic
    cannot: dict[str, str] = field(default_factory=dict)  # workloads that could not be deployed, and why
    session: Session | None = None  # until its job is started over it and followed, or it is cut off
    channel: Channel | None = None
    ready: str | None = None  # the serving step that listens
    settled: frozenset[str] = frozenset()  # steps that an earlier run has
    dropped: set[str] = field(default_factory=set)  # steps that are not needed any more
    excuses: dict[str, str] = field(default_factory=dict)  # step to why it was ordered not to run, or to end
    deadline: float | None = None  # monotonic; by then ``expected`` has come, or the host is stuck
    expected: str = ""
    silent_since: float | None = None  # monotonic; meanwhile the deadline stands still
    arrived: int = 0  # bytes of files, ever; the deadline moves while they come
    room: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(MOST_UNHEARD))
    _arrived_before: int = 0  # when the deadline was set
    _stood: set[str] = field(default_factory=set)  # gated steps that it has stood at,
    _released: set[str] = field(default_factory=set)  # may have left,
    _begun: set[str] = field(default_factory=set)  # and has begun
    _finished: bool = False

    def end_session(self) -> None:
        """Close the session, where there is one; a job that it started goes on."""
        if self.session:
            self.session.close()
            self.session = None

    def expect(self, seconds: float, event: str) -> None:
        """``event`` has to come within ``seconds``."""
        self.deadline, self.expected, self._arrived_before = time.monotonic() + seconds, event, self.arrived

    def stands_at(self, step: Step) -> None:
        """It waits at the gate of ``step`` for hosts that have deadlines of their own."""
        self.waiting = step.id
        if step.id not in self._stood:
            self._stood.add(step.id)
            self.waiting_since, self.deadline = time.monotonic(), None

    def may_leave(self, step_id: str) -> None:
        """It was ordered to leave the gate of that step, one way or another."""
        if step_id == self.waiting and step_id not in self._released:
            self._released.add(step_id)
            self.expect(STUCK_S, f"the beginning of {self.steps[step_id].title}")

    def begins(self, step: Step) -> bool:
        """The host runs ``step``. Returns whether this is its first message about it."""
        self.waiting = None
        if step.id in self._begun:
            return False
        self._begun.add(step.id)
        self.expect(step.timeout_s + STUCK_S, f"the end of {step.title}")
        return True

    def finishes(self, why: str) -> None:
        """Its runner ends; ``why`` is the reason where steps are left."""
        self.why = why
        if not self._finished:
            self._finished = True
            self.expect(STUCK_S, "its agent's last message")

    def silent(self) -> None:
        """Its connection is lost."""
        self.silent_since = self.silent_since or time.monotonic()

    def back(self) -> None:
        """It is connected again. The time without a connection extends the deadline."""
        if self.silent_since is not None and self.deadline is not None:
            self.deadline += time.monotonic() - self.silent_since
        self.silent_since = None

    def overdue(self, now: float) -> bool:
        """Whether the deadline has passed at ``now`` (monotonic)."""
        if self.phase != "running" or self.silent_since is not None or self.deadline is None:
            return False
        return now > self.deadline + min(self.arrived - self._arrived_before, MAX_STEP) / SLOWEST

    def only_waits(self) -> bool:
        """Whether it waits at a gate without a deadline: only another host can release it."""
        return self.phase == "running" and self.silent_since is None and self.deadline is None and bool(self.waiting)
