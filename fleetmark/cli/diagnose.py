"""Define the commands that evaluate hosts: ``diagnose``, ``history`` and ``gate``."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from fleetmark.base.errors import FleetmarkError
from fleetmark.base.runtime import keep_memory
from fleetmark.base.terminal import Terminal
from fleetmark.cli.common import (
    OK,
    ROOT,
    SOME_FAILED,
    AsFindings,
    FindingsFormat,
    Output,
    RecordedLimit,
    Root,
    interruptible,
    message_console,
)
from fleetmark.cli.reports import BriefFolder, Campaign, Date, Html, Lang, Pdf, Templates, Xlsx
from fleetmark.cli.roots import results


def diagnose(
    campaign: Campaign = "last",
    everything: Annotated[
        bool, typer.Option("--everything", help="Include all metrics, not only the headline metrics.")
    ] = False,
    reference: Annotated[
        str | None, typer.Option(help="Also report slowdowns since this saved reference (NAME or NAME@2).")
    ] = None,
    least: Annotated[
        list[str] | None,
        typer.Option(metavar="[CLASS=]SHARE", help="Ignore smaller losses: 3%, or mem-bw=2%; repeatable."),
    ] = None,
    rules: Annotated[
        Path | None,
        typer.Option(metavar="RULES", help="Also check hosts against these rules, as `fleetmark gate` does."),
    ] = None,
    confirm: Annotated[
        bool, typer.Option("--confirm", help="Repeat the slow benchmarks on suspects and on healthy hosts.")
    ] = False,
    isolate: Annotated[
        str | None, typer.Option(metavar="WORKLOAD/CASE", help="Find the host or link that slows this multi-host case.")
    ] = None,
    border: Annotated[
        str | None,
        typer.Option(help="With --isolate: search only places of this label (default: site to leaf)."),
    ] = None,
    inventory: Annotated[
        list[str] | None,
        typer.Option(
            "--inventory", "-i", help="With --confirm or --isolate: use this inventory instead of the recorded one."
        ),
    ] = None,
    become: Annotated[
        bool, typer.Option("--become", "-b", help="With --confirm or --isolate: become root on the hosts.")
    ] = False,
    html: Html = None,
    pdf: Pdf = None,
    xlsx: Xlsx = None,
    lang: Lang = "en",
    templates: Templates = None,
    date: Date = None,
    root: Root = ROOT,
    output: Output = None,
    brief: BriefFolder = None,
    as_: AsFindings = FindingsFormat.TABLE,
) -> None:
    """Find hosts and links that are slower than their peers, with evidence. Exit status 1 if there are suspects.

    Examples: fleetmark diagnose last; fleetmark diagnose last --confirm; fleetmark diagnose last --isolate iperf3/tcp-1
    """
    with keep_memory():
        from fleetmark.record.campaigns import find
        from fleetmark.record.diagnosis import baselines
        from fleetmark.record.diagnosis.gate import read_rules
        from fleetmark.verbs import diagnose as diagnosing
        from fleetmark.verbs.confirm import Where
        from fleetmark.verbs.documents import documents_of

    if (inventory or become) and not (confirm or isolate):
        option = "--inventory" if inventory else "--become"
        raise FleetmarkError(f"{option} without --confirm or --isolate: only these contact hosts; remove {option}")
    limits = diagnosing.least_losses(least or ())
    command = shlex.join(["fleetmark", *sys.argv[1:]])
    paths = {"html": html, "pdf": pdf, "xlsx": xlsx}
    if isolate is not None:
        others: dict[str, object] = {"--confirm": confirm, "--reference": reference, "--everything": everything}
        others["--rules"] = rules
        others |= {"--brief": brief, "--format openmetrics": as_ is FindingsFormat.OPENMETRICS}
        if other := next((name for name, value in others.items() if value), None):
            raise FleetmarkError(f"{other} with --isolate: --isolate examines one case only; remove {other}")
        documents = documents_of(paths, lang, templates, date, output=output)
        reached = Where(tuple(inventory or ()), become)
        with results(root, campaign=campaign, writes=True) as here:
            healthy = _isolate(find(here, campaign), isolate, border, reached, as_, documents, command, limits)
        raise typer.Exit(OK if healthy else SOME_FAILED)
    connection = Where(tuple(inventory or ()), become) if confirm else None
    with interruptible("no document was written; run the same command to continue"), keep_memory():
        documents = documents_of(paths, lang, templates, date, output=output, brief=brief)
        console = message_console(as_)
        with results(root, campaign=campaign, writes=confirm) as here:
            baseline = baselines.load(here, reference) if reference is not None else None
            question = diagnosing.DiagnosisQuestion(
                archive=find(here, campaign),
                everything=everything,
                against=baseline,
                confirm=connection,
                least=limits,
                rules=read_rules(rules) if rules else None,
                file=str(rules or ""),
            )
            healthy = diagnosing.campaign(question, as_.value, console, documents)
    raise typer.Exit(OK if healthy else SOME_FAILED)


def _isolate(
    archive: Any,
    case: str,
    border: str | None,
    connection: Any,
    as_: FindingsFormat,
    documents: Any,
    command: str,
    limits: Mapping[str, float],
) -> bool:
    from fleetmark.record.diagnosis.isolations import question
    from fleetmark.verbs import isolate as isolating

    console, least = message_console(as_), isolating.least_loss(limits)
    with interruptible("finished runs are stored; run the same command to continue"):
        return isolating.show(
            archive, question(archive, case, border), connection, as_.value, console, documents, command, least
        )


def history(
    metric: Annotated[
        list[str] | None, typer.Option("--metric", "-m", help="A pattern over workload/case/metric: */*/triad.")
    ] = None,
    limit: RecordedLimit = None,
    everything: Annotated[
        bool, typer.Option("--everything", help="Include all metrics, not only the headline metrics.")
    ] = False,
    html: Html = None,
    output: Output = None,
    lang: Lang = "en",
    templates: Templates = None,
    date: Date = None,
    root: Root = ROOT,
    as_: AsFindings = FindingsFormat.TABLE,
) -> None:
    """Show the metrics of hosts over all campaigns, and lasting changes. Exit status 1 if a metric became worse.

    Examples: fleetmark history; fleetmark history -m */*/triad --html history.html
    """
    from fleetmark.verbs import history as telling
    from fleetmark.verbs.documents import documents_of

    with interruptible("no document was written"), keep_memory():
        documents = documents_of({"html": html}, lang, templates, date, output=output)
        command = shlex.join(["fleetmark", *sys.argv[1:]])
        wanted = tuple(metric or ()), limit
        with results(root) as here:
            good = telling.show(here, *wanted, everything, as_.value, command, message_console(as_), documents)
    raise typer.Exit(OK if good else SOME_FAILED)


class GateFormat(StrEnum):
    TABLE = "table"
    JSON = "json"
    MD = "md"
    CSV = "csv"
    JUNIT = "junit"
    PROMETHEUS = "prometheus"
    OPENMETRICS = "openmetrics"


def gate(
    rules: Annotated[Path, typer.Argument(help="A YAML file of rules (docs/how-to/gate.md), or acceptance.")],
    campaign: Campaign = "last",
    limit: RecordedLimit = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", help="Write FILE.html, .pdf, .xlsx, .md or .csv, or output in --format to any other file."
        ),
    ] = None,
    lang: Lang = "en",
    root: Root = ROOT,
    as_: Annotated[
        GateFormat, typer.Option("--format", help="table, md, csv, json, junit, prometheus or openmetrics.")
    ] = GateFormat.TABLE,
) -> None:
    """Check a campaign against acceptance rules. Exit status 1 if a rule is violated or its data is missing.

    Examples: fleetmark gate rules.yml last; fleetmark gate rules.yml --limit n7 --format junit -o gate.xml
    """
    from fleetmark.record.campaigns import find
    from fleetmark.verbs import gate as gating
    from fleetmark.verbs.documents import files

    documents_to_write = files([output] if output is not None and as_.value not in gating.PLAIN else None, lang)
    console = Terminal(stderr=as_ is not GateFormat.TABLE)
    with results(root, campaign=campaign) as here:
        accepted = gating.check(find(here, campaign), rules, limit, as_.value, output, console, documents_to_write)
    raise typer.Exit(OK if accepted else SOME_FAILED)
