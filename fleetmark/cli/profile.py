"""Define ``fleetmark profile``, which finds the bottleneck of a workload."""

from __future__ import annotations

from typing import Annotated

import typer

from fleetmark.base.errors import FleetmarkError
from fleetmark.cli.common import ROOT, AsDocument, DocumentFormat, Output, RecordedLimit, Root, message_console
from fleetmark.cli.reports import Lang
from fleetmark.cli.roots import results


def profile(
    target: Annotated[str, typer.Option("--target", "-t", help="The workload: a pattern over workload/case/metric.")],
    resource: Annotated[
        list[str],
        typer.Option(
            "--resource", "-r", help="A resource that may limit the workload: mem=stream/*/triad; repeatable."
        ),
    ],
    limit: RecordedLimit = None,
    upgrade: Annotated[
        list[str] | None, typer.Option(help="Upgrades and their costs: mem=1.2@800, or cpu=2,mem=1.5@4000.")
    ] = None,
    machine: Annotated[
        list[str] | None,
        typer.Option("--machine", "-m", help="Predict the workload on these machines from their rates: gen=turin."),
    ] = None,
    baseline: Annotated[
        str | None, typer.Option("--baseline", "-b", help="Compare each --machine with these machines: gen=icelake.")
    ] = None,
    save: Annotated[str | None, typer.Option(help="Save the profile under this name, as its next version.")] = None,
    lang: Lang = "en",
    root: Root = ROOT,
    output: Output = None,
    as_: AsDocument = DocumentFormat.TABLE,
) -> None:
    """Find the bottleneck of a workload, the gain from more of each resource, and its speed on other machines.

    Examples: fleetmark profile -t nginx/*/rps -r cpu=openssl/*/sign;
    fleetmark profile -t nginx/*/rps -r cpu=spec_cpu2017/*/base_ratio -r mem=stream/*/triad --save web
    """
    from fleetmark.record import profiles as profiling
    from fleetmark.reports.profile.document import document
    from fleetmark.verbs import documents

    if baseline and not machine:
        raise FleetmarkError(
            f"--baseline {baseline} without --machine: add the machines to predict, such as --machine gen=turin"
        )
    documents_to_write = documents.files(output, lang)
    offered = profiling.upgrades(upgrade or ())
    with results(root, writes=bool(save)) as here:
        profiled = profiling.profile(here, target, resource, limit)
        gains = profiling.gains_of(profiled, offered)
        predictions = [profiling.predict(here, profiled, m, baseline) for m in machine or ()]
        if save:
            profiled = profiling.save(here, save, profiled)
    documents.show(document(profiled, gains, predictions), as_.value, message_console(as_), documents_to_write)
