"""``fleetmark diagnose --isolate``: which host, link or border makes pairs slow, by a few more runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import typer
import yaml
from rich.console import Console

from fleetmark.base.files import write_atomic
from fleetmark.base.text import count
from fleetmark.campaign import run as campaign
from fleetmark.campaign.scheduled import request_of
from fleetmark.record.archive import Archive
from fleetmark.record.diagnosis import isolations
from fleetmark.record.diagnosis.isolations import Isolated, Question
from fleetmark.verbs.confirm import Where, options_of
from planner.diagnosis.outliers import LARGE
from planner.diagnosis.partners import Pair, isolate
from reports.diagnosis import isolation
from reports.kit.language import language

SLOW = 2 * LARGE  # the share that makes a pair slow, as in a diagnosis of links


def show(archive: Archive, question: Question, where: Where, form: str, lang: str, console: Console) -> bool:
    """Find who makes a campaign's pairs slow, and show it as ``form`` (table, json or md). Whether nobody does.

    What an earlier call ran is not run again, and a campaign that it began goes on. Raises KeyboardInterrupt where the
    user interrupts one.
    """
    spoken = language(lang)
    asked = _Runs(archive, question, where, console)
    suspicion = isolate(
        isolations.rates(archive, question),
        asked.alone,
        asked.together,
        deficit=SLOW,
        noise=isolations.noise(archive, question),
        labels=isolations.labels(archive, question.label),
    )
    result = Isolated(archive.id, question, suspicion, tuple(asked.campaigns))
    if form == "json":
        typer.echo(isolation.as_json(result))
    elif form == "md":
        typer.echo(isolation.markdown(result, spoken), nl=False)
    else:
        for part in isolation.table(result, spoken):
            console.print(part)
    return not suspicion.faults


class _Runs:
    """Runs single hosts and pairs, a campaign each time; its name in ``campaigns``."""

    def __init__(self, archive: Archive, question: Question, where: Where, console: Console) -> None:
        self.archive, self.question, self.where, self.console = archive, question, where, console
        self.campaigns: list[str] = []

    def alone(self, hosts: Sequence[str]) -> Mapping[str, float]:
        """Each host over its own loopback."""
        return isolations.alone(self._measured([(h,) for h in hosts]), self.question)

    def together(self, pairs: Sequence[Pair]) -> Mapping[Pair, float]:
        """Each pair in both directions."""
        return isolations.rates(self._measured([tuple(sorted(p)) for p in pairs]), self.question)

    def _measured(self, groups: Sequence[tuple[str, ...]]) -> Archive:
        root = self.archive.path / isolations.FOLDER
        suite = isolations.suite(self.archive, self.question, groups)
        begun = isolations.before(self.archive, suite)
        hosts = tuple(dict.fromkeys(host for group in groups for host in group))
        interrupted = False
        if begun is None:
            how = "by themselves" if len(groups[0]) == 1 else "in pairs"
            self.console.print(f"measuring again {how}: {count(len(hosts), 'host')}", soft_wrap=True)
            options = replace(self._options(hosts, root), suite=str(_written(root, suite, len(groups[0]))))
            archive, interrupted = campaign.run(options, self.console)
        else:
            archive, finished = begun
            if not finished:
                interrupted = campaign.resume(archive, self._options((), root), self.console)
        if interrupted:
            raise KeyboardInterrupt
        self.campaigns.append(str(Path(isolations.FOLDER) / archive.id))
        return archive

    def _options(self, hosts: tuple[str, ...], root: Path) -> campaign.Options:
        return replace(options_of(request_of(self.archive), self.where, hosts), root=root)


def _written(root: Path, suite: Mapping[str, object], size: int) -> Path:
    """The suite as a file, which the campaign's command line names."""
    root.mkdir(mode=0o700, parents=True, exist_ok=True)
    path = root / ("alone.yml" if size == 1 else "pairs.yml")
    write_atomic(path, yaml.safe_dump(dict(suite), sort_keys=False, allow_unicode=True))
    return path
