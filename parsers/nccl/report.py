"""Turn runs of collective benchmarks into measurements: which runs count, and under which names."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from fleetmark.base.measurement import Measurement, Parsed
from fleetmark.parsers.nccl.checks import disagreements
from fleetmark.parsers.nccl.model import METRICS, Row, Run

_MOST_REMARKS = 5  # maximum notes about one run
_MOST_NOTES = 100
_GB = 1e9
_RANK = re.compile(r"[0-9]{1,9}")  # marks of a launcher; other marks may be any word


@dataclass(slots=True)
class Report:
    """Turn runs of ``tool`` into measurements and notes."""

    tool: str
    unnamed: str = ""  # the case of a run of an unknown collective
    notes: list[str] = field(default_factory=list)
    _before: dict[str, tuple[int, set[tuple[object, ...]]]] = field(
        default_factory=dict
    )  # runs of a case, and their points

    def case(self, run: Run) -> str:
        return "-".join(name for name in (run.family, run.case) if name) or self.unnamed

    def parsed(self, runs: Sequence[Run], named: str | None = None) -> Parsed | None:
        """Return the measurements of ``runs``; None if there are none.

        ``named``: the collective of runs that do not name one.
        """
        for run in runs:
            _settle(run)
        runs = self._without_copies(self._of_one_process(runs))
        some = [run for run in runs if any(row.size and row.points for row in run.rows)]
        for run in some:
            self._name(run, named)
        wrong = {id(run): run.wrong() or run.unended() for run in some}
        cut = self._cut(runs)
        good = [run for run in some if not wrong[id(run)]]
        used = [run for run in some if run is cut or not wrong[id(run)]] or some
        mixed = max((run.line for run in runs if run.mixed), default=0)
        for run in runs:
            # An empty run may be only the heading printed by another process if the output of several is mixed.
            if id(run) not in wrong and (run.failure or run.line > mixed):
                self._note(run, f"left out: no rows of results{_reason(run) or run.progress}")
            elif good and wrong.get(id(run)) and run is not cut:
                self._note(run, f"left out: {wrong[id(run)]}")
        measurements = [m for run in used for m in self._measure(run)]
        if not measurements:
            return None
        invalid = None if good else "; ".join(f"{self.case(run)}: {wrong[id(run)]}" for run in used[:3])
        if cut is not None:
            invalid = f"the output is cut: {self.case(cut)}: {cut.unended()}"
        notes = list(dict.fromkeys(self.notes))
        if len(notes) > _MOST_NOTES:
            notes[_MOST_NOTES:] = [f"{len(notes) - _MOST_NOTES} more notes"]
        return Parsed(self.tool, tuple(measurements), _version(used), invalid, tuple(notes))

    def _cut(self, runs: Sequence[Run]) -> Run | None:
        """Return the last test if the text ends before the test does.

        An earlier test that stopped has merely failed.
        """
        last = max(runs, key=lambda run: (run.last, run.line), default=None)
        return last if last is not None and last.unended() and not (last.rows and last.wrong()) else None

    def _note(self, run: Run, text: str) -> None:
        self.notes.append(f"{self.case(run)}: {text}")

    def _name(self, run: Run, named: str | None) -> None:
        run.case = run.case or named
        if run.case is None and (inferred := run.infer()):
            run.case = inferred
            self._note(run, "the text does not name the collective; its columns and figures fit this one alone")

    def _of_one_process(self, runs: Sequence[Run]) -> Sequence[Run]:
        """Return the runs of the first process if several printed side by side, and all runs that stand alone.

        The ranks of one launcher may not be printed side by side, because their output can arrive in blocks.
        """
        order = {source: i for i, source in enumerate(sorted({run.source for run in runs}, key=_natural))}
        if len(order) < 2:
            return runs
        printing = {run.source for run in runs if run.rows}
        first = next((source for source in order if source in printing), None)
        selected: list[Run] = []
        tables: list[Run] = []
        for run in sorted(runs, key=lambda run: (order[run.source], run.line)):
            if not run.rows:
                if first is None or run.source == first or run.failure:
                    selected.append(run)
                continue
            neighbours = [k for k in tables if k.source != run.source and (k.is_beside(run) or _ranks(k, run))]
            if not neighbours:
                selected.append(run)
                tables.append(run)
                continue
            printed = {row.printed for k in neighbours for row in k.rows}
            if all(row.printed in printed for row in run.rows):
                self.notes.append("several processes printed the same table: it is read once")
            elif _ranks(run):
                for k in neighbours:
                    k.mixed = max(k.mixed, 1) + 1
            else:
                self.notes.append(f"what {run.source!r} measured beside {neighbours[0].source!r} is left out")
        return sorted(selected, key=lambda run: run.line)

    def _without_copies(self, runs: Sequence[Run]) -> list[Run]:
        """Return ``runs`` without duplicate rows and duplicate runs."""
        seen: set[tuple[object, ...]] = set()
        unique = []
        for run in runs:
            new: dict[tuple[object, ...], Row] = {}
            rows = []
            for row in run.rows:
                key = (run.case, *row.printed)
                if not row.size:
                    rows.append(row)
                elif key not in seen and key not in new:
                    new[key] = row
                    rows.append(row)
            copied = len(run.rows) - len(rows)
            seen |= new.keys()
            if copied and not new:
                self._note(run, "a test that is printed twice is read once")
                continue
            if copied:
                self._note(run, f"{copied} rows that are printed twice are read once")
            run.rows = rows
            unique.append(run)
        return unique

    def _measure(self, run: Run) -> Iterator[Measurement]:
        case, single = self.case(run), _single(run)
        self._remark(run)
        self.notes += [f"{case}: {text}" for text in disagreements(run, single)]
        earlier, again = self._before.get(case, (0, set()))
        if earlier == 1:
            self.notes.append(f"{case}: run several times; what a later run measures again has the label run")
        later = {"run": str(earlier + 1)} if earlier else {}
        cycles: Counter[tuple[object, ...]] = Counter()
        for row, point in run.points():
            if not row.size:
                continue
            key = (*sorted(row.name.items()), point.place)
            cycles[key] += 1
            labels = row.name | ({"place": point.place} if point.place else {}) | (later if key in again else {})
            if cycles[key] > 1:  # after a whole sweep (-N), or when processes are mixed
                labels["cycle"] = str(cycles[key])
            for metric, figure in point.figures.items():
                if not (metric == "busbw" and single):
                    yield self._one(case, metric, figure.value, labels)
        if any(times > 1 for times in cycles.values()):
            self.notes.append(f"{case}: sizes are measured several times; from the second on they have the label cycle")
        self._before[case] = (earlier + 1, again | cycles.keys())
        yield from self._summary(run, case, later, single)

    def _summary(self, run: Run, case: str, later: dict[str, str], single: bool) -> Iterator[Measurement]:
        if run.average and not single:
            yield self._one(case, "avg_busbw", run.average.value, later)
        for place in ("out", "", "in"):
            rates = [
                p.figures["busbw"].value
                for r, p in run.points()
                if r.size and p.place == place and "busbw" in p.figures
            ]
            if rates and not single:
                yield self._one(case, "peak_busbw", max(rates), later | ({"place": place} if place == "in" else {}))
            if rates:
                break
        if run.mixed:
            return  # the device list belongs to several processes that each ran alone
        if run.ranks:
            yield self._one(case, "ranks", run.ranks, later)
            nodes = f" on {run.nodes} node{'s' * (run.nodes != 1)}" if run.nodes else ""
            if run.derived_ranks:
                self.notes.append(f"{case}: ranks and nodes are derived from the device list: {run.ranks}{nodes}")
        if run.nodes:
            yield self._one(case, "nodes", run.nodes, later)

    def _one(self, case: str, metric: str, value: float, labels: dict[str, str]) -> Measurement:
        unit, better = METRICS.get(metric) or METRICS["time"]
        return Measurement(self.tool, case, metric, value, unit, better=better, labels=labels)

    def _remark(self, run: Run) -> None:
        """Add remarks on a used run to its figures."""
        empty = sum(not row.size for row in run.rows)
        texts = [*run.damaged, *_few(dict.fromkeys(run.notes))]
        if empty:
            texts.append(f"{empty} rows of size 0 are left out: too small to share among the ranks")
        if missing := run.unended():
            texts.append(missing)
        elif run.average is None and run.expects_average:
            texts.append("no 'Avg bus bandwidth' figure")
        if run.average_failed:
            texts.append("the average bus bandwidth is below the requested minimum")
        if _unchecked(run):
            texts.append("the results were not checked (validation off)")
        if _single(run):
            texts.append("one rank: the bus bandwidth has no meaning and is omitted")
        if run.groups > 1:
            texts.append(f"{run.groups} groups of ranks ran at the same time")
        if run.devices and run.ranks is None:
            texts.append("the device list is incomplete: ranks and nodes are unknown")
        if len(set(run.versions)) > 1:
            texts.append(f"the processes use different libraries: {', '.join(sorted(set(run.versions)))}")
        self.notes += [f"{self.case(run)}: {text}" for text in texts]


def _settle(run: Run) -> None:
    """Check whether several processes printed into one run, after all of it has been read."""
    averages = sum(kind == "average" for kind, *_ in run.summaries)
    names = [tuple(row.name.items()) for row in run.rows]
    if run.doubled or (averages > 1 and len(set(names)) < len(names)):
        run.mixed = max(run.doubled, averages, run.mixed)


def _natural(source: str) -> tuple[bool, int, str]:
    """Return the sort key of a prefix: none first, then ranks as numbers, then names."""
    return (True, int(source), "") if _RANK.fullmatch(source) else (bool(source), 10**9, source)


def _ranks(*runs: Run) -> bool:
    """Return whether these runs have a launcher's rank prefixes."""
    return all(_RANK.fullmatch(run.source) for run in runs)


def _single(run: Run) -> bool:
    """Return whether one rank ran alone, according to the device list or to a busbw of 0 although data moved."""
    if run.ranks is not None:
        return run.ranks == 1
    pairs = [(p.figures.get("algbw"), p.figures.get("busbw")) for _, p in run.points()]
    return any(a and b and a.value > 0.1 * _GB for a, b in pairs) and not any(b and b.value for _, b in pairs)


def _unchecked(run: Run) -> bool:
    checks = [p.wrong for _, p in run.points() if p.wrong is not None]
    return run.validation == 0 or (bool(checks) and all(check == "N/A" for check in checks))


def _reason(run: Run) -> str:
    if run.failure:
        return f": {run.failure[1]}"
    return f": {run.cut}" if run.cut else ""


def _few(texts: Iterable[str]) -> list[str]:
    remarks = list(texts)
    more = len(remarks) - _MOST_REMARKS
    return [*remarks[:_MOST_REMARKS], f"{more} more remarks of the kind"] if more > 1 else remarks


def _version(used: Sequence[Run]) -> str | None:
    for run in used:
        library = run.library or (run.versions[0] if run.versions else None)
        if run.version:
            return f"{run.version} ({library})" if library else run.version
        if library:
            return library
    return None
