"""Run Slurm commands to list the nodes of a partition, and to submit, query and cancel jobs."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from fleetmark.base.errors import FleetmarkError
from fleetmark.base.units import is_whole

_PATIENCE_S = 60.0  # timeout of one command; Slurm's commands themselves retry for about 30 s
_NODE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*", re.ASCII)
_LIST = re.compile(r"(?:[A-Za-z0-9._-]|\[[\d,-]+\])+(?:,(?:[A-Za-z0-9._-]|\[[\d,-]+\])+)*", re.ASCII)
# States of a job that may still give results: squeue(1), JOB STATE CODES.
WAITING = ("PENDING", "REQUEUED", "REQUEUE_HOLD", "REQUEUE_FED", "SPECIAL_EXIT", "RESV_DEL_HOLD", "CONFIGURING")
HELD = ("REQUEUE_HOLD", "SPECIAL_EXIT", "RESV_DEL_HOLD")
RUNNING = ("RUNNING", "COMPLETING", "RESIZING", "SIGNALING", "STAGE_OUT", "STOPPED", "SUSPENDED")
# Reasons that remain when other jobs end: squeue(1), JOB REASON CODES. PartitionNodeLimit is missing because nodes that
# are down can cause it.
NEVER = (
    "PartitionTimeLimit",
    "BadConstraints",
    "AccountNotAllowed",
    "InvalidAccount",
    "InvalidQOS",
)
_USABLE = ("idle", "mixed", "allocated", "completing", "reserved", "planned")
_DEAD = ("down", "fail", "failing", "error", "power_down", "powered_down", "powering_down", "unknown")


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """A node of a partition, as reported by Slurm. ``memory_b`` is in bytes."""

    name: str
    partition: str
    state: str
    cpus: int
    memory_b: int
    features: tuple[str, ...]
    gres: str
    address: str

    @property
    def is_usable(self) -> bool:
        """Return whether the node can run a job now, or after its current jobs."""
        return self.state.rstrip("*~#!%$@^-+").lower() in _USABLE and not self.state.endswith("*")

    @property
    def labels(self) -> dict[str, str]:
        """Return the node's features as labels: ``rack=r12`` and ``rack:r12`` have a value; others are ``true``."""
        parts = [re.split("[=:]", feature, maxsplit=1) for feature in self.features]
        return {"partition": self.partition} | {name: (rest or ["true"])[0] for name, *rest in parts if name}


@dataclass(kw_only=True, frozen=True, slots=True)
class Request:
    """A request for ``sbatch``. ``nodes``: None for all usable nodes; ``time``: in Slurm's format."""

    partition: str | None = None
    nodes: int | None = None
    time: str | None = None
    account: str | None = None
    constraint: str | None = None
    nodelist: str | None = None
    exclusive: bool = True
    more: tuple[str, ...] = ()

    def words(self) -> list[str]:
        """Return the options of ``fleetmark run`` that make the same request."""
        named = {
            "--partition": self.partition,
            "--nodes": self.nodes,
            "--time": self.time,
            "--account": self.account,
            "--constraint": self.constraint,
            "--nodelist": self.nodelist,
        }
        words = [word for name, value in named.items() if value is not None for word in (name, str(value))]
        return [
            *words,
            *([] if self.exclusive else ["--no-exclusive"]),
            *(w for m in self.more for w in ("--sbatch", m)),
        ]


@dataclass(frozen=True, slots=True)
class State:
    """A job's state (such as ``PENDING``), why it waits or ended, its exit status, and its nodes.

    The nodes have Slurm's abbreviated form (``n[1-3]``).
    """

    word: str
    reason: str = ""
    exit_status: int | None = None
    nodelist: str = ""

    @property
    def is_waiting(self) -> bool:
        return self.word in WAITING

    @property
    def is_held(self) -> bool:
        """Return whether the job waits until somebody releases it."""
        return self.is_waiting and (self.word in HELD or re.match(r"JobHeld|\w+_held", self.reason, re.I) is not None)

    @property
    def is_hopeless(self) -> bool:
        """Return whether the job waits for resources that this cluster can never grant."""
        return self.is_waiting and self.reason in NEVER

    @property
    def is_final(self) -> bool:
        return self.word not in WAITING and self.word not in RUNNING


