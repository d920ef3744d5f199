"""Define the command line: every command reads its arguments, calls the package that does the work, and shows the
result.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from fleetmark.base.errors import FleetmarkError
from fleetmark.base.terminal import Terminal
from fleetmark.cli import bundle as cli_bundle
from fleetmark.cli import clean as cli_clean
from fleetmark.cli import diagnose as cli_diagnose
from fleetmark.cli import doctor as cli_doctor
from fleetmark.cli import ended as cli_ended
from fleetmark.cli import parse as cli_parse
from fleetmark.cli import plan as cli_plan
from fleetmark.cli import predict as cli_predict
from fleetmark.cli import profile as cli_profile
from fleetmark.cli import reference as cli_reference
from fleetmark.cli import reports as cli_reports
from fleetmark.cli import serve as cli_serve
from fleetmark.cli import tune as cli_tune
from fleetmark.cli import verify as cli_verify
from fleetmark.cli import watch as cli_watch
from fleetmark.cli import workloads as cli_workloads
from fleetmark.cli.common import (
    INTERRUPTED,
    OK,
    ROOT,
    SOME_FAILED,
    USAGE,
    AsDocument,
    DocumentFormat,
    Limit,
    Output,
    Root,
    WorkloadFolders,
    interruptible,
    message_console,
    say_what_is_left_out,
    settings_from,
)
from fleetmark.cli.help import FIRST_DAY, App
from fleetmark.cli.roots import results

# Headings of the verbs in `fleetmark --help`.
MEASURE, COMPARE, DIAGNOSE, PLAN, RECORD = "Measure", "Compare", "Diagnose", "Plan", "Record"

app = App(
    help="Measure servers: run standard benchmarks on a fleet, and compare and diagnose the results.",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="Exit status: 0 all runs passed, 1 a run failed, is missing or could not be stored, 2 wrong usage or "
    "invalid input, 3 interrupted.",
)


Inventory = Annotated[
    list[str] | None,
    typer.Option(
        "--inventory", "-i", help="Ansible inventory (file, directory, script or h1,h2,); none: this machine."
    ),
]
SuiteName = Annotated[
    str,
    typer.Option(
        "--suite",
        "-s",
        help="quick, standard, server, gpu, full, ...; a workload; your own file; several with commas.",
    ),
]
Set = Annotated[
    list[str] | None, typer.Option("--set", metavar="W.P=V", help="Set workload.parameter=value; lists with commas.")
]
Become = Annotated[bool, typer.Option("--become", "-b", help="Become root on the hosts, through sudo.")]
WorkDir = Annotated[
    str | None,
    typer.Option(
        help="Folder on hosts for tools and test files, which are stored in its subfolder fleetmark-UID "
        "(default: /var/tmp)."
    ),
]
Slurm = Annotated[bool, typer.Option("--slurm", help="Run on Slurm nodes, as one job, without SSH or root.")]
Partition = Annotated[str | None, typer.Option(help="With --slurm: the partition (default: Slurm's default).")]
Timeout = Annotated[
    float | None,
    typer.Option(
        "--connect-timeout", help="Seconds to wait for a connection to a host (default: ssh's ConnectTimeout, or 10)."
    ),
]


@app.callback(invoke_without_command=True)
def _root(
    ctx: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Print the version and exit.")] = False,
) -> None:
    if version:
        from fleetmark import __version__

        typer.echo(f"fleetmark {__version__}")
        raise typer.Exit(OK)
    if ctx.invoked_subcommand is None:
        typer.echo(FIRST_DAY.format(program=ctx.info_name))
        raise typer.Exit(OK)
    say_what_is_left_out()


@app.command(rich_help_panel=MEASURE)
def run(
    inventory: Inventory = None,
    suite: Annotated[
        str | None,
        typer.Option(
            "--suite",
            "-s",
            help="quick (if unset), standard, server, gpu, full, ...; a workload; your own file; several with commas.",
        ),
    ] = None,
    limit: Limit = None,
    set_: Set = None,
    repeats: Annotated[
        int | None, typer.Option(min=1, help="Repeats of every case; the minimum with --until-ci.")
    ] = None,
    until_ci: Annotated[
        str | None, typer.Option(help="Repeat each case until the interval of its median is at most this wide: 2%.")
    ] = None,
    max_repeats: Annotated[
        int, typer.Option(min=6, help="With --until-ci: maximum repeats before a case is unstable.")
    ] = 50,
    seed: Annotated[int | None, typer.Option(help="Seed for the random run order (always recorded).")] = None,
    become: Become = False,
    work_dir: WorkDir = None,
    folders: WorkloadFolders = None,
    root: Root = ROOT,
    resume: Annotated[str | None, typer.Option(help="Resume this campaign (id, path, or last).")] = None,
    retry_failed: Annotated[
        bool, typer.Option("--retry-failed", help="With --resume: also run failed and invalid steps again.")
    ] = False,
    bundle: cli_bundle.BundleFile = None,
    strict: Annotated[bool, typer.Option("--strict", help="Skipped measurements count as missing: exit 1.")] = False,
    connect_timeout: Timeout = None,
    patience: Annotated[
        float, typer.Option(help="Seconds without a message from a host before it counts as lost.")
    ] = 120.0,
    at_once: Annotated[
        list[str] | None,
        typer.Option(
            metavar="N",
            help="Maximum number of hosts that run at the same time; LABEL=N: maximum per value of a label.",
        ),
    ] = None,
    slurm: Slurm = False,
    partition: Partition = None,
    nodes: Annotated[int | None, typer.Option(min=1, help="With --slurm: the number of nodes (default: all).")] = None,
    time: Annotated[str | None, typer.Option(help="With --slurm: the job's time limit, in Slurm's format.")] = None,
    account: Annotated[str | None, typer.Option(help="With --slurm: the account to charge.")] = None,
    constraint: Annotated[str | None, typer.Option(help="With --slurm: features that nodes must have.")] = None,
    nodelist: Annotated[str | None, typer.Option(help="With --slurm: the names of the nodes: n1,n[3-5].")] = None,
    exclusive: Annotated[
        bool, typer.Option("--exclusive/--no-exclusive", help="With --slurm: request exclusive nodes (default).")
    ] = True,
    sbatch: Annotated[
        list[str] | None,
        typer.Option(metavar="OPTION", help="With --slurm: another sbatch option: --gpus-per-node=8."),
    ] = None,
    shared: Annotated[
        Path | None,
        typer.Option(help="With --slurm: a folder shared by all nodes and this machine (default: --results)."),
    ] = None,
    sign: Annotated[
        Path | None,
        typer.Option(
            metavar="KEY", help="Sign the campaign with this SSH key; `fleetmark verify` checks the signature."
        ),
    ] = None,
    include_busy: Annotated[
        bool, typer.Option("--include-busy", help="Also run on hosts that are in production or in use.")
    ] = False,
    dry_run: Annotated[
        bool,
        typer.Option("--dry-run", help="Show the planned runs, their duration and their requirements; change nothing."),
    ] = False,
    output: Output = None,
    lang: cli_reports.Lang = "en",
    as_: Annotated[
        cli_reports.ReportFormat, typer.Option("--format", help="table or json; with --dry-run also md.")
    ] = cli_reports.ReportFormat.TABLE,
) -> None:
    """Run a suite on this machine, a fleet or Slurm nodes, and archive and show the results.

    Examples: fleetmark run; fleetmark run -i hosts.yml -s standard --set fio.size=8GiB;
    fleetmark run --resume last --retry-failed;
    fleetmark run -i hosts.yml -s server --dry-run -o plan.pdf; fleetmark run --slurm --partition gpu --nodes 64
    """
    from fleetmark.campaign import run as campaign
    from fleetmark.campaign.options import Options
    from fleetmark.hosts.preflight import WORK_DIR
    from fleetmark.hosts.slurm.cluster import Request
    from fleetmark.record.campaigns import find
    from fleetmark.record.commands import command
    from fleetmark.verbs.documents import files

    fixed = {
        "--suite": suite,
        "--repeats": repeats,
        "--until-ci": until_ci,
        "--seed": seed,
        "--limit": limit,
        "-b": become or None,
    }
    overrides = [name for name, value in {**fixed, "--work-dir": work_dir}.items() if value is not None]
    if resume and overrides:
        raise FleetmarkError(
            f"{overrides[0]} with --resume: a resumed campaign keeps its options; start a new campaign for other "
            "options"
        )
    if retry_failed and not resume:
        raise FleetmarkError("--retry-failed without --resume: name the campaign, such as --resume last")
    slurm_options = {
        "--partition": partition,
        "--nodes": nodes,
        "--time": time,
        "--account": account,
        "--constraint": constraint,
        "--nodelist": nodelist,
        "--sbatch": sbatch,
        "--shared": shared,
    }
    _refuse_slurm(slurm, resume, slurm_options, {"-i": inventory, "--limit": limit, "-b": become or None})
    if slurm and not shared and ":/" in str(root):
        raise FleetmarkError(
            "--slurm with --results in a store: the nodes need a shared folder; specify it with --shared"
        )
    request = Request(
        partition=partition,
        nodes=nodes,
        time=time,
        account=account,
        constraint=constraint,
        nodelist=nodelist,
        exclusive=exclusive,
        more=tuple(sbatch or ()),
    )
    options = Options(
        suite=suite or "quick",
        inventory=tuple(inventory or ()),
        limit=limit,
        settings=settings_from(set_ or []),
        repeats=repeats,
        seed=seed,
        become=become,
        work_dir=work_dir or WORK_DIR,
        connect_timeout_s=connect_timeout,
        patience_s=patience,
        until=_until(until_ci, repeats, max_repeats) if until_ci else None,
        slurm=request if slurm else None,
        shared=shared,
        at_once=tuple(at_once or ()),
        bundle=bundle,
        sign=sign,
        guard=not include_busy,
    )
    _refuse_plan(dry_run, resume, as_)
    documents = files(output, lang)
    if dry_run:
        from fleetmark.verbs import dryrun

        with interruptible("nothing was changed anywhere"), results(root) as here:
            complete = dryrun.show(replace(options, root=here), as_.value, documents)
        raise typer.Exit(OK if complete else SOME_FAILED)
    console = Terminal(stderr=as_ is cli_reports.ReportFormat.JSON)
    again = shlex.join(command(root, "run", "--resume", "last"))
    advice = f"finished steps are stored, and hosts may still be running: {again}"
    with interruptible(advice), results(root, "shelves", campaign=resume, writes=True) as here:
        options = replace(options, root=here)
        if resume:
            archive = find(here, resume)
            interrupted = campaign.resume(archive, options, console, retry_failed=retry_failed)
        else:
            archive, interrupted = campaign.run(options, console)
        status = cli_ended.show(archive, as_.value, console, strict, documents)
        archive.close()
    raise typer.Exit(INTERRUPTED if interrupted else status)


def _refuse_plan(dry_run: bool, resume: str | None, as_: cli_reports.ReportFormat) -> None:
    """Raise FleetmarkError for dry-run options without --dry-run, and for a dry run of a resumed campaign."""
    if dry_run and resume:
        raise FleetmarkError(
            "--dry-run with --resume: a resumed campaign keeps its schedule; remove one of the options"
        )
    if as_ is cli_reports.ReportFormat.MD and not dry_run:
        raise FleetmarkError("--format md without --dry-run: see `fleetmark report --format md` for a campaign")


def _refuse_slurm(slurm: bool, resume: str | None, slurm_options: Mapping[str, Any], others: Mapping[str, Any]) -> None:
    """Raise FleetmarkError for Slurm options without --slurm, and for inventory options with it."""
    given = [name for name, value in slurm_options.items() if value is not None]
    if resume and (slurm or given):
        raise FleetmarkError(f"{'--slurm' if slurm else given[0]} with --resume: a campaign resumes on the same hosts")
    if given and not slurm:
        raise FleetmarkError(f"{given[0]} without --slurm: it selects Slurm nodes; add --slurm")
    other = [name for name, value in others.items() if value is not None]
    if slurm and other:
        raise FleetmarkError(
            f"{other[0]} with --slurm: its nodes are chosen by --partition and --nodelist; remove {other[0]}"
        )


def _until(text: str, minimum: int | None, maximum: int) -> Any:
    """Return the stopping rule for a relative interval such as ``2%`` or ``0.02``."""
    from fleetmark.campaign.adaptive import Until

    try:
        ci = float(text.removesuffix("%")) / (100 if text.endswith("%") else 1)
    except ValueError:
        ci = 0.0
    if not 0 < ci < 1:
        raise FleetmarkError(f"--until-ci {text}: write it as 2% (of the median), between 0 and 100%")
    if minimum and minimum > maximum:
        raise FleetmarkError(f"--repeats {minimum} is more than --max-repeats {maximum}")
    return Until(ci, max(6, minimum or min(10, maximum)), maximum)


app.command(rich_help_panel=COMPARE)(cli_reports.report)
app.command(rich_help_panel=COMPARE)(cli_reports.compare)
app.add_typer(cli_reference.app, name="reference", rich_help_panel=COMPARE)
app.command(rich_help_panel=DIAGNOSE)(cli_diagnose.diagnose)
app.command(rich_help_panel=DIAGNOSE)(cli_diagnose.history)
app.command(rich_help_panel=DIAGNOSE)(cli_diagnose.gate)
app.command(rich_help_panel=DIAGNOSE)(cli_tune.tune)
app.command(rich_help_panel=DIAGNOSE)(cli_watch.watch)


@app.command("import", rich_help_panel=RECORD)
def import_(
    kind: Annotated[
        str,
        typer.Argument(
            help="The format: mlperf, spec, sparecores, table, inferencex; or, for LLM servers, "
            "vllm_bench, sglang_bench, guidellm, aiperf, trtllm_bench, llama_bench; or, for training, "
            "megatron_lm, deepspeed, torchtitan, maxtext."
        ),
    ],
    files: Annotated[
        list[Path], typer.Argument(help="Published tables or your own tidy tables; may be compressed (.gz).")
    ],
    name: Annotated[str, typer.Option(help="The name of the machine, if the file does not contain one.")] = "",
    label: Annotated[
        list[str] | None, typer.Option(metavar="NAME=VALUE", help="A label for the machines: gen=h200, gpus=8.")
    ] = None,
    output: Output = None,
    root: Root = ROOT,
    as_: AsDocument = DocumentFormat.TABLE,
) -> None:
    """Import published results (MLPerf, SPEC, Spare Cores) or your own tidy table, for comparisons.

    Examples: fleetmark import mlperf summary_results.json; fleetmark import table figures.csv;
    fleetmark import vllm_bench run.json --name h200-a --label gen=h200 --label gpus=8
    """
    from fleetmark.record import imports as importing
    from fleetmark.reports.lists import imports as import_list
    from fleetmark.verbs import documents

    documents_to_write = documents.files(output)
    with results(root, "shelves", writes=True) as here:
        imported, failed = importing.files(here, kind, files, name, label or ())
    for sentence in failed:
        typer.echo(f"fleetmark: {sentence}", err=True)
    documents.show(import_list.document(imported), as_.value, message_console(as_), documents_to_write)
    raise typer.Exit(USAGE if failed else OK)


app.add_typer(cli_predict.app, name="predict", rich_help_panel=COMPARE)


@app.command(rich_help_panel=COMPARE)
def design(
    candidate: Annotated[list[str], typer.Option("--candidate", "-c", help="A machine to decide about; repeatable.")],
    baseline: Annotated[
        str | None, typer.Option("--baseline", "-b", help="The machines that a candidate would replace.")
    ] = None,
    at_least: Annotated[
        float | None, typer.Option(help="Number of baseline machines that one candidate must replace: 1.3.")
    ] = None,
    error: Annotated[float, typer.Option(min=0.0001, max=0.4, help="Allowed probability of a wrong decision.")] = 0.05,
    only: Annotated[list[str] | None, typer.Option(help="Only benchmarks that match workload/case/metric.")] = None,
    family: Annotated[str, typer.Option(help="The label that identifies a machine family.")] = "gen",
    output: Output = None,
    root: Root = ROOT,
    as_: AsDocument = DocumentFormat.TABLE,
) -> None:
    """Find the minimum number of runs that decides between machines, and report after each run whether to stop.

    Exit status 0 if the stored results are sufficient, 1 if more runs are needed.

    Examples: fleetmark design -c gen=turin -b gen=icelake --at-least 1.3; fleetmark design -c gen=genoa -c gen=turin
    """
    from fleetmark.reports.lists import decision as shown
    from fleetmark.verbs import design as designing
    from fleetmark.verbs import documents

    documents_to_write = documents.files(output)
    with results(root) as here:
        decision = designing.decide(
            here, baseline, candidate, at_least=at_least, error=error, only=tuple(only or ()), family=family
        )
    documents.show(shown.document(decision), as_.value, message_console(as_), documents_to_write)
    raise typer.Exit(OK if decision.is_decided else SOME_FAILED)


@app.command(rich_help_panel=MEASURE)
def hosts(
    inventory: Inventory = None,
    suite: SuiteName = "quick",
    limit: Limit = None,
    set_: Set = None,
    become: Become = False,
    work_dir: WorkDir = None,
    folders: WorkloadFolders = None,
    connect_timeout: Timeout = None,
    slurm: Slurm = False,
    partition: Partition = None,
    lang: cli_reports.Lang = "en",
    output: Output = None,
    as_: AsDocument = DocumentFormat.TABLE,
) -> None:
    """Show the reachable hosts, their hardware, and what a suite would install or skip on each host. Changes nothing.

    With --slurm: list the nodes of a partition. Nothing runs on them.

    Examples: fleetmark hosts -i hosts.yml --suite standard; fleetmark hosts --slurm --partition gpu
    """
    from fleetmark.hosts.preflight import WORK_DIR
    from fleetmark.verbs import hosts as survey
    from fleetmark.verbs.documents import files

    _refuse_slurm(slurm, None, {"--partition": partition}, {"-i": inventory, "--limit": limit, "-b": become or None})
    chosen_files, console = files(output, lang), message_console(as_)
    if slurm:
        survey.show_nodes(survey.nodes(partition), as_.value, console, chosen_files)
        raise typer.Exit(OK)
    with interruptible("nothing was changed anywhere"):
        chosen = (tuple(inventory or ()), limit, suite, settings_from(set_ or []), become)
        entries, lacking = survey.survey(*chosen, work_dir or WORK_DIR, connect_timeout, console)
    survey.show(entries, lacking, as_.value, console, chosen_files)
    raise typer.Exit(OK if all(entry.facts for entry in entries) else SOME_FAILED)


@app.command(rich_help_panel=RECORD)
def campaigns(root: Root = ROOT, output: Output = None, as_: AsDocument = DocumentFormat.TABLE) -> None:
    """List the campaigns under a results root.

    Examples: fleetmark campaigns; fleetmark campaigns --results /data/fleetmark
    """
    from fleetmark.verbs import catalogue
    from fleetmark.verbs.documents import files

    documents_to_write = files(output)
    with results(root, "list") as here:
        catalogue.show_campaigns(here, as_.value, message_console(as_), documents_to_write)


app.command(rich_help_panel=RECORD)(cli_parse.parse)
app.command(rich_help_panel=RECORD)(cli_parse.rebuild)
app.command(rich_help_panel=RECORD)(cli_serve.serve)
app.command(rich_help_panel=RECORD)(cli_verify.verify)
app.add_typer(cli_workloads.app, name="workloads", rich_help_panel=MEASURE)
app.command(rich_help_panel=MEASURE)(cli_doctor.doctor)
app.add_typer(cli_plan.app, name="plan", rich_help_panel=PLAN)
app.command(rich_help_panel=MEASURE)(cli_bundle.bundle)
app.command(rich_help_panel=MEASURE)(cli_clean.clean)
app.command("profile", rich_help_panel=PLAN)(cli_profile.profile)
