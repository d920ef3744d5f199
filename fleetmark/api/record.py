"""Open a results root, and read its campaigns, values and figures as frames."""

from __future__ import annotations

import fnmatch
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from functools import cached_property
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, Self

import duckdb
import pandas as pd
import pyarrow as pa

from fleetmark.api.comparison import Comparison
from fleetmark.base import schema
from fleetmark.base.errors import FleetmarkError, leave_out, suggest
from fleetmark.base.measurement import Status
from fleetmark.cli.common import ROOT
from fleetmark.cli.roots import results
from fleetmark.planner.cost import SERVERS
from fleetmark.record.archive import Archive
from fleetmark.record.campaigns import find
from fleetmark.record.compare import Question
from fleetmark.record.figures.hosts import merge_pairs, per_generation, per_host
from fleetmark.record.figures.statement import lowest, rule_of
from fleetmark.record.listing import summaries
from fleetmark.record.machines import machines
from fleetmark.record.select import Machine, choose, distinct_names
from fleetmark.record.values import Values, create_tables, described
from fleetmark.record.values.database import connect
from fleetmark.record.values.engine import in_memory, literal, one_of, quoted
from fleetmark.record.view import read_values, with_scores

By = Literal["host", "pair", "generation"]
Names = str | Iterable[str] | None
_MOST_SHOWN = 8  # names in an error message


def open(root: str | os.PathLike[str] = ROOT) -> Record:
    """Open the results in ``root``, a folder or ``s3://BUCKET/PATH``.

    The default is the folder given by FLEETMARK_RESULTS, or ``fleetmark-results``. A record in an object store is
    first copied to this machine, except raw files. Campaigns that end later appear when the record is opened again.

    Raise FleetmarkError if the folder does not exist or the store cannot be read.
    """
    return Record(root)


