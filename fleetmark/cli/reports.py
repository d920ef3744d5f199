"""``fleetmark report`` and ``fleetmark compare``: campaigns and comparisons, in the terminal and as documents."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from fleetmark.base.runtime import keep_memory
from fleetmark.base.terminal import Terminal
from fleetmark.cli.common import ROOT, Output, Root, interruptible
from fleetmark.cli.roots import results

Html = Annotated[Path | None, typer.Option("--html", help="Write one page that needs nothing else.")]
Pdf = Annotated[Path | None, typer.Option("--pdf", help="Write it for paper.")]
Xlsx = Annotated[Path | None, typer.Option("--xlsx", help="Write a workbook to go on with.")]
Lang = Annotated[str, typer.Option("--lang", help="The language of the terminal and of documents: en, zh-CN.")]
Templates = Annotated[
    Path | None,
    typer.Option("--templates", help="A folder with your logo.svg, colours.css, extra.html.j2, templates."),
]
Date = Annotated[str | None, typer.Option("--date", help="The date to print: 2026-11-21; else SOURCE_DATE_EPOCH, now.")]
BriefFolder = Annotated[
    Path | None,
    typer.Option(
        "--brief", metavar="DIR", help="Write the answer on an A4 page and a slide (PDF), and as SVG parts, into DIR."
    ),
]
Campaign = Annotated[str, typer.Argument(help="A campaign: its id, the beginning of one, a path, or last.")]
_NOTHING = "no document was written"


class ReportFormat(StrEnum):
    TABLE = "table"
    JSON = "json"
    MD = "md"


class ListFormat(StrEnum):
    TABLE = "table"
    JSON = "json"


class CompareFormat(StrEnum):
    TABLE = "table"
    JSON = "json"
    CSV = "csv"
    MD = "md"


def report(
    campaign: Campaign = "last",
    html: Html = None,
    pdf: Pdf = None,
    xlsx: Xlsx = None,
    output: Output = None,
    brief: BriefFolder = None,
    lang: Lang = "en",
    templates: Templates = None,
    date: Date = None,
    appendix: Annotated[bool, typer.Option("--appendix", help="With --pdf: all metrics, plots and failures.")] = False,
    raw: Annotated[
        bool, typer.Option("--raw", help="With --xlsx: every value that passed, however many there are.")
    ] = False,
    root: Root = ROOT,
    as_: Annotated[CompareFormat, typer.Option("--format", help="table, json, csv or md.")] = CompareFormat.TABLE,
) -> None:
    """Show a campaign's summary, and write its page or the documents that options name.

    Examples: fleetmark report last; fleetmark report last -o report.pdf -o report.xlsx --lang zh-CN;
    fleetmark report last --brief summary
    """
    with interruptible(_NOTHING), keep_memory():
        from fleetmark.record.campaigns import find
        from fleetmark.verbs import report as reporting
        from fleetmark.verbs.documents import documents_of

        documents = documents_of(
            {"html": html, "pdf": pdf, "xlsx": xlsx}, lang, templates, date, appendix, raw, output, brief=brief
        )
        console = Terminal(stderr=as_ is not CompareFormat.TABLE)
        with results(root, campaign=campaign) as here:
            reporting.campaign(find(here, campaign), as_.value, console, documents)


def compare(
    candidate: Annotated[
        list[str],
        typer.Option("--candidate", "-c", help="Which machines: gen=genoa; site=ams,cpu.cores>=64; repeatable."),
    ],
    baseline: Annotated[str | None, typer.Option("--baseline", "-b", help="The machines to compare with.")] = None,
    reference: Annotated[
        str | None, typer.Option(help="Against a pinned reference (NAME, or NAME@2) instead of a baseline.")
    ] = None,
    per: Annotated[str, typer.Option(help="Divide by server, socket, core, thread, gpu, watt or money.")] = "server",
    mix: Annotated[
        str | None, typer.Option(help="Work mix, shares of server-hours: cpu-int=0.6,disk-iops=0.4 or a YAML file.")
    ] = None,
    panel: Annotated[
        list[str] | None,
        typer.Option(help="The benchmarks that headlines are over: titles, parts of them or patterns; repeatable."),
    ] = None,
    only: Annotated[
        list[str] | None, typer.Option(help="Only these, headlines or not: patterns over workload/case/metric.")
    ] = None,
    paired: Annotated[bool, typer.Option("--paired", help="Both sides are the same hosts, before and after.")] = False,
    by: Annotated[
        str | None,
        typer.Option(help="What counts as one host: host, or a label. Of published tables: who published."),
    ] = None,
    name: Annotated[
        list[str] | None,
        typer.Option("--name", help="What a side is called: first the baseline, then each candidate; repeatable."),
    ] = None,
    price: Annotated[
        list[str] | None,
        typer.Option(
            "--price", help="A side's server price: genoa=15500 EUR 2026-11-01; h200=4.20 USD/hour; repeatable."
        ),
    ] = None,
    rate: Annotated[
        list[str] | None,
        typer.Option("--rate", help="A dated exchange rate: 'USD=0.92 EUR 2026-11-01'; repeatable."),
    ] = None,
    watts: Annotated[
        list[str] | None, typer.Option("--watts", help="The power of a side's server in W: genoa=650; repeatable.")
    ] = None,
    replace: Annotated[int, typer.Option("--replace", help="How many baseline servers to replace, for costs.")] = 100,
    term: Annotated[
        str | None, typer.Option("--term", help="Years of service, for costs per year: 4y or 36 months.")
    ] = None,
    energy: Annotated[
        str | None, typer.Option("--energy", help="The price of energy, with --term: '0.25 EUR/kWh'.")
    ] = None,
    best: Annotated[bool, typer.Option("--best", help="Use each side's best result per benchmark.")] = False,
    html: Html = None,
    pdf: Pdf = None,
    xlsx: Xlsx = None,
    output: Output = None,
    brief: BriefFolder = None,
    lang: Lang = "en",
    templates: Templates = None,
    date: Date = None,
    appendix: Annotated[bool, typer.Option("--appendix", help="With --pdf: all metrics and plots.")] = False,
    root: Root = ROOT,
    as_: Annotated[CompareFormat, typer.Option("--format", help="table, json, csv or md.")] = CompareFormat.TABLE,
) -> None:
    """Say how many baseline machines one candidate is worth, for which work, and how sure that is.

    Examples: fleetmark compare --baseline gen=icelake --candidate gen=genoa --per core;
    fleetmark compare -b gen=icelake -c gen=genoa -o genoa.html -o genoa.pdf -o genoa.xlsx;
    fleetmark compare -b gen=icelake -c gen=genoa --brief genoa
    """
    with interruptible(_NOTHING), keep_memory():
        from fleetmark.record.compare import Question
        from fleetmark.verbs import report as reporting
        from fleetmark.verbs.documents import documents_of

        documents = documents_of(
            {"html": html, "pdf": pdf, "xlsx": xlsx}, lang, templates, date, appendix, output=output, brief=brief
        )
        with results(root) as here:
            question = Question(
                root=here,
                baseline=baseline,
                candidates=candidate,
                reference=reference,
                per=per,
                mix=mix,
                panel=tuple(panel or ()),
                only=tuple(only or ()),
                paired=paired,
                host_label=by,
                best=best,
                names=tuple(name or ()),
                prices=tuple(price or ()),
                rates=tuple(rate or ()),
                watts=tuple(watts or ()),
                servers=replace,
                term=term,
                energy=energy,
            )
            reporting.comparison(question, as_.value, Terminal(stderr=as_ is not CompareFormat.TABLE), documents)