def nodes(partition: str | None) -> list[Node]:
    """Return the nodes of ``partition`` (default: Slurm's default partition) in Slurm's order.

    Raise FleetmarkError if Slurm does not answer, or if there is no such partition.
    """
    rows = [line.split("|") for line in _ask("sinfo", "-h", "-N", "-a", "-o", "%N|%P|%T|%c|%m|%f|%G|%o").splitlines()]
    listed = [
        Node(
            name=row[0],
            partition=row[1].rstrip("*"),
            state=row[2],
            cpus=_number(row[3]),
            memory_b=_number(row[4]) << 20,
            features=tuple(f for f in row[5].split(",") if f not in ("", "(null)")),
            gres="" if row[6] == "(null)" else row[6],
            address=row[7],
        )
        for row in rows
        if len(row) == 8 and _NODE.fullmatch(row[0])
    ]
    partitions = sorted({row[1].rstrip("*") for row in rows if len(row) == 8})
    default = next((row[1].rstrip("*") for row in rows if len(row) == 8 and row[1].endswith("*")), None)
    chosen = partition or default
    if chosen is None:
        raise FleetmarkError(f"this cluster has no default partition; choose one with --partition: {some(partitions)}")
    if chosen not in partitions:
        raise FleetmarkError(f"--partition {chosen}: no such partition; use one of {some(partitions)}")
    return [node for node in listed if node.partition == chosen]


def fitting(nodes: Sequence[Node], constraint: str) -> list[Node] | None:
    """Return the nodes with the features in ``--constraint``, which joins names by ``&`` or ``,``, or all by ``|``.

    Return None for other forms that Slurm supports: counts, brackets, and mixed operators.
    """
    if not re.fullmatch(r"[^\s\[\]()*&|,]+([&|,][^\s\[\]()*&|,]+)*", constraint):
        return None
    features = re.split(r"[&|,]", constraint)
    if "|" not in constraint:
        return [node for node in nodes if set(features) <= set(node.features)]
    if constraint.count("|") < len(features) - 1:
        return None
    return [node for node in nodes if not set(features).isdisjoint(node.features)]


def time_limit_s(partition: str, time: str | None) -> float | None:
    """Return a job's time limit in seconds: ``time``, else the partition's default, else its limit; None if unlimited.

    Raise FleetmarkError if ``time`` exceeds the partition's limit, because Slurm would never start such a job.
    """
    requested = _seconds(time) if time is not None else None
    limits = _ask("sinfo", "-h", "-p", partition, "-o", "%L|%l").splitlines()
    default, _, maximum = (limits or ["|"])[0].partition("|")
    limit = _seconds(maximum)
    if time is not None:
        if limit is not None and (requested is None or requested > limit):
            raise FleetmarkError(f"--time {time}: partition {partition} allows at most {maximum} per job; request less")
        return requested
    return next((s for text in (default, maximum) if (s := _seconds(text)) is not None), None)


def submit(request: Request, name: str, script: str) -> str:
    """Submit ``script`` and return the job's id. Raise FleetmarkError with Slurm's reason on failure."""
    named = {
        "--job-name": name,
        "--partition": request.partition,
        "--nodes": request.nodes,
        "--time": request.time,
        "--account": request.account,
        "--constraint": request.constraint,
        "--nodelist": request.nodelist,
    }
    words = ["--parsable", "--no-kill", "--requeue", "--ntasks-per-node=1", "--output=/dev/null", "--chdir=/"]
    words += [f"{option}={value}" for option, value in named.items() if value is not None]
    # The environment may contain credentials, and Slurm would store it on disk.
    words += ["--export=PATH,HOME", *(["--exclusive"] if request.exclusive else []), *request.more]
    printed = _ask("sbatch", *words, stdin=script)
    job = printed.strip().partition(";")[0]
    if not re.fullmatch(r"[0-9_]+", job):
        raise FleetmarkError(f"sbatch printed {printed.strip()[:80]!r}, which is not a job id")
    return job


def state(job: str) -> State:
    """Return the state of a job. Jobs unknown to Slurm are over. Raise FleetmarkError if Slurm does not answer."""
    done = _run(["scontrol", "-o", "show", "job", job])
    if done.returncode:
        if "Invalid job id" in done.stderr:
            return State("COMPLETED", "Slurm no longer knows the job")
        raise _no_answer("scontrol", done)
    fields = dict(re.findall(r"(\w+)=(\S*)", done.stdout))
    status, _, _ = fields.get("ExitCode", "").partition(":")
    reason = fields.get("Reason", "None")
    word, nodelist = fields.get("JobState", "UNKNOWN"), fields.get("NodeList", "(null)")
    return State(
        word,
        "" if reason == "None" else reason,
        int(status) if is_whole(status) else None,
        "" if nodelist == "(null)" else nodelist,
    )


