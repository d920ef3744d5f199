"""Show the progress of a running campaign: a live table on a terminal, and plain lines elsewhere."""

from __future__ import annotations

import time
from collections import Counter, deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import TracebackType

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from fleetmark.base.measurement import Status
from fleetmark.base.text import count, folded
from fleetmark.hosts.causes import by_cause
from fleetmark.record.steps import Step

MAX_TROUBLES = 6
MAX_FAILURES = 4
MAX_ROWS = 24  # maximum number of table rows; a small terminal has fewer
LEAST_ROWS = 4
LATE, LATE_S = 3.0, 120.0  # a step is late after this multiple of its expected time, but not before this many seconds


@dataclass(slots=True)
class Cell:
    """Track one workload on one host."""

    total: int
    doing: str = ""  # "deploying", or the running case
    ended: Counter[Status] = field(default_factory=Counter)
    skipped: str = ""

    @property
    def done(self) -> int:
        return self.ended.total()

    def text(self) -> Text:
        if self.skipped:
            return Text("skipped", style="dim")
        bad = Text("")
        for status, runs in list(self.ended.items()):
            if status is not Status.PASSED:
                bad.append(f" {runs} {status.value}", style="bold red")
        if self.doing:
            return Text(f"{self.doing} {self.done}/{self.total}", style="cyan") + bad
        if self.done >= self.total:
            passed = self.ended[Status.PASSED]
            return (Text(f"{passed} passed", style="green") if passed else Text("")) + bad
        return Text(f"{self.done}/{self.total}" if self.done else "waiting", style="dim") + bad


@dataclass(slots=True, kw_only=True)
class Row:
    """Track one host: its cells, its problem, and its remaining work."""

    cells: dict[str, Cell]
    left_s: float = 0.0
    state: str = ""  # "silent", "lost", "refused" with its reason; empty when all is well
    queued: bool = False  # whether the host waits for its turn
    step_began: float | None = None
    step: Step | None = None  # the running step
    late_s: float = 0.0  # time after which the running step is reported as late

    @property
    def is_done(self) -> bool:
        return not self.state and all(cell.skipped or cell.done >= cell.total for cell in self.cells.values())

    @property
    def is_at_work(self) -> bool:
        return not (self.state or self.queued or self.is_done)

    def time_left(self) -> float:
        spent = time.monotonic() - self.step_began if self.step_began else 0.0
        return max(0.0, self.left_s - min(spent, self.step.expect_s if self.step else 0.0))


