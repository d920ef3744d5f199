"""Drive a campaign's jobs: receive and store the hosts' replies, pair hosts, and detect when each host is finished.

One thread per host listens on one idle connection. All replies go through one queue to the main thread. Only the main
thread changes state and the archive. A host that breaks the protocol is lost, and the other hosts continue. An order
to a host is a word and the id of one of its own steps, so no text from one host reaches another. No host is polled.
"""

from __future__ import annotations

import queue
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

from fleetmark.base.measurement import Status
from fleetmark.campaign.adaptive import Adaptive, Rejected, Settled
from fleetmark.campaign.exchanges import Exchanges, Order
from fleetmark.campaign.hostrun import STUCK_S, Run
from fleetmark.campaign.launch import TASK_TIMEOUT_S
from fleetmark.campaign.listen import Heard, listen, order
from fleetmark.campaign.outcome import Outcome, describe_exit, judge
from fleetmark.campaign.progress import Progress
from fleetmark.campaign.turns import Turns
from fleetmark.hosts.reach import ReachError, Stalled
from fleetmark.record import replies
from fleetmark.record.archive import Archive
from fleetmark.record.steps import Exchange, Step

STOP_S = 20.0
LOOK_S = 30.0
HERE_S = 10.0  # interval of reminders to a host that tries a setting; it restores the setting after 30 s without one
STARTS = 64  # maximum number of jobs being sent to hosts at a time
ORDER_S = 5.0  # timeout for a host to read an order of about 50 bytes


