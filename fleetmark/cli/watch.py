"""Define ``fleetmark watch``, which repeatedly runs light campaigns on idle hosts."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from typing import Annotated

import typer

from fleetmark.base.errors import FleetmarkError
from fleetmark.base.terminal import Terminal
from fleetmark.base.user import user_name
from fleetmark.cli.common import OK, ROOT, SOME_FAILED, Limit, Root, interruptible, settings_from
from fleetmark.cli.roots import results


def watch(
    inventory: Annotated[
        list[str] | None, typer.Option("--inventory", "-i", help="Ansible inventory; none: this machine.")
    ] = None,
    suite: Annotated[str, typer.Option("--suite", "-s", help="A light suite, or your own file.")] = "quick",
    limit: Limit = None,
    set_: Annotated[
        list[str] | None, typer.Option("--set", metavar="W.P=V", help="Set workload.parameter=value.")
    ] = None,
    become: Annotated[bool, typer.Option("--become", "-b", help="Become root on the hosts, through sudo.")] = False,
    every: Annotated[str, typer.Option(help="How often a round starts: 30min, 6h.")] = "1h",
    window: Annotated[
        list[str] | None,
        typer.Option(metavar="START-END", help="Measure only in this time window: 22:00-06:00; repeatable."),
    ] = None,
    share: Annotated[str, typer.Option(help="The share of hosts to measure in a round.")] = "25%",
    max_load: Annotated[float, typer.Option(help="The load per CPU above which a host is busy.", min=0.0)] = 0.1,
    sessions: Annotated[bool, typer.Option("--sessions", help="Also measure hosts where users are logged in.")] = False,
    rules: Annotated[Path | None, typer.Option(help="The acceptance rules for `gate`.")] = None,
    reference: Annotated[str | None, typer.Option(help="Also report slowdowns since this saved reference.")] = None,
    least: Annotated[
        list[str] | None,
        typer.Option(metavar="[CLASS=]SHARE", help="Ignore smaller losses: 3%, or mem-bw=2%; repeatable."),
    ] = None,
    webhook_file: Annotated[
        Path | None, typer.Option(help="The file with the address of a Slack-compatible webhook.")
    ] = None,
    listen: Annotated[
        str | None,
        typer.Option(metavar="HOST:PORT", help="Also serve stored results in a browser, and metrics at /metrics."),
    ] = None,
    token_file: Annotated[Path | None, typer.Option(help="With --listen: the file with the server's token.")] = None,
    once: Annotated[bool, typer.Option("--once", help="Run one round and exit, for use in a timer.")] = False,
    install: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Write systemd units, alert rules and a dashboard to this folder."),
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="With --install: only print the files.")] = False,
    root: Root = ROOT,
) -> None:
    """Measure idle hosts in rounds, evaluate each round, and report findings. With --once: exit status 1 for findings.

    Examples: fleetmark watch -i hosts.yml --window 22:00-06:00 --listen 127.0.0.1:8300;
    fleetmark watch -i hosts.yml --install units --dry-run
    """
    from fleetmark.campaign.options import Options
    from fleetmark.reports.kit.language import Language
    from fleetmark.verbs import watch as watching
    from fleetmark.verbs.diagnose import least_losses
    from fleetmark.verbs.watch import webhook, windows

    every_s = windows.duration(every)
    if ":/" in str(root):
        raise FleetmarkError("--results in a store: a watch needs a folder for its state; specify a folder")
    if dry_run and not install:
        raise FleetmarkError("--dry-run without --install: use `fleetmark run --dry-run` to see what a round runs")
    if token_file and not listen:
        raise FleetmarkError("--token-file without --listen: it is the token of a server; add --listen HOST:PORT")
    if once and listen:
        raise FleetmarkError("--listen with --once: the server would end with the round; use `fleetmark serve`")
    for file in (f for f in (rules,) if f and str(f) != "acceptance" and not f.is_file()):
        raise FleetmarkError(f"--rules {file}: there is no such file")
    question = watching.WatchQuestion(
        options=Options(
            suite=suite,
            inventory=tuple(inventory or ()),
            limit=limit,
            settings=settings_from(set_ or []),
            become=become,
            root=root,
        ),
        windows=tuple(windows.window(text) for text in window or ()),
        share=windows.share(share),
        most_load=max_load,
        allows_sessions=sessions,
        rules=rules,
        reference=reference,
        least=least_losses(least or ()),
        webhook=webhook.address_in(webhook_file) if webhook_file else None,
    )
    if install:
        _install(install, every_s, root, become and not inventory, dry_run)
        raise typer.Exit(OK)
    console = Terminal()
    with interruptible("the finished rounds are stored"), results(root, writes=True) as here:
        if once:
            raise typer.Exit(OK if watching.once(question, console) else SOME_FAILED)
        with watching.serving(here, listen, token_file, Language()):
            watching.forever(question, every_s, console)


def _install(folder: Path, every_s: float, root: Path, becomes: bool, dry_run: bool) -> None:
    from fleetmark.verbs.watch import install

    program = [shutil.which(sys.argv[0]) or str(Path(sys.executable).with_name("fleetmark"))]
    program = [str(Path(program[0]).absolute())]
    kept = ["--results", str(root.absolute())]
    texts = install.contents(
        watch=[*program, "watch", "--once", *_without(sys.argv[2:]), *kept],
        serve=[*program, "serve", *kept],
        every_s=every_s,
        folder=Path.cwd(),
        user=user_name(),
        becomes=becomes,
    )
    if dry_run:
        for name, text in texts.items():
            typer.echo(f"# {folder / name}\n{text}" if not name.endswith(".json") else f"# {folder / name}")
        return
    for file in install.write(folder, texts):
        typer.echo(f"wrote {file}")


def _without(words: list[str]) -> list[str]:
    """Return the options of a round, which exclude the options of the service itself."""
    valued, single = ("--install", "--every", "--listen", "--token-file", "--results"), ("--dry-run", "--once")
    kept: list[str] = []
    rest = iter(words)
    for word in rest:
        if word in valued:
            next(rest, None)
        elif word not in single and word.partition("=")[0] not in valued:
            kept.append(word)
    return kept
