"""``fleetmark profile``: what a workload is short of."""

from __future__ import annotations

from typing import Annotated

import typer

from fleetmark.base.errors import FleetmarkError
from fleetmark.base.terminal import Terminal
from fleetmark.cli.common import ROOT, AsFormat, Format, Root
from fleetmark.cli.reports import Lang
from fleetmark.cli.roots import results


def profile(
    target: Annotated[str, typer.Option("--target", "-t", help="The workload: a pattern over workload/case/metric.")],
    resource: Annotated[
        list[str], typer.Option("--resource", "-r", help="What it may be short of: mem=stream/*/triad; repeatable.")
    ],
    select: Annotated[str | None, typer.Option(help="Only these machines: gen=*, site=ams; all if unset.")] = None,
    upgrade: Annotated[
        list[str] | None, typer.Option(help="Upgrades and their cost: mem=1.2@800, or cpu=2,mem=1.5@4000.")
    ] = None,
    machine: Annotated[
        list[str] | None, typer.Option("--machine", "-m", help="Predict these machines by their rates: gen=turin.")
    ] = None,
    baseline: Annotated[
        str | None, typer.Option("--baseline", "-b", help="Say what one of --machine is worth in these: gen=icelake.")
    ] = None,
    save: Annotated[str | None, typer.Option(help="Keep the profile under this name; again: its next version.")] = None,
    lang: Lang = "en",
    root: Root = ROOT,
    as_: AsFormat = Format.TABLE,
) -> None:
    """Say what a workload is short of, what more of it gives, and what other machines would do.

    Example: fleetmark profile -t nginx/*/rps -r cpu=spec_cpu2017/*/base_ratio -r mem=stream/*/triad --save web
    """
    from fleetmark.record import profiles as profiling
    from reports.kit.language import language
    from reports.profile import terminal as profile_terminal

    if baseline and not machine:
        raise FleetmarkError(f"--baseline {baseline}: against which machines? Name them by --machine gen=turin")
    offered = profiling.upgrades(upgrade or ())
    with results(root, writes=bool(save)) as here:
        profiled = profiling.profile(here, target, resource, select)
        gains = profiling.gains_of(profiled, offered)
        predictions = [profiling.predict(here, profiled, m, baseline) for m in machine or ()]
        if save:
            profiled = profiling.save(here, save, profiled)
    if as_ is Format.JSON:
        typer.echo(profile_terminal.to_json(profiled, gains, predictions))
    else:
        for part in profile_terminal.show(profiled, gains, predictions, language(lang)):
            Terminal().print(part)
