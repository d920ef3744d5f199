"""Define ``fleetmark plan``, which finds what to buy, where and when."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from fleetmark.base.terminal import Terminal
from fleetmark.cli.common import (
    OK,
    ROOT,
    SOME_FAILED,
    AsDocument,
    DocumentFormat,
    Output,
    Root,
    interruptible,
    message_console,
)
from fleetmark.cli.help import App
from fleetmark.cli.reports import BriefFolder, Date, Html, Lang, Pdf, ReportFormat, Templates, Xlsx
from fleetmark.cli.roots import results

if TYPE_CHECKING:
    from fleetmark.reports.kit.document import Document

app = App(
    default="solve",
    help="Compute purchases from a demand forecast: what to buy, where and when. `fleetmark plan FILE` is "
    "`fleetmark plan solve FILE`.",
    no_args_is_help=True,
)


@app.command()
def solve(
    file: Annotated[
        Path | None, typer.Argument(help="The input: a YAML file, or a folder of CSV sheets (docs/reference/plan.md).")
    ] = None,
    workbook: Annotated[Path | None, typer.Option("--from", help="Read the input from an edited workbook.")] = None,
    scenario: Annotated[
        list[Path] | None,
        typer.Option(help="A YAML file with changed keys; Fleetmark also computes this scenario. Repeatable."),
    ] = None,
    xlsx: Xlsx = None,
    html: Html = None,
    pdf: Pdf = None,
    output: Output = None,
    brief: BriefFolder = None,
    gap: Annotated[
        float, typer.Option(min=0, max=0.5, help="Allowed relative distance of the cost from the lower bound.")
    ] = 0.01,
    seconds: Annotated[
        float,
        typer.Option(
            min=1, help="Time limit of each solve in seconds; the analysis of limits takes a quarter of this time."
        ),
    ] = 60.0,
    draws: Annotated[int, typer.Option(min=100, max=100_000, help="Number of futures to simulate.")] = 2000,
    seed: Annotated[int, typer.Option(min=0, help="Random seed of the simulated futures.")] = 1,
    lang: Lang = "en",
    templates: Templates = None,
    date: Date = None,
    root: Root = ROOT,
    as_: Annotated[ReportFormat, typer.Option("--format", help="table, json or md.")] = ReportFormat.TABLE,
) -> None:
    """Find the cheapest plan that meets demand within all limits, and report its uncertainty.

    Examples: fleetmark plan demand.yml -o plan.xlsx; fleetmark plan --from plan.xlsx; fleetmark plan sheets/
    """
    from fleetmark.verbs import plan as planning
    from fleetmark.verbs.documents import documents_of

    progress = Terminal(stderr=True)
    with interruptible("no document was written"):
        paths = {"html": html, "pdf": pdf, "xlsx": xlsx}
        documents = documents_of(paths, lang, templates, date, output=output, brief=brief)
        with results(root) as here:
            root_path = here
            question = planning.question(file, workbook, here)
            others = {s.stem: planning.question(file, workbook, here, s) for s in scenario or ()}
        effort = planning.Effort(gap, seconds, draws, seed)
        answer = planning.answer(question, effort, progress, others, documents.language)
        provenance = planning.Provenance(documents.date)

        def stamp(document: Document) -> Document:
            if file is None:
                return document
            from fleetmark.verbs.verify.planned import with_manifest

            return with_manifest(
                document, answer, file, scenario or (), effort, provenance.command, root_path, documents
            )

        planning.show(answer, provenance, as_.value, Terminal(), progress, documents, stamp)
    raise typer.Exit(OK if answer.plan else SOME_FAILED)


@app.command()
def review(
    plan: Annotated[Path, typer.Argument(help="The plan file that `fleetmark plan QUESTION -o plan.json` wrote.")],
    delivered: Annotated[
        list[str],
        typer.Option(
            metavar="LOT=CAMPAIGN",
            help="Servers that arrive in a period, and the campaign that measured them: genoa@2027-Q2=last; of one "
            "site genoa@2027-Q2/ams. Instead of a campaign, you can name the delivered lot that represents this "
            "one. Repeatable.",
        ),
    ],
    now: Annotated[
        str | None, typer.Option(help="The first period to plan (default: the first period after the last delivery).")
    ] = None,
    quantile: Annotated[
        float | None,
        typer.Option(
            min=0.5,
            max=0.999,
            help="The share of futures that meet demand (default: as in the plan, divided among its reviews).",
        ),
    ] = None,
    baseline: Annotated[
        str | None,
        typer.Option(
            "--baseline", "-b", help="For worth values given as figures: the machines that define their unit."
        ),
    ] = None,
    class_: Annotated[str | None, typer.Option("--class", help="With --baseline: the class to measure.")] = None,
    benchmark: Annotated[
        str | None, typer.Option(help="With --baseline: the benchmark to measure, instead of a class.")
    ] = None,
    new: Annotated[
        Path | None,
        typer.Option("--new", metavar="FILE.json", help="Write the new plan to this file, for the next review."),
    ] = None,
    html: Html = None,
    pdf: Pdf = None,
    xlsx: Xlsx = None,
    output: Output = None,
    gap: Annotated[
        float, typer.Option(min=0, max=0.5, help="Allowed relative distance of the cost from the lower bound.")
    ] = 0.01,
    seconds: Annotated[float, typer.Option(min=1, help="Time limit of each solve in seconds.")] = 60.0,
    draws: Annotated[int, typer.Option(min=100, max=100_000, help="Number of futures to simulate.")] = 2000,
    seed: Annotated[int, typer.Option(min=0, help="Random seed of the simulated futures.")] = 1,
    lang: Lang = "en",
    templates: Templates = None,
    date: Date = None,
    root: Root = ROOT,
    as_: AsDocument = DocumentFormat.TABLE,
) -> None:
    """Measure delivered servers against the worth that a plan assumed, and plan the remaining periods again.

    Examples: fleetmark plan review plan.json --delivered genoa@2027-Q2=last;
    fleetmark plan review plan.json --delivered genoa@2027-Q2/ams=last --delivered genoa@2027-Q2/fra=genoa@2027-Q2/ams
    """
    from fleetmark.verbs.documents import documents_of
    from fleetmark.verbs.plan import Effort, Provenance
    from fleetmark.verbs.plan import review as reviewing

    with interruptible("no document was written"):
        documents = documents_of({"html": html, "pdf": pdf, "xlsx": xlsx}, lang, templates, date, output=output)
        if new is not None:
            documents_of({"json": new}, lang, templates, date)  # raises an error if a file cannot be written
        with results(root) as here:
            result = reviewing.review(
                plan,
                delivered,
                here,
                Effort(gap, seconds, draws, seed),
                Terminal(stderr=True),
                now=now,
                quantile=quantile,
                measuring=reviewing.Measuring(baseline or "", class_ or "", benchmark or ""),
                spoken=documents.language,
            )
        reviewing.show(result, Provenance(documents.date), as_.value, message_console(as_), documents, new)
    raise typer.Exit(OK if result.is_sound else SOME_FAILED)


@app.command()
def init(
    target: Annotated[
        Path, typer.Argument(help="A YAML file, or a folder for CSV sheets (a name without .yml).")
    ] = Path("demand.yml"),
) -> None:
    """Write a complete example input, which needs no stored results.

    Examples: fleetmark plan init; fleetmark plan init sheets/
    """
    from fleetmark.verbs import plan as planning

    for path in planning.init(target):
        typer.echo(f"wrote {path}")
    typer.echo(f"`fleetmark plan {target}` solves it")
