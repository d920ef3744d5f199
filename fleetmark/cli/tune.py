"""``fleetmark tune``: try one setting on one host, measure its effect, and restore it."""

from __future__ import annotations

from typing import Annotated

import typer

from fleetmark.base.errors import FleetmarkError
from fleetmark.cli.common import OK, ROOT, SOME_FAILED, AsDocument, DocumentFormat, Output, Root, beside, interruptible
from fleetmark.cli.reports import Lang
from fleetmark.cli.roots import results


def tune(
    host: Annotated[str | None, typer.Argument(help="A host of the campaign.")] = None,
    rule: Annotated[str | None, typer.Argument(help="The name of a rule, as in `fleetmark tune --list`.")] = None,
    try_: Annotated[
        bool, typer.Option("--try", help="Set it, measure alternately with and without it, and restore it.")
    ] = False,
    list_: Annotated[bool, typer.Option("--list", help="List all rules and whether they can be tried.")] = False,
    to: Annotated[str | None, typer.Option(help="A value other than the rule's.")] = None,
    on: Annotated[str | None, typer.Option(help="Only this interface or disk.")] = None,
    case: Annotated[
        list[str] | None, typer.Option(metavar="WORKLOAD/CASE", help="What to measure (default: the rule's choice).")
    ] = None,
    blocks: Annotated[int, typer.Option(min=2, max=1000, help="Measurements without and with the setting.")] = 6,
    campaign: Annotated[str, typer.Option("--campaign", help="The campaign that measured the host.")] = "last",
    inventory: Annotated[
        list[str] | None, typer.Option("--inventory", "-i", help="Use this inventory instead of the campaign's.")
    ] = None,
    become: Annotated[bool, typer.Option("--become", "-b", help="Become root on the host; required by --try.")] = False,
    lang: Lang = "en",
    root: Root = ROOT,
    output: Output = None,
    as_: AsDocument = DocumentFormat.TABLE,
) -> None:
    """Show what a rule would set on a host. With --try: set it, measure the gain and restore the old setting.

    Examples: fleetmark tune --list; fleetmark tune n7; fleetmark tune n7 governor; fleetmark tune n7 governor --try -b
    """
    from fleetmark.record.campaigns import find
    from fleetmark.verbs import tune as trying
    from fleetmark.verbs.confirm import Where
    from fleetmark.verbs.documents import files

    _refuse(host, rule, try_, list_, become, {"--to": to, "--on": on, "--case": case})
    shown = as_.value, beside(as_), files(output, lang)
    if list_:
        trying.rules(*shown)
        raise typer.Exit(OK)
    assert host is not None  # _refuse has checked it
    with results(root, campaign=campaign, writes=try_) as here:
        archive = find(here, campaign)
        if rule is None:
            trying.of_host(archive, host, *shown)
            raise typer.Exit(OK)
        asked = trying.TrialQuestion(
            host=host,
            rule=rule,
            value=to,
            device=on,
            cases=tuple(case or ()),
            blocks=blocks,
            connection=Where(tuple(inventory or ()), become),
        )
        if not try_:
            trying.preview(archive, asked, *shown)
            raise typer.Exit(OK)
        with interruptible("the setting is restored and finished runs are stored; run the same command to continue"):
            good = trying.attempt(archive, asked, *shown)
    raise typer.Exit(OK if good else SOME_FAILED)


def _refuse(
    host: str | None, rule: str | None, try_: bool, list_: bool, become: bool, of_rule: dict[str, object]
) -> None:
    """Raise FleetmarkError if options are missing or contradict each other."""
    if list_:
        if host or try_:
            raise FleetmarkError("--list shows all rules: leave the host and --try out")
        return
    if host is None:
        raise FleetmarkError(
            "no host: fleetmark tune HOST says what can be tried there, fleetmark tune --list shows the rules"
        )
    if try_ and rule is None:
        raise FleetmarkError(f"--try: needs a rule; `fleetmark tune {host}` lists the rules that can be tried")
    if try_ and not become:
        raise FleetmarkError(f"--try changes a setting of {host} as root: add --become")
    if rule is None and (option := next((name for name, value in of_rule.items() if value), None)):
        raise FleetmarkError(f"{option}: needs a rule; `fleetmark tune {host}` lists the rules that can be tried")
