"""Track the state of one host during a campaign, and the deadline of its next message.

Every wait for a host has a deadline. A host can extend it only a finite number of times. Each step sets it three times:
when the step may leave its gate, when it begins, and when its files have arrived. Files extend it up to the size limit
of a step.
"""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass, field

from fleetmark.hosts.reach import Channel, Reach
from fleetmark.hosts.session import Session
from fleetmark.record.replies import MAX_STEP
from fleetmark.record.steps import Step

STUCK_S = 120.0  # time until a host's next message is overdue; during a step, counted from the step's timeout
SLOWEST = 32 << 10  # minimum link speed, in B/s, at which files arrive in time
MOST_UNHEARD = 64  # maximum number of queued replies of one host; beyond it, the host must wait


@dataclass(slots=True, kw_only=True)
class Run:
    """Track one host during a campaign.

    Only the main thread changes it, except ``session``, ``channel``, ``arrived`` and ``room``, which ``listen`` and
    ``start`` change.
    """

    host: str
    reach: Reach
    python: str
    sudo: bool
    folder: str  # the job's folder on the host
    steps: dict[str, Step]
    pending: set[str] = field(default_factory=set)
    trial: bool = False  # whether the job tries a setting
    phase: str = "launching"  # "queued" comes first if hosts take turns; "running" and "over" follow
    cleaning: bool = False  # whether all results are stored, and the host was ordered to remove the job's folder
    reason: str = ""  # the reason for steps that remain at the end
    waiting: str | None = None  # the gated step at which the host waits
    waiting_since: float = 0.0  # monotonic
    cannot: dict[str, str] = field(default_factory=dict)  # the reason by workload that could not be deployed
    session: Session | None = None  # open until the job has started and is followed, or until it is closed
    channel: Channel | None = None
    ready: str | None = None  # the serving step that is ready for clients
    settled: frozenset[str] = frozenset()  # steps that an earlier run has stored
    dropped: set[str] = field(default_factory=set)  # steps that are no longer needed
    # By step, the reason why it was ordered not to run, or to end.
    excuses: dict[str, str] = field(default_factory=dict)
    deadline: float | None = None  # monotonic; the host is stuck if ``expected`` has not arrived by then
    expected: str = ""
    silent_since: float | None = None  # monotonic; the deadline is paused from this time on
    arrived: int = 0  # total bytes of files received; they extend the deadline
    room: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(MOST_UNHEARD))
    _arrived_before: int = 0  # value of ``arrived`` when the deadline was set
    _stood: set[str] = field(default_factory=set)  # gated steps at which the host has waited
    _released: set[str] = field(default_factory=set)  # steps that may have left their gate
    _begun: set[str] = field(default_factory=set)  # steps that have begun
    _finished: bool = False

    def end_session(self) -> None:
        """Close the session if there is one. A job that it started continues."""
        if self.session:
            self.session.close()
            self.session = None

    def expect(self, seconds: float, event: str) -> None:
        """Set the deadline: ``event`` must come within ``seconds``."""
        self.deadline, self.expected, self._arrived_before = time.monotonic() + seconds, event, self.arrived

    def stands_at(self, step: Step) -> None:
        """Record that the host waits at the gate of ``step`` for other hosts, which have their own deadlines."""
        self.waiting = step.id
        if step.id not in self._stood:
            self._stood.add(step.id)
            self.waiting_since, self.deadline = time.monotonic(), None

    def may_leave(self, step_id: str) -> None:
        """Record that the host was ordered to leave the gate of a step, to run it or to skip it."""
        if step_id == self.waiting and step_id not in self._released:
            self._released.add(step_id)
            self.expect(STUCK_S, f"the beginning of {self.steps[step_id].title}")

    def begins(self, step: Step) -> bool:
        """Record that the host runs ``step``. Return whether this is its first message about this step."""
        self.waiting = None
        if step.id in self._begun:
            return False
        self._begun.add(step.id)
        self.expect(step.timeout_s + STUCK_S, f"the end of {step.title}")
        return True

    def finishes(self, reason: str) -> None:
        """Record that the host's runner ends. ``reason`` applies to the remaining steps."""
        self.reason = reason
        if not self._finished:
            self._finished = True
            self.expect(STUCK_S, "its agent's last message")

    def silent(self) -> None:
        """Record that the connection is lost."""
        self.silent_since = self.silent_since or time.monotonic()

    def back(self) -> None:
        """Record that the host is connected again. The time without a connection extends the deadline."""
        if self.silent_since is not None and self.deadline is not None:
            self.deadline += time.monotonic() - self.silent_since
        self.silent_since = None

    def overdue(self, now: float) -> bool:
        """Return whether the deadline has passed at ``now`` (monotonic)."""
        if self.phase != "running" or self.silent_since is not None or self.deadline is None:
            return False
        return now > self.deadline + min(self.arrived - self._arrived_before, MAX_STEP) / SLOWEST

    def only_waits(self) -> bool:
        """Return whether the host waits at a gate without a deadline, so that only another host can release it."""
        return self.phase == "running" and self.silent_since is None and self.deadline is None and bool(self.waiting)