class Record:
    """Read the campaigns and imported tables below one results root. ``fleetmark.open`` returns it.

    Damaged parts of a record are skipped with a ``LeftOut`` warning. Close the record, or use it in a ``with``
    statement, to release its database immediately.

    Methods that return values or figures have these filters in common:

    - ``workload``, ``case``, ``metric``: names or shell-style patterns, one or several
    - ``select``: machines by label or fact, as in ``fleetmark compare``: ``gen=genoa``, ``site=ams,cpu.cores>=64``
    - ``campaign``: one campaign by its id, the start of the id, or ``last``; or an imported table (``imports/NAME``)
    """

    def __init__(self, root: str | os.PathLike[str]) -> None:
        self._open = ExitStack()
        self.path = self._open.enter_context(results(Path(root).expanduser()))
        if not self.path.is_dir():
            raise FleetmarkError(f"{root}: no such folder; pass the results folder of `fleetmark run`")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Close the database. The record may still be used; it then opens the database again."""
        self._open.close()
        self.__dict__.pop("_database", None)

    def __repr__(self) -> str:
        return f"<Record of {self.path}>"

    # --- campaigns and hosts -----------------------------------------------------------------------------------------

    def campaigns(self) -> pd.DataFrame:
        """Return a row per campaign, oldest first.

        - ``campaign``: its id; ``created``: a time with zone (UTC); ``suite``; ``hosts``: their number
        - ``passed``, ``failed``, ``invalid``, ``skipped``, ``lost``: the number of runs with this status
        - ``finished``: False if ``fleetmark run --resume`` can continue it
        - ``path``: its folder; ``damaged``: why it cannot be read, or empty
        """
        listed = summaries(self.path)
        columns: dict[str, Any] = {
            "campaign": [s.campaign for s in listed],
            "created": pd.to_datetime([s.created for s in listed], format="ISO8601", utc=True, errors="coerce"),
            "suite": [s.suite for s in listed],
            "hosts": pd.array([s.hosts for s in listed], dtype="Int64"),
            **{status.value: [s.statuses.get(status, 0) for s in listed] for status in Status},
            "finished": [s.finished for s in listed],
            "path": [str(s.path) for s in listed],
            "damaged": [s.damaged or "" for s in listed],
        }
        return pd.DataFrame(columns)

    def hosts(self, *facts: str, select: str | None = None, campaign: str | None = None) -> pd.DataFrame:
        """Return a row per campaign and host with ``campaign``, ``host``, and a column per label.

        ``facts``: further columns, with names as in selectors: ``cpu.model``, ``memory``, ``gpus.name``. Several values
        of a host are one text, separated by commas. A missing value is None.
        """
        chosen = self._chosen(select, campaign)
        columns = [*dict.fromkeys(["campaign", "host", *sorted({name for m in chosen for name in m.labels}), *facts])]
        rows = [[", ".join(values) if (values := m.values(name)) else None for name in columns] for m in chosen]
        return pd.DataFrame(rows, columns=columns, dtype=object)

    @cached_property
    def _machines(self) -> list[Machine]:
        return machines(self.path)

    def _chosen(self, select: str | None, campaign: str | None) -> list[Machine]:
        chosen = self._machines
        if campaign is not None:
            known = {m.campaign for m in chosen}
            name = campaign if campaign in known else find(self.path, campaign).id
            chosen = [m for m in chosen if m.campaign == name]
        return chosen if select is None else choose(chosen, select)

    # --- values ------------------------------------------------------------------------------------------------------

    def values(
        self,
        *,
        workload: Names = None,
        case: Names = None,
        metric: Names = None,
        host: Names = None,
        select: str | None = None,
        campaign: str | None = None,
        status: str | None = Status.PASSED.value,
    ) -> pd.DataFrame:
        """Return a row per measured value, in the order of the campaigns' files.

        The columns are those of ``measurements.parquet``. ``value`` is in the base ``unit``. ``labels`` is JSON.
        ``status``: the status of the values to return; None returns all values, including those of failed and warm-up
        runs.

        Raise FleetmarkError if a filter matches no recorded data.
        """
        filters = {"workload": workload, "case": case, "metric": metric, "host": host}
        chosen, condition = self._filtered(select, campaign, status, filters)
        return chosen.select(condition).astype(schema.PANDAS)

    def arrow(
        self,
        *,
        workload: Names = None,
        case: Names = None,
        metric: Names = None,
        host: Names = None,
        select: str | None = None,
        campaign: str | None = None,
        status: str | None = Status.PASSED.value,
    ) -> pa.Table:
        """Return the same rows as ``values`` as an Arrow table, which takes less memory than a frame."""
        filters = {"workload": workload, "case": case, "metric": metric, "host": host}
        chosen, condition = self._filtered(select, campaign, status, filters)
        return chosen.table(condition)

    def _filtered(
        self, select: str | None, campaign: str | None, status: str | None, filters: Mapping[str, Names]
    ) -> tuple[Values, str]:
        """Return the values of the chosen machines, and the SQL condition for the other filters."""
        values = self._values if select is campaign is None else self._of(self._chosen(select, campaign))
        matched = {
            name: _matching(name, patterns, [str(v) for v in values.distinct(name)[name]])
            for name, patterns in filters.items()
            if patterns is not None
        }
        conditions = [one_of(quoted([name]), matches) for name, matches in matched.items()]
        conditions += [] if status is None else [f"status = {literal(status)}"]
        return values, " and ".join(conditions) or "true"

    @cached_property
    def _values(self) -> Values:
        return Values.together([values for _, values in self._files(self._machines)])

    def _of(self, chosen: Sequence[Machine], names: Mapping[tuple[str, str], str] | None = None) -> Values:
        """Return the values of the ``chosen`` machines. ``names``: the host name to use for each (campaign, host)."""
        hosts: dict[str, dict[str, str]] = {}
        for m in chosen:
            hosts.setdefault(m.campaign, {})[m.host] = m.host if names is None else names[m.campaign, m.host]
        return Values.together([values.under_names(hosts[name]) for name, values in self._files(chosen)])

    def _files(self, chosen: Sequence[Machine]) -> Iterator[tuple[str, Values]]:
        """Yield the campaigns of the ``chosen`` machines with their values. Skip damaged ones with a warning."""
        for name in dict.fromkeys(m.campaign for m in chosen):
            try:
                yield name, read_values(Archive(self.path / name))
            except FleetmarkError as error:
                leave_out(name, error)

    # --- figures -----------------------------------------------------------------------------------------------------

    def figures(
        self,
        by: By = "host",
        *,
        workload: Names = None,
        case: Names = None,
        metric: Names = None,
        select: str | None = None,
        campaign: str | None = None,
    ) -> pd.DataFrame:
        """Return figures, each the centre of several values with its interval, as in reports.

        - ``by="host"``: a row per metric and host, over repeats. Pairs of hosts are merged by the peer's generation.
        - ``by="pair"``: a row per metric and pair of hosts, over repeats; ``subject`` is ``client>server``
        - ``by="generation"``: a row per metric and label ``gen``, over hosts

        The columns are those that identify and describe a metric, ``host`` or ``generation``, and

        - ``n``: the number of values; ``value``: their centre, by ``rule`` (geomean, median, mean)
        - ``lo``, ``hi``: the interval of the centre, NaN for a single value; ``interval``: the kind of interval
        - ``cv``: the coefficient of variation
        - ``over``: repeats, or pairs. For generations instead ``low_host``, ``low``, ``high_host`` and ``high``

        A machine that several campaigns measured counts once. The figures include the scores of a workload's manifest.

        Raise FleetmarkError if a filter matches no recorded data.
        """
        if by not in ("host", "pair", "generation"):
            raise FleetmarkError(f"figures by {by!r}: use 'host', 'pair' or 'generation'")
        chosen = self._chosen(select, campaign)
        names = distinct_names(chosen)
        generation = {names[m.campaign, m.host]: m.labels.get("gen") for m in chosen}
        figures = per_host(with_scores(self._of(chosen, names)))
        if by == "generation":
            frame = per_generation(merge_pairs(figures, generation), generation)
        elif by == "host":
            frame = merge_pairs(figures, generation).frame
        else:
            frame = figures.frame
            frame = frame[frame["subject"].astype(str).str.contains(">", regex=False)]
        for name, patterns in {"workload": workload, "case": case, "metric": metric}.items():
            if patterns is not None:
                frame = frame[frame[name].isin(_matching(name, patterns, map(str, frame[name].unique())))]
        texts = frame.select_dtypes("category").columns
        return frame.astype(dict.fromkeys(texts, object)).reset_index(drop=True)

    # --- SQL ---------------------------------------------------------------------------------------------------------

    def sql(self, query: str, parameters: Sequence[Any] | Mapping[str, Any] | None = None) -> pd.DataFrame:
        """Return the result of a DuckDB ``query`` over all values. ``parameters`` replace its ``?`` or ``$name``.

        - ``host``: ``id``, ``campaign``, ``host``, ``labels`` (JSON; ``labels->>'gen'`` is one of them)
        - ``metric``: ``id``, ``workload``, ``case``, ``metric``, ``subject``, ``labels`` (JSON), ``unit``, ``better``,
          ``class``, ``kind``, ``headline``, ``centre``, ``standing``, ``members``
        - ``value``: ``host_id``, ``metric_id``, ``repeat``, ``value``, ``status``, ``scored``, ``time``,
          ``tool_version``, ``raw``. ``value`` is NULL if the value is not scored, so that averages leave it out.

        Raise FleetmarkError if the query is wrong.
        """
        with self._sql_errors():
            frame: pd.DataFrame = self._database.execute(query, parameters).df()
            return frame

    @cached_property
    def _database(self) -> duckdb.DuckDBPyConnection:
        """Return a separate database for this record, because a query may create tables."""
        database = self._open.enter_context(connect())
        engine = in_memory(database)
        files = list(self._files(self._machines))
        values = Values.together([each for _, each in files])
        place = {name: number for number, (name, each) in enumerate((n, e) for n, e in files if e.sources)}
        hosts = [
            (place[m.campaign], m.host, number, m.campaign, schema.packed(m.labels))
            for number, m in enumerate(self._machines)
            if m.campaign in place
        ]
        with values.opened_in(engine):
            metrics = described(engine, "true")
            rules = [rule_of(*row).value for row in zip(metrics["centre"], metrics["class"], strict=True)]
            metrics = metrics.assign(id=range(len(metrics)), rule=rules, lowest=metrics["kind"].map(lowest))
            columns = ["file", "host", "id", "campaign", "labels"]
            create_tables(engine, pd.DataFrame(hosts, columns=columns), metrics, "true")
        return database

    @contextmanager
    def _sql_errors(self) -> Iterator[None]:
        try:
            yield
        except duckdb.Error as error:
            raise FleetmarkError(f"sql: {' '.join(str(error).split())}") from error

    # --- comparisons -------------------------------------------------------------------------------------------------

    def compare(
        self,
        baseline: str | None,
        *candidates: str,
        reference: str | None = None,
        per: str = "server",
        mix: str | None = None,
        panel: Names = None,
        only: Names = None,
        paired: bool = False,
        by: str | None = None,
        best: bool = False,
        names: Names = None,
        prices: Names = None,
        rates: Names = None,
        watts: Names = None,
        servers: int = SERVERS,
        term: str | None = None,
        energy: str | None = None,
    ) -> Comparison:
        """Return how many baseline machines one candidate machine replaces by class of work, with intervals.

        - ``baseline``, ``candidates``: selectors of machines: ``gen=genoa``, ``site=ams,cpu.cores>=64``
        - ``reference``: a pinned reference (``NAME`` or ``NAME@2``), with None as the baseline
        - ``per``: divide by server, socket, core, thread, gpu, watt or money
        - ``mix``: shares of server-hours (``cpu-int=0.6,disk-iops=0.4``), or the path of a YAML file
        - ``panel``: the benchmarks for the headline results; ``only``: patterns over workload/case/metric
        - ``paired``: both sides are the same hosts, before and after
        - ``by``: what counts as one host: ``host`` or a label; ``best``: use each side's best result
        - ``names``: display names of the sides, the baseline first
        - ``prices``: ``genoa=15500 EUR``; ``rates``: ``USD=0.92 EUR 2026-11-01``; ``watts``: ``genoa=650``
        - ``servers``: how many baseline servers to replace; ``term``: ``4y``; ``energy``: ``0.25 EUR/kWh``

        The options are those of ``fleetmark compare``. Raise FleetmarkError for invalid options, or if a side has no
        data.
        """
        if not candidates:
            raise FleetmarkError("compare: needs a candidate; write compare('gen=icelake', 'gen=genoa')")
        question = Question(
            root=self.path,
            baseline=baseline,
            candidates=candidates,
            reference=reference,
            per=per,
            mix=mix,
            panel=_listed(panel),
            only=_listed(only),
            paired=paired,
            host_label=by,
            best=best,
            names=_listed(names),
            prices=_listed(prices),
            rates=_listed(rates),
            watts=_listed(watts),
            servers=servers,
            term=term,
            energy=energy,
        )
        return Comparison(question)


def _listed(names: Names) -> tuple[str, ...]:
    return () if names is None else (names,) if isinstance(names, str) else tuple(names)


def _matching(column: str, patterns: Names, known: Iterable[str]) -> list[str]:
    """Return the ``known`` names that match any of the ``patterns``.

    Raise FleetmarkError if a pattern matches no name.
    """
    names = sorted(set(known))
    matches: dict[str, None] = {}
    for pattern in _listed(patterns):
        matched = [name for name in names if name == pattern or fnmatch.fnmatchcase(name, pattern)]
        if not matched:
            some = ", ".join(names[:_MOST_SHOWN]) or "none"
            ellipsis = ", …" if len(names) > _MOST_SHOWN else ""
            raise FleetmarkError(
                f"{column} {pattern!r}{suggest(pattern, names)}: not recorded; there are {some}{ellipsis}"
            )
        matches |= dict.fromkeys(matched)
    return list(matches)
