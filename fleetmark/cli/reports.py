"""Define ``fleetmark report`` and ``fleetmark compare``, which show campaigns and comparisons or write documents."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from fleetmark.base.runtime import keep_memory
from fleetmark.base.terminal import Terminal
from fleetmark.cli.common import ROOT, Output, Root, interruptible
from fleetmark.cli.roots import results

Html = Annotated[Path | None, typer.Option("--html", help="Write a self-contained HTML page.")]
Pdf = Annotated[Path | None, typer.Option("--pdf", help="Write a PDF.")]
Xlsx = Annotated[Path | None, typer.Option("--xlsx", help="Write an Excel workbook with live formulas.")]
Lang = Annotated[str, typer.Option("--lang", help="The language of the terminal and of documents: en, zh-CN.")]
Templates = Annotated[
    Path | None,
    typer.Option("--templates", help="A folder with your own logo.svg, colours.css, extra.html.j2 or templates."),
]
Date = Annotated[
    str | None,
    typer.Option(
        "--date", help="The date in the document: 2026-11-21 (default: SOURCE_DATE_EPOCH, or the current time)."
    ),
]
BriefFolder = Annotated[
    Path | None,
    typer.Option(
        "--brief", metavar="DIR", help="Write a one-page summary, a slide (PDF) and their parts (SVG) to DIR."
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
        bool, typer.Option("--raw", help="With --xlsx: include all values that passed, without a limit.")
    ] = False,
    root: Root = ROOT,
    as_: Annotated[CompareFormat, typer.Option("--format", help="table, json, csv or md.")] = CompareFormat.TABLE,
) -> None:
    """Show the summary of a campaign, and write reports in other formats.

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
        typer.Option(
            "--candidate", "-c", help="The machines of a candidate: gen=genoa; site=ams,cpu.cores>=64; repeatable."
        ),
    ],
    baseline: Annotated[str | None, typer.Option("--baseline", "-b", help="The machines to compare with.")] = None,
    reference: Annotated[
        str | None, typer.Option(help="Compare with a saved reference (NAME, or NAME@2) instead of a baseline.")
    ] = None,
    per: Annotated[str, typer.Option(help="Divide by server, socket, core, thread, gpu, watt or money.")] = "server",
    mix: Annotated[
        str | None, typer.Option(help="Work mix, shares of server-hours: cpu-int=0.6,disk-iops=0.4 or a YAML file.")
    ] = None,
    panel: Annotated[
        list[str] | None,
        typer.Option(help="The benchmarks in headline ratios: titles, parts of titles or patterns; repeatable."),
    ] = None,
    only: Annotated[
        list[str] | None,
        typer.Option(
            help="Compare only these metrics, including metrics that are not headlines: patterns over "
            "workload/case/metric."
        ),
    ] = None,
    paired: Annotated[bool, typer.Option("--paired", help="Both sides are the same hosts, before and after.")] = False,
    by: Annotated[
        str | None,
        typer.Option(help="Label whose values count as one host (default: host; for published tables, the publisher)."),
    ] = None,
    name: Annotated[
        list[str] | None,
        typer.Option("--name", help="The name of a side: first the baseline, then each candidate; repeatable."),
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
    replace: Annotated[int, typer.Option("--replace", help="Number of baseline servers to replace, for costs.")] = 100,
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
    """Compute how many baseline machines one candidate replaces, for each class of work, with intervals.

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
