"""Select machines by labels and facts: ``gen=icelake``, ``site=ams,cpu.cores>=64``."""

from __future__ import annotations

import fnmatch
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, get_args

from pydantic import BaseModel

from fleetmark.base.errors import FleetmarkError, suggest
from fleetmark.base.facts import Facts
from fleetmark.base.patterns import limited

_TERM = re.compile(r"\s*([\w.-]+)\s*(>=|<=|!=|=|>|<)\s*(.*?)\s*", re.DOTALL)
_NEXT = re.compile(r",(?=\s*[\w.-]+\s*[><!=])")  # other commas belong to the value: Gen11 (2.25 GHz, AMD EPYC 9634)
_COMPARE: Mapping[str, Callable[[float, float], bool]] = {
    ">=": lambda a, b: a >= b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    "<": lambda a, b: a < b,
}
_SHOWN = 8  # values named if nothing matches


@dataclass(frozen=True, slots=True)
class Machine:
    """A host of a campaign, or a machine of an imported table, with the values that selectors use.

    ``facts`` reads the facts; it is called only if a selector needs them. ``address``: the address of the host;
    ``shares``: the shares of the host to which its campaign was held.
    """

    campaign: str
    host: str
    labels: Mapping[str, str]
    facts: Callable[[], Facts | None]
    _: KW_ONLY
    address: str = ""
    shares: str = ""

    def values(self, key: str) -> list[str]:
        """Return the values of ``key``: ``host``, ``campaign``, a label, or a path into the facts (``gpus.name``)."""
        if key in ("host", "campaign"):
            return [self.host if key == "host" else self.campaign]
        if key in self.labels:
            return [self.labels[key]]
        if key.split(".", maxsplit=1)[0] in Facts.model_fields:
            return sorted(set(_leaves(self.facts(), key.split("."))))
        return []


def _leaves(value: Any, path: Sequence[str]) -> Iterable[str]:
    """Yield the scalars at ``path``; for a list, those of each item."""
    if isinstance(value, tuple | list):
        for item in value:
            yield from _leaves(item, path)
    elif path:
        inner = value.get(path[0]) if isinstance(value, Mapping) else getattr(value, path[0], None)
        yield from _leaves(inner, path[1:])
    elif value is not None and not isinstance(value, BaseModel | Mapping):
        yield str(value)


@dataclass(frozen=True, slots=True)
class Term:
    """A condition: a key, an operator (= != >= <= > <) and a value; = and != accept shell-style patterns."""

    key: str
    operator: str
    value: str

    def matches(self, machine: Machine) -> bool:
        values = machine.values(self.key)
        if self.operator == "=":
            return any(self._is(v) for v in values)
        if self.operator == "!=":
            return not any(self._is(v) for v in values)
        limit = float(self.value)
        return any(_COMPARE[self.operator](number, limit) for v in values if (number := _number(v)) is not None)

    def _is(self, value: str) -> bool:
        return value == self.value or fnmatch.fnmatchcase(value, self.value)  # [MAXSUN] is a name and a pattern


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def parse(text: str) -> tuple[Term, ...]:
    """Return the conditions of a selector, which must all hold. Raise FleetmarkError for an invalid one."""
    terms = []
    for part in _NEXT.split(text):
        match = _TERM.fullmatch(part)
        if not match or not match[3]:
            raise FleetmarkError(
                f"selector {text!r}: {part.strip()!r} is not key=value; write gen=genoa, or site=ams,cpu.cores>=64"
            )
        term = Term(match[1], match[2], match[3])
        if term.operator in _COMPARE and _number(term.value) is None:
            raise FleetmarkError(f"selector {text!r}: {term.value!r} is not a number to compare {term.key} with")
        terms.append(term)
    return tuple(terms)


