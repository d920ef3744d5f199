"""``fleetmark tune``: one setting of one host, tried, measured and put back."""

from __future__ import annotations

from typing import Annotated

import typer

from fleetmark.base.errors import FleetmarkError
from fleetmark.cli.common import OK, ROOT, SOME_FAILED, AsDocument, DocumentFormat, Output, Root, beside, interruptible
from fleetmark.cli.reports import Lang
from fleetmark.cli.roots import results


def tune(
    host: Annotated[str | None, typer.Argument(help="A host of the campaign.")] = None,
    rule: Annotated[str | None, typer.Argument(help="A rule's name, as `fleetmark tuning` says it.")] = None,
    try_: Annotated[
        bool, typer.Option("--try", help="Set it, measure with and without in turns, and put it back.")
    ] = False,
    list_: Annotated[bool, typer.Option("--list", help="Every rule, and which can be tried.")] = False,
    to: Annotated[str | None, typer.Option(help="Another value than the rule's.")] = None,
    on: Annotated[str | None, typer.Option(help="Of one interface or disk only.")] = None,
    case: Annotated[
        list[str] | None, typer.Option(metavar="WORKLOAD/CASE", help="What to measure; unset: the rule's own choice.")
    ] = None,
    blocks: Annotated[int, typer.Option(min=2, max=1000, help="How often it is measured without and with it.")] = 6,
    campaign: Annotated[str, typer.Option("--campaign", help="The campaign that measured the host.")] = "last",
    inventory: Annotated[
        list[str] | None, typer.Option("--inventory", "-i", help="Reach it by this inventory, not the campaign's.")
    ] = None,
    become: Annotated[bool, typer.Option("--become", "-b", help="Root on the host, which --try needs.")] = False,
    lang: Lang = "en",
    root: Root = ROOT,
    output: Output = None,
    as_: AsDocument = DocumentFormat.TABLE,
) -> None:
    """Say what a rule would set on a host; --try sets it, measures and puts it back, and says the gain.

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
    assert host is not None  # as _refuse has it
    with results(root, campaign=campaign, writes=try_) as here:
        archive = find(here, campaign)
        if rule is None:
            trying.of_host(archive, host, *shown)
            raise typer.Exit(OK)
        asked = trying.Question(host, rule, to, on, tuple(case or ()), blocks, Where(tuple(inventory or ()), become))
        if not try_:
            trying.preview(archive, asked, *shown)
            raise typer.Exit(OK)
        with interruptible("the setting is put back, and what is finished is kept; the same command goes on"):
            good = trying.attempt(archive, asked, *shown)
    raise typer.Exit(OK if good else SOME_FAILED)


def _refuse(
    host: str | None, rule: str | None, try_: bool, list_: bool, become: bool, of_rule: dict[str, object]
) -> None:
    """Raises FleetmarkError for words that make no sense together."""
    if list_:
        if host or try_:
            raise FleetmarkError("--list: says which rules there are; leave the host and --try out")
        return
    if host is None:
        raise FleetmarkError(
            "no host: fleetmark tune HOST says what can be tried there, fleetmark tune --list the rules"
        )
    if try_ and rule is None:
        raise FleetmarkError(f"--try: no rule; fleetmark tune {host} says which can be tried there")
    if try_ and not become:
        raise FleetmarkError(f"--try changes a setting of {host} as root: add --become")
    if rule is None and (option := next((name for name, value in of_rule.items() if value), None)):
        raise FleetmarkError(f"{option}: no rule; fleetmark tune {host} says which can be tried there")