class Drive:
    """Follow the hosts in ``runs`` until all are finished, and record every measuring step's outcome in the journal."""

    def __init__(
        self,
        archive: Archive,
        runs: Sequence[Run],
        exchanges: Sequence[Exchange],
        progress: Progress,
        patience_s: float,
        adaptive: Adaptive | None = None,
        outcome_of: Callable[[Path], Outcome] | None = None,
    ) -> None:
        self.outcome_of = outcome_of or partial(judge, archive)
        self.adaptive = adaptive
        self.archive, self.progress, self.patience_s = archive, progress, patience_s
        self.runs = {run.host: run for run in runs}
        self.exchanges = Exchanges(self.runs, exchanges, self._order, self._excuse)
        self.heard = Heard()
        self.looked = self.launch_heard = self.reminded = time.monotonic()
        self.trials = [run for run in runs if run.trial]
        self.leaving = False
        self.abandoned = False  # Ansible can be stopped
        self.turns, self.starters = Turns(), dict[str, Callable[[], None]]()
        self.starting = ThreadPoolExecutor(STARTS, thread_name_prefix="start")

    # ------------------------------------------------------------ from outside

    def admit(self, starters: Mapping[str, Callable[[], None]], turns: Turns) -> None:
        """Start hosts with their ``starters`` when their turns come: immediately, or when other hosts finish."""
        self.turns, self.starters = turns, dict(starters)
        for host in self.starters:
            self.runs[host].phase = "queued"
            self.progress.rows[host].queued = True
        self._admit()

    def _admit(self) -> None:
        busy = [run.host for run in self.runs.values() if run.phase in ("launching", "running")]
        for host in self.turns.next(list(self.starters), busy):
            self.runs[host].phase = "launching"
            self.launch_heard = time.monotonic()
            self.progress.rows[host].queued = False
            self.starters.pop(host)()

    def launch(
        self, hosts: Sequence[str], work: Callable[[Callable[[str, str, Mapping[str, Any]], None]], str | None]
    ) -> None:
        """Run ``work`` (Ansible) in its own thread. Its reports use the same queue as the hosts' replies.

        The program does not exit before the thread ends, but ``run`` does not wait for Ansible's cleanup.
        """

        def launch_hosts() -> None:
            error: str | None = "Ansible ended unexpectedly"
            try:
                error = work(lambda host, event, details: self.heard.put((host, event, details)))
            finally:
                self.heard.put(("", "launch over", (hosts, error)))

        threading.Thread(target=launch_hosts).start()

    def start(self, host: str, work: Callable[[], Mapping[str, Any]]) -> None:
        """Start a job on a host that needs no deployment.

        ``work`` runs in a thread and returns the answer of the host's agent. The answer uses the same queue as the
        host's replies.
        """

        def start_host() -> None:
            answer: Mapping[str, Any] = {"state": "error", "error": "starting its job ended unexpectedly"}
            try:
                if self.leaving:  # the campaign was interrupted while this job waited in the pool
                    answer = {"state": "error", "error": "interrupted before its job was started"}
                else:
                    answer = work()
            finally:
                self.heard.put((host, "launched", answer))

        self.starting.submit(start_host)

    def follow(self, host: str) -> None:
        """Follow a host whose job has started."""
        self.runs[host].phase = "running"
        self.runs[host].expect(STUCK_S, "its agent's first message")

        def listen_to_host() -> None:
            try:
                listen(self.runs[host], self.archive, self.heard, self.patience_s, lambda: self.leaving)
            finally:
                self.heard.put((host, "gone", "its listener ended"))  # has no effect if the host is finished

        threading.Thread(target=listen_to_host, daemon=True).start()

    def follow_all(self) -> None:
        """Collect the remaining results from hosts without starting a job."""
        for host in self.runs:
            self.follow(host)

    def run(self) -> None:
        """Handle replies until every host is finished. On KeyboardInterrupt, the caller must call ``stop``."""
        while any(r.phase != "over" for r in self.runs.values()):
            self._hear()

    def stop(self) -> None:
        """Order every host to end its job cleanly, and store the steps that finish meanwhile."""
        self.leaving = True
        for run in self.runs.values():
            if run.phase == "queued":
                self._over(run, "interrupted before its turn")
            if run.phase == "running":
                self._write(run, order="stop")  # a host that is being launched gets the order when its listener starts
        deadline = time.monotonic() + STOP_S
        while any(r.phase != "over" for r in self.runs.values()) and time.monotonic() < deadline:
            self._hear(1.0)
        self.abandoned = True
        for run in self.runs.values():
            if run.phase != "over":
                self._over(run, "interrupted; its host did not answer in time")

    # ------------------------------------------------------------ ordering

    def _order(self, run: Run, word: Order, step: str) -> None:
        """Send an order about one of the host's own steps.

        If a lost connection drops the order, the host asks again. Repeated orders are harmless.
        """
        run.may_leave(step)
        self._write(run, order=word, step=step)

    def _write(self, run: Run, **words: str) -> None:
        if run.channel and run.phase != "over":
            try:
                run.channel.write(order(**words), ORDER_S)
            except Stalled:  # one host must not block the others
                self._over(run, "it does not read orders")
            except ReachError:
                pass  # the link is down, and the host will ask again

    def _excuse(self, run: Run, word: Order, step: str, reason: str) -> None:
        """Order a host to skip or end a step. The reason is stored in the archive but not sent to the host."""
        run.excuses.setdefault(step, reason)
        self._order(run, word, step)

    # ------------------------------------------------------------ hearing

    def _notice_stuck(self) -> None:
        """End overdue hosts. A host with a hung disk or kernel stays connected but sends nothing."""
        self.progress.report_late()
        self.looked, now = time.monotonic(), self.heard.upto
        left = [run for run in self.runs.values() if run.phase != "over"]
        for run in left:
            if run.overdue(now):
                self._over(run, f"stuck: {run.expected} is overdue")
            elif run.phase == "launching" and now - self.launch_heard > 2 * TASK_TIMEOUT_S:
                self._over(run, f"its job was not started: Ansible reported nothing for {2 * TASK_TIMEOUT_S:g} s")
        if all(run.only_waits() and now - run.waiting_since > STUCK_S for run in left):
            for run in left:
                gate = run.steps[run.waiting or ""].title
                self._over(run, f"stuck: all hosts are waiting for each other, and this host waits at {gate}")

    def _remind(self) -> None:
        """Remind hosts that try a setting that the controller is alive; a connection alone does not prove it."""
        if self.trials and time.monotonic() - self.reminded >= HERE_S:
            self.reminded = time.monotonic()
            for run in self.trials:
                if run.phase == "running":
                    self._write(run, order="here")

    def _hear(self, timeout: float | None = None) -> None:
        self._remind()
        if self.heard.empty():
            self.archive.sync()  # one sync for all replies received meanwhile
        try:
            host, event, details = self.heard.get(timeout=timeout or (HERE_S if self.trials else LOOK_S))
        except queue.Empty:
            self._notice_stuck()
            return
        if time.monotonic() - self.looked > LOOK_S:
            self._notice_stuck()
        if event == "launch over":
            self._launch_over(*details)
            return
        run = self.runs[host]
        if event in ("event", "step"):
            run.room.release()
        if run.phase == "launching":
            self.launch_heard = time.monotonic()
        if run.phase != "over":
            self._heard_of(run, event, details)
        elif event == "step":
            self.archive.discard(details[1])

    def _heard_of(self, run: Run, event: str, details: Any) -> None:
        match event:
            case "event":
                self._on_event(run, details)
            case "step":
                self._on_step(run, *details)
            case "deploying":
                self.progress.deploying(run.host, details["workload"])
            case "launched" | "refused":
                self._answered(run, details)
            case "unreachable":
                self._over(run, str(details["error"]))
            case "silent":
                run.silent()
                self.progress.trouble(run.host, f"does not answer: {details.removeprefix(f'{run.host}: ')}")
            case "back":
                self._back(run)
            case "cleaned":
                self._over(run, "")
            case "gone":
                self._over(run, f"stopped answering: {details.removeprefix(f'{run.host}: ')}")
            case "no reply":
                self._over(run, f"{run.host} sent an invalid reply ({details})")
            case "broken":
                raise details

    def _back(self, run: Run) -> None:
        """Handle a host that answers again: repeat the orders to drop steps, because some may have been lost."""
        run.back()
        self.progress.trouble(run.host, "")
        for step in sorted(run.dropped & set(run.steps)):
            self._order(run, "drop", step)

    def _launch_over(self, hosts: Sequence[str], error: str | None) -> None:
        for run in (self.runs[host] for host in hosts):
            if run.phase == "launching":
                self._over(run, f"its job was not started: {error or 'Ansible gave no reason'}")

    def _answered(self, run: Run, details: Mapping[str, Any]) -> None:
        """Handle the answer of a host's agent, or of Ansible in its place, to the start of its job."""
        try:
            answer = replies.read_launch(details)
        except replies.NoReply as error:
            self._over(run, f"{run.host} sent an invalid reply ({error})")
            return
        if answer.cleared:
            self.archive.note("cleared", host=run.host, what=answer.cleared)
            self.progress.say(run.host, answer.cleared)
        if answer.left:
            self.archive.note("left", host=run.host, what=answer.left)
        if answer.warning:
            self.archive.note("warning", host=run.host, what=answer.warning)
            self.progress.say(run.host, answer.warning)
        if answer.state == "busy":
            self._over(run, _busy(answer.holder or replies.Holder()))
        elif answer.state == "error":
            self._over(run, answer.error or "its job was not started, for an unknown reason")
        else:
            self._launched(run, answer)

    def _launched(self, run: Run, answer: replies.Launch) -> None:
        self.archive.note("launched", host=run.host, sync=False, state=answer.state)
        for workload, reason in answer.failed_workloads.items():
            dropped = [s for s in run.steps.values() if s.workload == workload and s.id in run.pending]
            outcome = Outcome(status=Status.FAILED, reason=f"could not be deployed: {reason}")
            run.cannot[workload] = outcome.reason
            for step in dropped:
                run.pending.discard(step.id)
                self._record(run, step, outcome)
            self._tell_dropped(run, dropped, outcome)
            for step in dropped:
                self.exchanges.meet_all(run.host, step.id)
        if answer.state == "nothing":
            self._over(run, "" if not run.pending else "its agent received no steps to run")
        else:
            self.follow(run.host)

    def _on_event(self, run: Run, event: replies.Event) -> None:
        match event:
            case replies.Waits(step=number) if number in run.dropped or number not in run.pending:
                self._order(run, "drop", number)  # repeat a lost order, or drop a step that need not run
            case replies.Waits(step=number):
                self._stands(run, run.steps[number])
            case replies.Begins(step=number) if number in run.pending:
                step = run.steps[number]
                if run.begins(step) and not step.serves:
                    self.progress.begin(run.host, step)
            case replies.Ready(step=number) if number in run.pending and number != run.ready:
                run.ready = number
                self.exchanges.meet_all(run.host, number)
            case replies.Finished(state=state) if state.startswith("left: "):
                self.archive.note("left", host=run.host, what=state.removeprefix("left: "))
                run.finishes(state)
            case replies.Finished(state=state):
                run.finishes("" if state == "finished" else state)
            case replies.Over(remaining=remaining):
                self._ended_all(run, remaining)

    def _stands(self, run: Run, step: Step) -> None:
        """Handle a host that waits at a gate for other hosts. The other hosts have their own deadlines."""
        run.stands_at(step)
        others = [o for e in self.exchanges.part_of(run.host, step.id) for o in (e.server, e.client) if o != run.host]
        if not step.serves:
            self.progress.waiting(run.host, step.workload, ", ".join(dict.fromkeys(others)))
        self.exchanges.meet_all(run.host, step.id)

    def _ended_all(self, run: Run, remaining: int | None) -> None:
        """Handle a host whose processes have all ended. It is over when it has removed its files."""
        if run.cleaning:  # the link was lost meanwhile
            self._write(run, order="clean")
        elif remaining is None:
            self._over(run, "its work directory was removed while it ran")
        elif remaining:
            self._over(run, run.reason or "its runner ended early (killed, or the host restarted)")
        elif run.pending:
            self._over(run, "its agent reported the end of its job, but did not send all steps")
        else:
            self.archive.sync()  # from now on, the controller has the only copy of the results
            run.cleaning = True
            run.expect(STUCK_S, "the end of its agent")
            self._write(run, order="clean")

    def _on_step(self, run: Run, number: str, part: Path, result: replies.Result) -> None:
        """Store and evaluate a finished step; its files are in ``part``."""
        run.expect(STUCK_S, "its next step")
        if number not in run.pending:  # the step was dropped while it ran
            self.archive.discard(part)
            return
        step = run.steps[number]
        excuse = run.excuses.get(number, "")
        folder = self.archive.save_step(run.host, step.as_json(), part, excuse)
        if step.serves:
            run.pending.discard(step.id)
            self.progress.served(run.host, step.expect_s)
            reason = excuse or result.reason or describe_exit(self.archive, folder, result.rc)
            self.exchanges.server_ended(run, step, reason)
            return
        outcome = self.outcome_of(folder)
        self._ended(run, step, outcome)
        if self.adaptive:
            self._adapt(self.adaptive, run, step, outcome)
        for exchange in self.exchanges.part_of(run.host, step.id):
            if exchange.server in self.runs:
                self._order(self.runs[exchange.server], "cancel", exchange.server_step)

    def _adapt(self, adaptive: Adaptive, run: Run, step: Step, outcome: Outcome) -> None:
        """Drop repeats that are no longer needed. Record disturbed repeats with their reasons in the journal."""
        fields: dict[str, Any] = {"workload": step.workload, "case": step.case, "subject": step.subject}
        for event in adaptive.heard(run.host, step, outcome):
            match event:
                case Rejected(repeat, reason):
                    block: dict[str, Any] = {"workload": step.workload, "subject": step.subject, "repeat": repeat}
                    self.archive.note("rejected", host=run.host, reason=reason, **block)
                    self.progress.say(run.host, f"{step.workload} block {repeat} {reason}")
                case Settled(repeats, width, warm, enough):
                    more = [s for s in run.steps.values() if s.id in run.pending and about_case(s) == about_case(step)]
                    fields |= {
                        "repeats": repeats,
                        "half_width": width,
                        "warm_up": list(warm),
                        "steps": [s.id for s in more],
                    }
                    self.archive.note("enough" if enough else "unstable", host=run.host, **fields)
                    if not enough:
                        self.progress.say(run.host, f"{step.workload} {step.case} unstable after {repeats} repeats")
                    self._drop(run, more)

    def replay(self, archive: Archive) -> None:
        """Pass the outcomes of an earlier run of this campaign to ``adaptive`` in chronological order."""
        if not self.adaptive:
            return
        self.adaptive.remember(archive.journal())
        done = [(self.outcome_of(folder).started, folder, doc) for folder, doc in archive.steps() if not doc["serves"]]
        for started, folder, doc in sorted(done, key=lambda item: item[0]):
            if started and (run := self.runs.get(doc["host"])):  # a damaged step has no time
                self._adapt(self.adaptive, run, Step.from_json(doc), self.outcome_of(folder))

    def _drop(self, run: Run, steps: Sequence[Step]) -> None:
        for step in steps:
            run.dropped.add(step.id)
            run.pending.discard(step.id)
            self._order(run, "drop", step.id)
            for exchange in self.exchanges.part_of(run.host, step.id):
                if other := self.runs.get(exchange.server):
                    other.dropped.add(exchange.server_step)
                    other.pending.discard(exchange.server_step)
                    self._order(other, "drop", exchange.server_step)
                    self.progress.served(other.host, step.expect_s)
        if steps:
            self.progress.enough(run.host, steps[0].workload, len(steps), sum(s.expect_s for s in steps))

    def _ended(self, run: Run, step: Step, outcome: Outcome) -> None:
        """Record a step's outcome in the journal, and show it."""
        run.pending.discard(step.id)
        run.waiting = None
        if step.serves:
            return
        self._record(run, step, outcome)
        self.progress.ended(run.host, step.workload, step.case, outcome.status, outcome.reason, step.expect_s)

    def _record(self, run: Run, step: Step, outcome: Outcome) -> None:
        """Record an outcome in the journal. It is on disk before its host is finished or this process waits again."""
        if not step.serves:
            self.archive.note("outcome", host=run.host, sync=False, **identity(step), **fields_of(outcome))

    def _over(self, run: Run, reason: str) -> None:
        """Finish a host. Its remaining steps are lost, and its peers no longer wait for it."""
        if run.phase == "over":
            return
        run.phase, run.reason = "over", reason
        if run.cleaning and reason:
            remove = f"fleetmark run --resume {self.archive.id} removes them"
            self.progress.say(run.host, f"files of the job may remain in {run.folder} ({reason}); {remove}")
        owed = [run.steps[i] for i in sorted(run.pending)]
        run.pending.clear()
        for step in owed:
            self._record(run, step, Outcome(status=Status.LOST, reason=reason))
        if owed:
            self._tell_dropped(run, owed, Outcome(status=Status.LOST, reason=reason))
            self.progress.rows[run.host].state = reason
        self.archive.note("over", host=run.host, lost=len(owed), reason=reason)
        for host, step_id in self.exchanges.by_step:
            if host == run.host:
                self.exchanges.meet_all(host, step_id)
        if not self.leaving:
            self._admit()

    def _tell_dropped(self, run: Run, steps: Sequence[Step], outcome: Outcome) -> None:
        measuring = [s for s in steps if not s.serves]
        if measuring:
            count = Counter(s.workload for s in measuring)
            expected = sum(s.expect_s for s in steps)
            self.progress.dropped(run.host, count, expected, outcome.status, outcome.reason)


def _busy(holder: replies.Holder) -> str:
    """Describe who holds the lock of a host, and what to do."""
    process = f" ({holder.process})" if holder.process else ""
    if not holder.campaign:
        return f"busy: an unresponsive process{process} holds the host's lock; end it on the host, then resume"
    return (
        f"busy: campaign {holder.campaign} of {holder.owner or '?'} started there at {holder.since or '?'}{process}; "
        "wait for it, or stop it on the machine that started it"
    )


def about_case(step: Step) -> tuple[str, str, str]:
    """Return the key that identifies a case; all its repeats share it."""
    return step.workload, step.case, step.subject


def identity(step: Step) -> dict[str, Any]:
    """Return the keys that identify a step in the journal."""
    return {"workload": step.workload, "case": step.case, "repeat": step.repeat, "subject": step.subject}


def fields_of(outcome: Outcome) -> dict[str, Any]:
    """Return the fields of an outcome for the journal."""
    return {
        "status": outcome.status.value,
        "reason": outcome.reason,
        "started": outcome.started,
        "wall_s": outcome.wall_s,
        "foreign_cores": outcome.foreign_cores,
        "notes": list(outcome.notes),
    }