def choose(machines: Sequence[Machine], text: str) -> list[Machine]:
    """Return the machines that ``text`` selects. If none match, raise FleetmarkError with values that would."""
    terms = parse(text)
    if not machines:
        raise FleetmarkError(f"selector {text!r}: no machine is recorded; use `fleetmark run` or `import` first")
    left = list(machines)
    for term in terms:
        if term.operator == "!=" and not _is_path(Facts, term.key.split(".")) and not _any_has(term.key, machines):
            raise FleetmarkError(f"selector {text!r}: {_what_would(term, machines)}")
        kept = [m for m in left if term.matches(m)]
        if not kept:
            raise FleetmarkError(f"selector {text!r} matches no machine: {_what_would(term, left)}")
        left = kept
    return left


def within(machines: Sequence[Machine], limit: str) -> list[Machine]:
    """Return the machines that ``--limit`` chooses: a selector, or an Ansible pattern of host names.

    Raise FleetmarkError if none match.
    """
    if re.search("[=<>]", limit) and not limit.startswith(("~", "@")):
        return choose(machines, limit)
    names = set(limited([m.host for m in machines], limit))
    return [m for m in machines if m.host in names]


def _any_has(key: str, machines: Sequence[Machine]) -> bool:
    return any(m.values(key) for m in machines)


def _is_path(model: Any, path: Sequence[str]) -> bool:
    """Return whether facts have that path, even if no host has a value."""
    field = model.model_fields.get(path[0])
    if field is None or len(path) == 1:
        return field is not None
    inner = [t for t in (field.annotation, *get_args(field.annotation)) if isinstance(t, type)]
    models = [t for t in inner if issubclass(t, BaseModel)]
    return not models or any(_is_path(t, path[1:]) for t in models)


def distinct_names(machines: Sequence[Machine], *, by_id: bool = False) -> dict[tuple[str, str], str]:
    """Return a distinct name for each (campaign, host): the host's, extended if different machines share it.

    Machines with the same name and address are the same. Facts are read if addresses differ, because a machine may have
    moved. With ``by_id``, they are read for every name in several campaigns, because two sites may use one address.
    """
    of_name: dict[str, list[Machine]] = {}
    for machine in {(m.campaign, m.host): m for m in machines}.values():
        of_name.setdefault(machine.host, []).append(machine)
    names = {}
    for name, namesakes in of_name.items():
        doubtful = len({m.address for m in namesakes if m.address}) > 1 or (by_id and len(namesakes) > 1)
        marks = _marks(namesakes) if doubtful else {}
        shown = {mark: m.address for m in namesakes if (mark := marks.get(m.campaign))}
        if len(set(shown.values())) < len(shown):
            shown = {mark: mark[:12] for mark in shown}
        for m in namesakes:
            mark = marks.get(m.campaign)
            names[m.campaign, name] = f"{name} ({shown[mark]})" if mark and len(shown) > 1 else name
    return names


def _marks(namesakes: Sequence[Machine]) -> dict[str, str]:
    """Return the machine ID, or else the address, of the machine by campaign.

    ``namesakes``: machines of the same name.
    """
    ids = {m.campaign: f.machine_id for m in namesakes if (f := m.facts()) and f.machine_id}
    ids_by_address = {m.address: ids[m.campaign] for m in namesakes if m.campaign in ids}
    return {m.campaign: ids.get(m.campaign) or ids_by_address.get(m.address) or m.address for m in namesakes}


def _what_would(term: Term, machines: Sequence[Machine]) -> str:
    counts = Counter(v for m in machines for v in m.values(term.key))
    if not counts:
        keys = sorted({key for m in machines for key in m.labels} | {"host", "campaign"})
        return (
            f"none has {term.key}{suggest(term.key, [*keys, *Facts.model_fields])}; "
            f"labels are {', '.join(keys)}, and facts are paths (cpu.model, gpus.name)"
        )
    listed = ", ".join(f"{term.key}={v} ({n})" for v, n in counts.most_common(_SHOWN))
    return f"there are {listed}{', …' if len(counts) > _SHOWN else ''}"
