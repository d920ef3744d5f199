"""Drives a campaign's jobs: hears what hosts tell, keeps it, pairs them up, and knows when each is done or lost.

One thread follows each host over one idle connection; everything they tell goes through one queue to the main thread,
which alone changes state and writes. Nothing here polls a host.
"""

from __future__ import annotations

import base64
import contextlib
import gzip
import json
import queue
import threading
import time
import zlib
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from fleetmark.adaptive import Adaptive, Rejected, Settled
from fleetmark.archive import Archive
from fleetmark.model import Status
from fleetmark.outcome import Outcome, judge
from fleetmark.progress import Progress
from fleetmark.reach import Channel, Reach, ReachError
from fleetmark.steps import Exchange, Step

RETRY_S = 3.0
STOP_S = 20.0
STEADY_S = 10.0  # a link that holds so long is well again
LOOK_S = 30.0
STUCK_S = 120.0  # past a step's timeout, after which nothing will come from its host


@dataclass(slots=True)
class Run:
    """One host's part in a campaign while it is driven."""

    host: str
    reach: Reach
    python: str
    sudo: bool
    folder: str  # of the job, on the host
    steps: dict[str, Step]
    pending: set[str] = field(default_factory=set)
    phase: str = "launching"  # then running, over
    why: str = ""  # why steps still pending at the end are lost
    waiting: str | None = None  # the gated step it stands at
    cannot: dict[str, str] = field(default_factory=dict)  # workloads that could not be deployed, and why
    channel: Channel | None = None
    ready: str | None = None  # the serving step that listens
    deadline: float | None = None  # monotonic; by then the running step has ended, or its host is stuck
    settled: frozenset[str] = frozenset()  # steps that an earlier run has
    dropped: set[str] = field(default_factory=set)  # steps that are not needed any more