class Progress:
    """Track a campaign by host and workload, and display it on ``console``. Use it as a context manager."""

    def __init__(self, console: Console, workloads: list[str], title: str) -> None:
        self.console, self.workloads, self.title = console, workloads, title
        self.rows: dict[str, Row] = {}
        self._failures: deque[str] = deque(maxlen=MAX_FAILURES)
        self._live: Live | None = None

    def __enter__(self) -> Progress:
        if self.console.is_terminal:
            self._live = Live(console=self.console, get_renderable=self.render, refresh_per_second=2, transient=True)
            self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._live:
            self._live.stop()

    def say(self, host: str, text: str) -> None:
        """Print one plain line, unless there is a live table."""
        if not self._live:
            line = f"{time.strftime('%H:%M:%S')} {_joined(f'{host}: {text}')}"
            self.console.print(Text(line), soft_wrap=True)

    def absent(self, reasons: Mapping[str, str]) -> None:
        """Add hosts that run nothing, and print a line for each cause. ``reasons`` has the reason by host."""
        for host, reason in reasons.items():
            self.add(host, {}, 0.0)
            self.rows[host].state = reason
        for cause, hosts, _ in by_cause(reasons.items()):
            alike = {reasons[host] for host in hosts}
            reason = alike.pop() if len(alike) == 1 else f"unreachable: {cause.title}"
            self.say(", ".join(name for name, _ in folded(hosts)), reason)

    def add(self, host: str, cells: dict[str, Cell], left_s: float) -> None:
        self.rows[host] = Row(cells=cells, left_s=left_s)

    def deploying(self, host: str, workload: str) -> None:
        cell = self.rows[host].cells.get(workload)
        if cell and cell.doing != "deploying":
            cell.doing = "deploying"
            self.say(host, f"deploying {workload}")

    def begin(self, host: str, step: Step) -> None:
        row = self.rows[host]
        for cell in row.cells.values():
            cell.doing = ""
        cell = row.cells[step.workload]
        cell.doing = step.case
        if not cell.done:
            left = duration(row.time_left())
            self.say(host, f"{step.workload}: {count(cell.total, 'run')}, about {left} left on this host")
        row.step_began, row.step = time.monotonic(), step
        row.late_s = max(LATE_S, LATE * step.expect_s)

    def report_late(self) -> None:
        """Print the steps that run far longer than expected, one line for all hosts at the same step.

        The time between lines doubles, so that a step cannot fill the log.
        """
        late: dict[tuple[str, ...], list[str]] = {}
        for host, row in self.rows.items():
            ran_s = time.monotonic() - row.step_began if row.step_began else 0.0
            if not row.step or ran_s < row.late_s or row.state:
                continue
            row.late_s = 2 * ran_s
            step = row.step
            spans = f"{duration(step.expect_s)} were expected, and its time limit is {duration(step.timeout_s)}"
            late.setdefault((step.workload, step.case, duration(ran_s), spans), []).append(host)
        for (workload, case, ran, spans), hosts in late.items():
            names = ", ".join(name for name, _ in folded(hosts))
            self.say(names, f"{workload} {case} is still running after {ran}; {spans}")

    def waiting(self, host: str, workload: str, others: str) -> None:
        """Show that a host waits for ``others``, which it needs for its next run."""
        self.rows[host].cells[workload].doing = f"waits for {others}"

    def served(self, host: str, expect_s: float) -> None:
        """Record that a host served another host's measurement for ``expect_s`` seconds."""
        self.rows[host].left_s = max(0.0, self.rows[host].left_s - expect_s)

    def ended(self, host: str, workload: str, case: str, status: Status, reason: str, expect_s: float) -> None:
        row = self.rows[host]
        cell = row.cells[workload]
        cell.doing = ""
        cell.ended[status] += 1
        self.served(host, expect_s)
        row.step_began = None
        if status is not Status.PASSED:
            self._failures.append(f"{host}: {workload} {case} {status.value}: {reason}")
            self.say(host, f"{workload} {case} {status.value}: {reason}")
        if cell.done == cell.total:
            self._say_counts(host, workload, cell)

    def _say_counts(self, host: str, workload: str, cell: Cell) -> None:
        counts = ", ".join(f"{n} {s.value}" for s, n in cell.ended.items())
        self.say(host, f"{workload}: {counts}")

    def dropped(self, host: str, workloads: Counter[str], expect_s: float, status: Status, reason: str) -> None:
        """Record runs that ended without starting.

        ``workloads`` has their number by workload; ``expect_s`` is their expected duration.
        """
        self.rows[host].left_s = max(0.0, self.rows[host].left_s - expect_s)
        for workload, runs in workloads.items():
            cell = self.rows[host].cells[workload]
            cell.doing = ""
            cell.ended[status] += runs
        left = workloads.total()
        self.say(host, f"{', '.join(workloads)}: {count(left, 'run')} {status.value}: {reason}")

    def enough(self, host: str, workload: str, runs: int, expect_s: float) -> None:
        """Record runs that are no longer needed because the case's interval is narrow enough."""
        cell = self.rows[host].cells[workload]
        cell.total -= runs
        self.served(host, expect_s)
        if cell.done == cell.total:
            self._say_counts(host, workload, cell)

    def trouble(self, host: str, state: str) -> None:
        """Set a host's problem. An empty ``state`` clears it."""
        was, self.rows[host].state = self.rows[host].state, state
        if was != state:
            self.say(host, state or "answers again")

    def render(self) -> RenderableType:
        """Return the live table, followed by the hosts with problems and the latest runs that did not pass.

        If there is not enough room for all hosts, the table shows the slowest working hosts.
        """
        rows = list(self.rows.items())
        below = [*self._troubles(rows), *self._latest()]
        room = max(LEAST_ROWS, min(MAX_ROWS, self.console.size.height - len(below) - 6))
        many = len(rows) > room
        rows.sort(key=lambda item: (not (item[1].is_at_work if many else item[1].state), -item[1].time_left()))
        more = [Text(f"and {count(len(rows) - room, 'more host')}", style="dim")] if many else []
        return Group(*self._headlines(many), self._table(rows[:room]), *more, *below)

    def _table(self, rows: Sequence[tuple[str, Row]]) -> Table:
        table = Table(box=None, pad_edge=False, header_style="bold")
        table.add_column("host", overflow="ellipsis", max_width=28, no_wrap=True)
        for name in self.workloads:
            table.add_column(name, no_wrap=True)
        table.add_column("left", justify="right", no_wrap=True)
        for host, row in rows:
            cells = [row.cells[w].text() if w in row.cells else Text("") for w in self.workloads]
            left = "turn" if row.queued else duration(row.time_left())
            table.add_row(Text(host), *cells, Text(left, style="dim"))
        return table

    def _headlines(self, many: bool) -> list[RenderableType]:
        """Return the finished runs and the remaining time. With ``many``, add the number of hosts by state."""
        rows = list(self.rows.values())
        ended: Counter[Status] = Counter()
        for row in rows:
            for cell in row.cells.values():
                ended.update(cell.ended)
        total = sum(cell.total for row in rows for cell in row.cells.values())
        counts = ", ".join(f"{n:,} {s.value}" for s, n in ended.items())
        counts = f"{ended.total():,} of {count(total, 'run')} ended: {counts}" if counts else "nothing finished yet"
        left = max((row.time_left() for row in rows), default=0.0)
        lines = [f"{self.title}   about {duration(left)} left", counts]
        if many:
            standing = {
                "at work": sum(row.is_at_work for row in rows),
                "waiting for a turn": sum(row.queued for row in rows),
                "in trouble": sum(bool(row.state) for row in rows),
                "done": sum(row.is_done for row in rows),
            }
            lines.append(f"{len(rows):,} hosts: " + ", ".join(f"{n:,} {state}" for state, n in standing.items() if n))
        return [Text(line, style="bold") for line in lines]

    def _troubles(self, rows: Sequence[tuple[str, Row]]) -> list[RenderableType]:
        """Return a line per kind of problem, most frequent first."""
        kinds = by_cause((host, row.state) for host, row in rows if row.state)
        others = [f" and {len(names) - 1:,} more" if len(names) > 1 else "" for _, names, _ in kinds]
        lines = [f"{names[0]}{more}: {reason}" for more, (_, names, reason) in zip(others, kinds, strict=True)]
        return [_line(line) for line in lines[:MAX_TROUBLES]]

    def _latest(self) -> list[RenderableType]:
        return [_line(line) for line in list(self._failures)]


def _line(text: str) -> Text:
    return Text(_joined(text), style="bold red", no_wrap=True, overflow="ellipsis")


def _joined(text: str) -> str:
    """Return ``text`` on one line, so that text from a host cannot start a line. Terminal replaces control codes."""
    return " ".join(text.split())


def duration(seconds: float) -> str:
    """Format a duration, for example 75 seconds as ``1m15s``."""
    total = round(seconds)
    if total < 60:
        return f"{total}s"
    if total < 3600:
        return f"{total // 60}m{total % 60:02d}s"
    return f"{total // 3600}h{total % 3600 // 60:02d}m"
