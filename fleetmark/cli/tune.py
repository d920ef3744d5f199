"""Define ``fleetmark tune``, which recommends settings, or tries, measures and restores the setting of a rule."""

from __future__ import annotations

from typing import Annotated

import typer

from fleetmark.base.errors import FleetmarkError
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
from fleetmark.cli.reports import Lang
from fleetmark.cli.roots import results


def tune(
    host: Annotated[str | None, typer.Argument(help="A host of the campaign (default: all).")] = None,
    rule: Annotated[str | None, typer.Argument(help="The name of a rule, as in `fleetmark tune --list`.")] = None,
    try_: Annotated[
        bool,
        typer.Option(
            "--try", help="Apply the setting, measure alternately with and without it, and restore the old value."
        ),
    ] = False,
    list_: Annotated[
        bool, typer.Option("--list", help="List all rules, and whether you can use --try with them.")
    ] = False,
    to: Annotated[str | None, typer.Option(help="A value that overrides the value of the rule.")] = None,
    on: Annotated[str | None, typer.Option(help="Only this interface or disk.")] = None,
    case: Annotated[
        list[str] | None,
        typer.Option(metavar="WORKLOAD/CASE", help="The case to measure (default: chosen by the rule)."),
    ] = None,
    blocks: Annotated[
        int, typer.Option(min=2, max=1000, help="Number of pairs of measurements without and with the setting.")
    ] = 6,
    campaign: Annotated[str, typer.Option("--campaign", help="The campaign that measured the hosts.")] = "last",
    inventory: Annotated[
        list[str] | None, typer.Option("--inventory", "-i", help="Use this inventory instead of the campaign's.")
    ] = None,
    become: Annotated[bool, typer.Option("--become", "-b", help="Become root on the host; required by --try.")] = False,
    lang: Lang = "en",
    root: Root = ROOT,
    output: Output = None,
    as_: AsDocument = DocumentFormat.TABLE,
) -> None:
    """Recommend settings for hosts. With a rule and --try: apply the setting, measure its effect, and restore it.

    Nothing is changed without --try.

    Examples: fleetmark tune; fleetmark tune n7; fleetmark tune n7 governor; fleetmark tune n7 governor --try -b
    """
    from fleetmark.record.campaigns import find
    from fleetmark.verbs import tune as trying
    from fleetmark.verbs.confirm import Where
    from fleetmark.verbs.documents import files

    _refuse(host, rule, try_, list_, become, {"--to": to, "--on": on, "--case": case})
    shown = as_.value, message_console(as_), files(output, lang)
    if list_:
        trying.rules(*shown)
        raise typer.Exit(OK)
    with results(root, campaign=campaign, writes=try_) as here:
        archive = find(here, campaign)
        if host is None:
            trying.advice(archive, *shown)
            raise typer.Exit(OK)
        if rule is None:
            trying.of_host(archive, host, *shown)
            raise typer.Exit(OK)
        question = trying.TrialQuestion(
            host=host,
            rule=rule,
            value=to,
            device=on,
            cases=tuple(case or ()),
            blocks=blocks,
            connection=Where(tuple(inventory or ()), become),
        )
        if not try_:
            trying.preview(archive, question, *shown)
            raise typer.Exit(OK)
        with interruptible("the setting is restored and finished runs are stored; run the same command to continue"):
            good = trying.attempt(archive, question, *shown)
    raise typer.Exit(OK if good else SOME_FAILED)


def _refuse(
    host: str | None, rule: str | None, try_: bool, list_: bool, become: bool, of_rule: dict[str, object]
) -> None:
    """Raise FleetmarkError if options are missing or contradict each other."""
    if list_:
        if host or try_:
            raise FleetmarkError("--list shows all rules; remove the host and --try")
        return
    needing = next((name for name, value in {"--try": try_, **of_rule}.items() if value), None)
    if rule is None and needing:
        lacking = "a rule" if host else "a host and a rule"
        raise FleetmarkError(
            f"{needing}: needs {lacking}; `fleetmark tune {host or 'HOST'}` lists the rules that you can try"
        )
    if try_ and not become:
        raise FleetmarkError(f"--try changes a setting of {host} as root: add --become")