def hostnames(nodelist: str) -> list[str]:
    """Expand Slurm's abbreviated node list into names."""
    return _ask("scontrol", "show", "hostnames", nodelist).split()


def named(nodelist: str) -> list[str]:
    """Return the nodes in ``--nodelist``. Raise FleetmarkError if it is not a valid list."""
    try:
        names = hostnames(nodelist) if _LIST.fullmatch(nodelist) else []
    except FleetmarkError:
        names = []
    if not names:
        raise FleetmarkError(f"--nodelist {nodelist}: write it as Slurm does: n1,n[3-5]")
    return names


def dead(names: Sequence[str]) -> Mapping[str, str]:
    """Return the states of the nodes that are down or failing. Nodes that only do not answer are not included."""
    printed = _ask("sinfo", "-h", "-N", "-a", "-n", ",".join(names), "-o", "%N|%T")
    rows = [line.split("|") for line in printed.splitlines()]
    return {row[0]: row[1] for row in rows if len(row) == 2 and row[1].rstrip("*~#!%$@^-+").lower() in _DEAD}


def cancel(job: str) -> None:
    """Cancel a job. This has no effect if the job has ended."""
    _run(["scancel", job])


def _ask(*words: str, stdin: str = "") -> str:
    done = _run(list(words), stdin)
    if done.returncode:
        raise _no_answer(words[0], done)
    return done.stdout


def _run(words: Sequence[str], stdin: str = "") -> subprocess.CompletedProcess[str]:
    try:
        return subprocess.run(
            words,
            input=stdin,
            capture_output=True,
            text=True,
            errors="replace",  # comments and reasons of jobs may contain any bytes
            check=False,
            timeout=_PATIENCE_S,
            env={**os.environ, "SLURM_TIME_FORMAT": "standard", "LC_ALL": "C"},
            start_new_session=True,  # ignore Ctrl-C: an interrupted command could leave a job
        )
    except FileNotFoundError:
        raise FleetmarkError(
            f"there is no Slurm here: {words[0]} is not on the PATH; log in to a machine of the cluster"
        ) from None
    except subprocess.TimeoutExpired:
        raise FleetmarkError(f"Slurm does not answer: {words[0]} took more than {_PATIENCE_S:g} s") from None


def _no_answer(command: str, done: subprocess.CompletedProcess[str]) -> FleetmarkError:
    lines = [line.strip() for line in (done.stderr or done.stdout).splitlines()]
    lines = [line for line in lines if line and not re.match(r"Try .* for more information", line)]
    words = re.sub(rf"^(slurm_load_\w+|{command}): (error: )?", "", lines[-1]) if lines else "it printed no reason"
    if re.search(r"contact|connect|resolve|configuration (file|source)|Protocol auth", " ".join(lines)):
        return FleetmarkError(f"Slurm does not answer: {words}; is slurmctld up, and is this a machine of the cluster?")
    return FleetmarkError(f"Slurm refuses: {words}")


def _seconds(text: str) -> float | None:
    """Parse Slurm's time formats: minutes, M:S, H:M:S, D-H, D-H:M, D-H:M:S. Return None for no limit.

    Raise FleetmarkError if the format is invalid.
    """
    if text.lower() in ("infinite", "unlimited", "n/a", "(null)", ""):
        return None
    match = re.fullmatch(r"(?:(\d+)-)?(\d+)(?::(\d+))?(?::(\d+))?", text)
    if not match:
        raise FleetmarkError(f"--time {text}: write it as Slurm does: minutes, hours:minutes:seconds or days-hours")
    days, first, second, third = (None if g is None else int(g) for g in match.groups())
    if days is not None:
        return days * 86400 + (first or 0) * 3600 + (second or 0) * 60 + (third or 0)
    if third is not None:
        return (first or 0) * 3600 + (second or 0) * 60 + third
    return (first or 0) * 60 + (second or 0)


def _number(text: str) -> int:
    digits = re.match(r"\d+", text)
    return int(digits[0]) if digits else 0


def some(names: Sequence[str]) -> str:
    """Return the first names as text, if there are many."""
    listed = ", ".join(names[:12]) + (f" and {len(names) - 12} more" if len(names) > 12 else "")
    return listed or "none"
