"""Implement ``fleetmark clean``: remove Fleetmark's files and packages from hosts."""

from __future__ import annotations

import json
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError
from rich.console import Console

from fleetmark.base.errors import FleetmarkError
from fleetmark.base.text import count
from fleetmark.base.units import human
from fleetmark.hosts.agent import CLEAN_BOOT, agent_source, sources
from fleetmark.hosts.connect import connect
from fleetmark.hosts.inventory import Host, load_inventory
from fleetmark.hosts.preflight import PARALLEL, check_hosts

CLEAN_S = 1800.0  # includes the wait for a package manager's lock
MOST_NAMED, MOST_NAME = 50, 100
_MARK = "FLEETMARK"
# Remove Ansible's folder in the user's home directory if a run created it and it is otherwise empty.
_ANSIBLE = "[ -f ~/.ansible/.fleetmark ] || exit 0; rm -f ~/.ansible/.fleetmark; rmdir ~/.ansible/tmp ~/.ansible 2>&1"

_Text = Annotated[str, StringConstraints(max_length=2000)]
_Names = Annotated[list[_Text], Field(max_length=10_000)]


class Answer(BaseModel):
    """The reply of agent/clean.py: the files and packages of Fleetmark on one host."""

    model_config = ConfigDict(strict=True, extra="ignore")

    absent: bool = False
    bytes: Annotated[int, Field(ge=0, lt=2**63)] = 0
    packages: _Names = []
    results: _Names = []
    error: _Text = ""
    kept: _Text = ""


@dataclass(frozen=True, slots=True)
class Cleaned:
    """The outcome for one host. ``text``: one sentence; ``good``: whether no file of Fleetmark remains (in a dry
    run: would remain).
    """

    host: str
    text: str
    good: bool


def clean(
    inventory: Sequence[str],
    limit: str | None,
    become: bool,
    work_dir: str,
    timeout_s: float | None,
    console: Console,
    *,
    dry_run: bool,
    discard: bool,
) -> list[Cleaned]:
    """Remove Fleetmark's files and packages from all hosts. With ``dry_run``, only list them.

    ``discard``: also remove results that no controller has collected.
    """
    hosts = load_inventory(list(inventory), limit)
    hosts = [replace(h, become=True) for h in hosts] if become else hosts
    with console.status(f"{'looking at' if dry_run else 'cleaning'} {count(len(hosts), 'host')}"):
        checked = check_hosts(hosts, (), work_dir=work_dir, timeout_s=timeout_s)
        for c in checked:
            c.close()

        def one(number: int) -> Cleaned:
            c = checked[number]
            if not c.facts:
                return Cleaned(c.host.name, f"unreachable: {c.reason}", False)
            try:
                answer = _clean(c.host, c.facts.python, c.facts.work_dir, timeout_s, dry_run, discard)
            except FleetmarkError as error:
                return Cleaned(c.host.name, str(error).removeprefix(f"{c.host.name}: "), False)
            return outcome_of(c.host.name, c.facts.work_dir, answer, dry_run)

        with ThreadPoolExecutor(min(PARALLEL, len(checked) or 1)) as pool:
            return list(pool.map(one, range(len(checked))))


def _clean(host: Host, python: str, work: str, timeout_s: float | None, dry_run: bool, discard: bool) -> Answer:
    texts = {**sources(), "clean.py": agent_source("clean.py").decode()}
    request = {"work": work, "dry_run": dry_run, "discard": discard, "source": texts}
    with connect(host, timeout_s) as reach:
        words = [python, "-I", "-S", "-c", CLEAN_BOOT]
        ran = reach.run(words, json.dumps(request).encode(), CLEAN_S, sudo=host.become)
        answer = answer_in(ran.out, ran.err)
        if not dry_run and not answer.error:
            reach.run(["sh", "-c", _ANSIBLE])
    return answer


def answer_in(out: bytes, err: bytes) -> Answer:
    """Parse a host's answer from its untrusted output. Raise FleetmarkError if there is no answer."""
    lines = [line for line in out.decode(errors="replace").splitlines() if line.startswith(_MARK)]
    try:
        return Answer.model_validate_json(lines[-1].removeprefix(_MARK))
    except (IndexError, ValidationError):
        words = err.decode(errors="replace").strip().splitlines() or ["no answer"]
        raise FleetmarkError(f"could not be cleaned: {words[-1][:300]}") from None


def outcome_of(host: str, work: str, answer: Answer, dry_run: bool) -> Cleaned:
    """Return the outcome for a host whose agent answered. ``work``: the host's work directory."""
    if answer.absent:
        return Cleaned(host, f"has no files in {work}", True)
    if answer.error:
        return Cleaned(host, f"left as it is: {answer.error}", False)
    things = f"{human(answer.bytes, 'B')} in {work}"
    if answer.kept:
        return Cleaned(host, f"removed {things}, but not {answer.kept}", False)
    if answer.packages:
        things += f" and the {'package' if len(answer.packages) == 1 else 'packages'} {_names(answer.packages)}"
    if answer.results:
        things += f", with results of {_names(answer.results)} that were not collected"
    return Cleaned(host, f"{'would remove' if dry_run else 'removed'} {things}", True)


def _names(names: Sequence[str]) -> str:
    """Return at most MOST_NAMED names, each cut to MOST_NAME characters, because the host may not be honest."""
    further = f" and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else ""
    return ", ".join(name[:MOST_NAME] for name in names[:MOST_NAMED]) + further


def show(cleaned: Sequence[Cleaned], console: Console) -> None:
    """Print one line for each different outcome, with its hosts."""
    hosts_by_text: dict[str, list[str]] = {}
    for c in cleaned:
        hosts_by_text.setdefault(c.text, []).append(c.host)
    for text, hosts in hosts_by_text.items():
        names = ", ".join(hosts[:10]) + (f" and {len(hosts) - 10} more" if len(hosts) > 10 else "")
        console.print(f"{names}: {text}", soft_wrap=True, markup=False, highlight=False)