class Drive:
    """Follows the hosts in ``runs`` until each is over, and journals what became of every measuring step."""

    def __init__(
        self,
        archive: Archive,
        runs: Sequence[Run],
        exchanges: Sequence[Exchange],
        progress: Progress,
        patience_s: float,
        adaptive: Adaptive | None = None,
    ) -> None:
        self.adaptive = adaptive
        self.archive, self.progress, self.patience_s = archive, progress, patience_s
        self.runs = {run.host: run for run in runs}
        self.exchanges: dict[tuple[str, str], list[Exchange]] = {}  # of a serving step, one; of a measuring one, any
        for e in exchanges:
            self.exchanges[e.server, e.server_step] = [e]
            self.exchanges.setdefault((e.client, e.client_step), []).append(e)
        self.heard: queue.SimpleQueue[tuple[str, str, Any]] = queue.SimpleQueue()
        self.looked = time.monotonic()
        self.leaving = False
        self.abandoned = False  # Ansible need not go on

    # ------------------------------------------------------------ from outside

    def launch(self, work: Callable[[Callable[[str, str, Mapping[str, Any]], None]], str | None]) -> None:
        """Run ``work`` (Ansible) beside the following; what it reports is heard like what hosts tell.

        The program does not end before it, but nobody waits for Ansible to put its things away.
        """

        def beside() -> None:
            error: str | None = "Ansible ended unexpectedly"
            try:
                error = work(lambda host, what, details: self.heard.put((host, what, details)))
            finally:
                self.heard.put(("", "launch over", error))

        threading.Thread(target=beside).start()

    def follow(self, host: str) -> None:
        """Begin to follow a host whose job is there."""
        self.runs[host].phase = "running"

        def beside() -> None:
            try:
                self._follow(self.runs[host])
            finally:
                self.heard.put((host, "gone", "nobody follows it any more"))  # heard only if all is not over

        threading.Thread(target=beside, daemon=True).start()

    def run(self) -> None:
        """Until every host is over. KeyboardInterrupt passes through: ``stop`` comes next."""
        while any(r.phase != "over" for r in self.runs.values()):
            self._hear()

    def stop(self) -> None:
        """Ask every host to end its job cleanly, and keep what it finished meanwhile."""
        self.leaving = True
        for run in self.runs.values():
            if run.phase == "running":
                self._order(run, "stop")  # one that is being launched is told as soon as it is followed
        deadline = time.monotonic() + STOP_S
        while any(r.phase != "over" for r in self.runs.values()) and time.monotonic() < deadline:
            self._hear(1.0)
        self.abandoned = True
        for run in self.runs.values():
            if run.phase != "over":
                self._over(run, "interrupted; its host did not answer in time")

    # ------------------------------------------------------------ following

    def _follow(self, run: Run) -> None:
        silent_since = None
        while True:
            try:
                run.channel = run.reach.open([run.python, f"{run.folder}/follow.py", run.folder], sudo=run.sudo)
                have = " ".join(sorted((set(run.steps) | run.settled) - run.pending))
                run.channel.write(f"have {have}\n".encode())
                if self.leaving:
                    run.channel.write(b"stop\n")
                opened = time.monotonic()
                for line in run.channel.lines():
                    if not line.startswith(b"{"):
                        continue  # a login script that talks
                    if silent_since:
                        self.heard.put((run.host, "back", None))
                        if time.monotonic() - opened > STEADY_S:
                            silent_since = None
                    self.heard.put((run.host, "told", json.loads(line)))
                if run.phase == "over":
                    return
                raise ReachError(f"{run.host}: the connection ended")
            except (ReachError, ValueError) as error:
                silent_since = silent_since or time.monotonic()
                if run.phase == "over":
                    return
                if self.leaving or time.monotonic() - silent_since > self.patience_s:
                    self.heard.put((run.host, "gone", str(error)))
                    return
                self.heard.put((run.host, "silent", str(error)))
                run.reach.close()
                time.sleep(RETRY_S)

    def _order(self, run: Run, words: str) -> None:
        """Tell a host something. Should the link be down, it asks again later: every order repeats harmlessly."""
        if run.channel:
            with contextlib.suppress(ReachError):
                run.channel.write(f"{words}\n".encode())

    # ------------------------------------------------------------ hearing

    def _hear(self, timeout: float | None = None) -> None:
        try:
            host, what, details = self.heard.get(timeout=timeout or LOOK_S)
        except queue.Empty:
            self._notice_stuck()
            return
        if time.monotonic() - self.looked > LOOK_S:
            self._notice_stuck()
        if what == "launch over":
            self._launch_over(details)
            return
        run = self.runs[host]
        if run.phase == "over":
            return
        match what:
            case "deploying":
                self.progress.deploying(host, details["workload"])
            case "launched":
                self._launched(run, details)
            case "refused" | "unreachable":
                self._over(run, self._why_refused(details))
            case "silent":
                self.progress.trouble(host, f"does not answer: {details.removeprefix(f'{host}: ')}")
            case "back":
                self._back(run)
            case "gone":
                self._over(run, f"stopped answering: {details.removeprefix(f'{host}: ')}")
            case "told":
                try:
                    self._told(run, details)
                except (KeyError, ValueError, TypeError, EOFError, zlib.error) as error:
                    self._over(run, f"told what cannot be read: {error!r}")

    def _back(self, run: Run) -> None:
        """A host answers again; what is not needed may have been said while it did not hear."""
        self.progress.trouble(run.host, "")
        for step in sorted(run.dropped):
            self._order(run, f"drop {step}")

    def _notice_stuck(self) -> None:
        """A host whose disk or kernel hangs keeps its connection and says nothing."""
        self.looked = time.monotonic()
        for run in self.runs.values():
            if run.phase == "running" and run.deadline and time.monotonic() > run.deadline:
                self._over(run, "stuck: a step did not end even long after its timeout")

    def _launch_over(self, error: str | None) -> None:
        for run in self.runs.values():
            if run.phase == "launching":
                self._over(run, f"its job was not started: {error or 'Ansible did not say why'}")

    def _why_refused(self, details: Mapping[str, Any]) -> str:
        if details.get("state") != "busy":
            return str(details.get("error"))
        holder = details.get("holder") or {}
        return (
            f"busy: campaign {holder.get('campaign', '?')} of {holder.get('owner', '?')} runs there "
            f"since {holder.get('since', '?')}; wait for it, or stop it where it was started"
        )

    def _launched(self, run: Run, details: Mapping[str, Any]) -> None:
        self.archive.note("launched", host=run.host, state=details["state"])
        for workload, why in details.get("failed_workloads", {}).items():
            dropped = [s for s in run.steps.values() if s.workload == workload and s.id in run.pending]
            outcome = Outcome(Status.FAILED, f"could not be deployed: {why}")
            run.cannot[workload] = outcome.reason
            for step in dropped:
                run.pending.discard(step.id)
                self._record(run, step, outcome)
            self._tell_dropped(run, dropped, outcome)
            for step in dropped:
                self._meet_all(run.host, step.id)
        if details["state"] == "nothing":
            self._over(run, "")
        else:
            self.follow(run.host)

    def _told(self, run: Run, doc: Mapping[str, Any]) -> None:
        step = run.steps.get(doc.get("step", ""))
        match doc["e"]:
            case "wait" if doc["step"] in run.dropped or not step:  # it was told, and did not hear; or is not owed
                self._order(run, f"drop {doc['step']}")
            case "wait" if step and step.id in run.pending:
                run.waiting = step.id
                self._meet_all(run.host, step.id)
            case "begin" if step and step.id in run.pending:
                run.waiting = None
                run.deadline = time.monotonic() + step.timeout_s + STUCK_S
                if not step.serves:
                    self.progress.begin(run.host, step.workload, step.case, step.expect_s)
            case "ready" if step and step.id in run.pending:
                run.ready = step.id
                self._meet_all(run.host, step.id)
            case "end" if step and step.id in run.pending:
                self._keep(run, step, doc["files"])
            case "finish":
                run.why = "" if doc["state"] == "finished" else doc["state"]
            case "over":
                if not doc["remaining"]:
                    self._order(run, "clean")
                early = run.why or "its runner ended early (killed, or the host restarted)"
                self._over(run, early if doc["remaining"] else "")

    def _keep(self, run: Run, step: Step, files: Mapping[str, str]) -> None:
        run.deadline = None
        raw = {name: gzip.decompress(base64.b64decode(data)) for name, data in files.items()}
        folder = self.archive.save_step(run.host, asdict(step), raw)
        if step.serves:
            run.pending.discard(step.id)
            self.progress.served(run.host, step.expect_s)
            ended = self.archive.result(folder)
            self._server_ended(run, step, ended.reason or f"ended with exit status {ended.rc}")
            return
        outcome = judge(self.archive, folder)
        self._ended(run, step, outcome)
        if self.adaptive:
            self._adapt(self.adaptive, run, step, outcome)
        for exchange in self.exchanges.get((run.host, step.id), ()):
            if exchange.server in self.runs:
                self._order(self.runs[exchange.server], f"cancel {exchange.server_step}")

    def _adapt(self, adaptive: Adaptive, run: Run, step: Step, outcome: Outcome) -> None:
        """Repeats that suffice are the last; a disturbed block does not count, and is kept with its reason."""
        where: dict[str, Any] = {"workload": step.workload, "case": step.case, "subject": step.subject}
        for event in adaptive.heard(run.host, step, outcome):
            match event:
                case Rejected(repeat, reason):
                    block: dict[str, Any] = {"workload": step.workload, "subject": step.subject, "repeat": repeat}
                    self.archive.note("rejected", host=run.host, reason=reason, **block)
                    self.progress.say(run.host, f"{step.workload} block {repeat} {reason}")
                case Settled(repeats, width, warm, enough):
                    more = [s for s in run.steps.values() if s.id in run.pending and about_case(s) == about_case(step)]
                    where |= {
                        "repeats": repeats,
                        "half_width": width,
                        "warm_up": list(warm),
                        "steps": [s.id for s in more],
                    }
                    self.archive.note("enough" if enough else "unstable", host=run.host, **where)
                    if not enough:
                        self.progress.say(run.host, f"{step.workload} {step.case} unstable after {repeats} repeats")
                    self._drop(run, more)

    def replay(self, archive: Archive) -> None:
        """Let ``adaptive`` hear what an earlier run of this campaign heard, in the order in which it happened."""
        if not self.adaptive:
            return
        self.adaptive.remember(archive.journal())
        done = [(judge(archive, folder), doc) for folder, doc in archive.steps() if not doc["serves"]]
        for outcome, doc in sorted(done, key=lambda item: item[0].started):
            if outcome.started and (run := self.runs.get(doc["host"])):  # a damaged one does not say when it ran
                self._adapt(self.adaptive, run, Step.from_json(doc), outcome)

    def _drop(self, run: Run, steps: Sequence[Step]) -> None:
        for step in steps:
            run.dropped.add(step.id)
            run.pending.discard(step.id)
            self._order(run, f"drop {step.id}")
            for exchange in self.exchanges.get((run.host, step.id), ()):
                if other := self.runs.get(exchange.server):
                    other.dropped.add(exchange.server_step)
                    other.pending.discard(exchange.server_step)
                    self._order(other, f"drop {exchange.server_step}")
                    self.progress.served(other.host, step.expect_s)
        if steps:
            self.progress.enough(run.host, steps[0].workload, len(steps), sum(s.expect_s for s in steps))

    def _ended(self, run: Run, step: Step, outcome: Outcome) -> None:
        """A step's outcome, journaled and shown."""
        run.pending.discard(step.id)
        run.waiting = None
        if step.serves:
            return
        self._record(run, step, outcome)
        self.progress.ended(run.host, step.workload, step.case, outcome.status, outcome.reason, step.expect_s)

    def _record(self, run: Run, step: Step, outcome: Outcome, sync: bool = True) -> None:
        if not step.serves:
            self.archive.note("outcome", host=run.host, sync=sync, **about(step), **said(outcome))

    def _over(self, run: Run, why: str) -> None:
        """Nothing more will come from this host: what it still owed is lost, and its peers need not wait."""
        run.phase, run.why = "over", why
        owed = [run.steps[i] for i in sorted(run.pending)]
        run.pending.clear()
        for step in owed:
            self._record(run, step, Outcome(Status.LOST, why), sync=False)  # "over" below syncs them all
        if owed:
            self._tell_dropped(run, owed, Outcome(Status.LOST, why))
            self.progress.rows[run.host].state = why
        self.archive.note("over", host=run.host, lost=len(owed), reason=why)
        for host, step_id in self.exchanges:
            if host == run.host:
                self._meet_all(host, step_id)

    def _tell_dropped(self, run: Run, steps: Sequence[Step], outcome: Outcome) -> None:
        measuring = [s for s in steps if not s.serves]
        if measuring:
            count = Counter(s.workload for s in measuring)
            expected = sum(s.expect_s for s in steps)
            self.progress.dropped(run.host, count, expected, outcome.status, outcome.reason)

    # ------------------------------------------------------------ pairs, and more hosts together

    def _meet_all(self, host: str, step: str) -> None:
        for exchange in self.exchanges.get((host, step), ()):
            self._meet(exchange)

    def _meet(self, exchange: Exchange) -> None:
        """Let those begin together who stand at it; send one away whose others will not come, or went."""
        server, client = self.runs.get(exchange.server), self.runs.get(exchange.client)
        comes = [
            run is not None and run.phase != "over" and step in run.pending
            for run, step in ((server, exchange.server_step), (client, exchange.client_step))
        ]
        if server and client and all(comes):
            if client.waiting == exchange.client_step and self._all_ready(exchange):
                self._order(client, f"go {exchange.client_step}")
            elif client.waiting == exchange.client_step and self._all_there(exchange):
                for e in self.exchanges[exchange.client, exchange.client_step]:
                    if self.runs[e.server].waiting == e.server_step:
                        self._order(self.runs[e.server], f"go {e.server_step}")
        elif server and comes[0]:  # its client will not come; it ends, or does not begin
            self._order(server, f"cancel {exchange.server_step}")
        elif client and comes[1] and not comes[0]:
            step = client.steps[exchange.client_step]
            what = "node" if step.members else "peer"
            why = server.why if server and server.why else "it takes no part in this run"
            if client.waiting == step.id:
                if cannot := server.cannot.get(step.workload) if server else None:
                    self._order(client, f"fail {step.id} its {what} {exchange.server} cannot take part: {cannot}")
                else:
                    self._order(client, f"skip {step.id} its {what} {exchange.server} is not there: {why}")
            elif step.members and server and server.phase == "over":  # or it would wait for that node till its timeout
                self._order(client, f"cancel {step.id} its node {exchange.server} was lost: {why}")

    def _all_ready(self, exchange: Exchange) -> bool:
        every = self.exchanges[exchange.client, exchange.client_step]
        return all(e.server in self.runs and self.runs[e.server].ready == e.server_step for e in every)

    def _all_there(self, exchange: Exchange) -> bool:
        """Whether all others stand at it: one that is held early would wait for those who come late."""
        every = self.exchanges[exchange.client, exchange.client_step]
        runs = [(self.runs.get(e.server), e.server_step) for e in every]
        return all(run is not None and step in (run.waiting, run.ready) for run, step in runs)

    def _server_ended(self, run: Run, step: Step, why: str) -> None:
        exchange = self.exchanges[run.host, step.id][0]
        client = self.runs.get(exchange.client)
        if client and client.waiting == exchange.client_step:
            self._order(client, f"skip {exchange.client_step} its server on {run.host}: {why}")


def about_case(step: Step) -> tuple[str, str, str]:
    """What a step has in common with its repeats."""
    return step.workload, step.case, step.subject


def about(step: Step) -> dict[str, Any]:
    """What identifies a step in the journal."""
    return {"workload": step.workload, "case": step.case, "repeat": step.repeat, "subject": step.subject}


def said(outcome: Outcome) -> dict[str, Any]:
    """An outcome as the journal keeps it."""
    return {
        "status": outcome.status.value,
        "reason": outcome.reason,
        "started": outcome.started,
        "wall_s": outcome.wall_s,
        "foreign_cores": outcome.foreign_cores,
        "notes": list(outcome.notes),
    }
