"""Name the sides of a comparison by the values that distinguish them, instead of by their selectors.

``accelerator=NVIDIA H200-SXM-141GB,gpus=8`` becomes ``H200-SXM-141GB x8``, and ``gen=genoa`` becomes ``genoa``. If two
sides would get the same name, longer names are used, up to the full selector.
"""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from fleetmark.base.errors import FleetmarkError
from fleetmark.base.text import Message, message
from fleetmark.record import imports
from fleetmark.record.select import Machine, Term, parse

# Keys in inventories, facts and imported tables that name the kind of a machine, and keys that count its parts.
_KIND = ("gen", "generation", "host", "product", "cpu.model", "gpus.name", *imports.KIND)
_COUNTS = {"cpu.sockets": "cpu.model", **imports.COUNTS}
_MAKER = re.compile(r"(?:NVIDIA|AMD|Intel(?: Corporation)?)(?:\((?:R|TM)\))?\s+(?=\S)", re.IGNORECASE)
_TRADEMARK = re.compile(r"\((?:R|TM|C)\)", re.IGNORECASE)
_CLOCK = re.compile(r"\s*(?:CPU\s*)?@\s*[0-9.]+\s*[GM]Hz|\s+[0-9]+-Core Processor|\s+(?:CPU|Processor)$", re.IGNORECASE)
_CAMPAIGN = re.compile(r"([0-9]{8})T([0-9]{6})-(.+)-[0-9a-f]{4}", re.ASCII)  # date, time and suite of a campaign id
_PLAIN = re.compile(r"[0-9.]*|true|false|yes|no", re.IGNORECASE)  # a value that is meaningless without its key


@dataclass(frozen=True, slots=True)
class Names:
    """The names of sides.

    ``short``: selector to name. ``selectors``: name to selector. ``notes``: sentences that list the conditions missing
    from the names.
    """

    short: Mapping[str, str] = field(default_factory=dict)
    selectors: Mapping[str, str] = field(default_factory=dict)
    notes: Sequence[Message] = ()


@dataclass(frozen=True, slots=True)
class _Side:
    """A selector, all its conditions, the conditions that not all sides share, and its machines."""

    selector: str
    terms: tuple[Term, ...]
    distinguishing: tuple[Term, ...]
    machines: Sequence[Machine]


def names(chosen: Mapping[str, Sequence[Machine]], wished: Sequence[str] = (), taken: Sequence[str] = ()) -> Names:
    """Return a name for each selector in ``chosen``, which maps selectors to machines.

    ``wished``: the user's names, in the order of ``chosen``; Fleetmark chooses a name for an empty one. ``taken``:
    names already in use, such as a pinned reference's. Raise FleetmarkError for too many names or a repeated name.
    """
    _check(wished, len(chosen), taken)
    terms = {selector: parse(selector) for selector in chosen}
    shared = [
        t
        for t in next(iter(terms.values()))
        if len(chosen) > 1 and all(t in terms_of_side for terms_of_side in terms.values())
    ]
    sides = [
        _Side(s, terms_of_side, tuple(t for t in terms_of_side if t not in shared), chosen[s])
        for (s, terms_of_side) in terms.items()
    ]
    fixed = {selector: name for selector, name in zip(chosen, wished, strict=False) if name}
    short = {s.selector: s.selector for s in sides}
    for level in (_kind, _values, _conditions):
        candidates = {s.selector: fixed.get(s.selector) or level(s) for s in sides}
        if all(candidates.values()) and len({*candidates.values(), *taken}) == len(candidates) + len(taken):
            short = candidates
            break
    else:
        short |= fixed
    return Names(short, {name: selector for selector, name in short.items()}, _notes(sides, short, shared))


def _check(wished: Sequence[str], sides: int, taken: Sequence[str]) -> None:
    if len(wished) > sides:
        raise FleetmarkError(
            f"--name: {len(wished)} names for {sides} sides; "
            "give one for the baseline, then one for each candidate in order"
        )
    named = [name for name in (*taken, *wished) if name]
    if twice := [name for n, name in enumerate(named) if name in named[:n]]:
        raise FleetmarkError(f"--name {twice[0]}: two sides have this name; give each side its own name")
    if odd := [name for name in wished if not name.isprintable()]:
        raise FleetmarkError(f"--name {odd[0]!r}: not a name; use one line of text")


def _kind(side: _Side) -> str:
    """Return the kind of the side's machines, with the number of CPUs or accelerators of each."""
    equal_terms = [t for t in side.distinguishing if t.operator == "="]
    every = [t for t in side.terms if t.operator == "="]
    counts = {_COUNTS[t.key]: t.value for t in every if t.key in _COUNTS and t.value.isdecimal()}
    counted = {_COUNTS[t.key] for t in equal_terms if t.key in _COUNTS}
    kinds = [t for t in every if t.key in _KIND and (t in equal_terms or t.key in counted)]
    parts = []
    for t in kinds:
        count = counts.get(t.key) or (next(iter(counts.values())) if len(kinds) == len(counts) == 1 else "")
        name = tidy(_value(side, t))
        parts.append(f"{name} x{count}" if name and count and f"x{count}" not in name else name)
    return ", ".join(dict.fromkeys(filter(None, parts)))


def _values(side: _Side) -> str:
    """Return the kind, and the values of the other conditions that the other sides lack."""
    kind = _kind(side)
    rest = [t for t in side.distinguishing or side.terms if t.key not in _COUNTS and not (kind and t.key in _KIND)]
    return ", ".join(filter(None, [kind, *(_term(side, t) for t in rest)]))


def _conditions(side: _Side) -> str:
    return _written(side.distinguishing or side.terms)


def _term(side: _Side, term: Term) -> str:
    if term.key == "campaign" and term.operator == "=" and (match := _CAMPAIGN.fullmatch(term.value)):
        day, clock, suite = match.groups()
        return f"{suite} {day[:4]}-{day[4:6]}-{day[6:]} {clock[:2]}:{clock[2:4]}"
    value = tidy(_value(side, term))
    if term.operator != "=" or _PLAIN.fullmatch(value):
        return f"{term.key}{term.operator}{term.value}"
    return value


def _value(side: _Side, term: Term) -> str:
    """Return the value of a condition. For a pattern, return the one value that all machines share, else the pattern
    itself.
    """
    if not re.search(r"[*?\[]", term.value):
        return term.value
    labels = {m.labels[term.key] for m in side.machines if term.key in m.labels}
    values = {v for v in labels if fnmatch.fnmatchcase(v, term.value)}
    if len(values) == 1:
        return values.pop()
    words = " ".join(part.strip() for part in term.value.split("*")).strip(" .-_")
    return words if any(c.isalnum() for c in words) else ""


def tidy(value: str) -> str:
    """Remove the vendor, trademarks and clock rate: ``AMD EPYC 9654 96-Core Processor`` becomes ``EPYC 9654``."""
    text = " ".join(_CLOCK.sub("", _TRADEMARK.sub("", value)).split())
    return _MAKER.sub("", text, count=1) if _MAKER.match(text) else text or value


def _written(terms: Sequence[Term]) -> str:
    return ",".join(f"{t.key}{t.operator}{t.value}" for t in terms)


def _notes(sides: Sequence[_Side], short: Mapping[str, str], shared: Sequence[Term]) -> list[Message]:
    """Return the conditions that are missing from names: first the shared ones, then those of each side."""
    notes = [message("all sides: {terms}", terms=_written(shared))] if shared else []
    for side in sides:
        if short[side.selector] != side.selector and len(side.distinguishing) > 1:
            notes.append(message("{side}: {terms}", side=short[side.selector], terms=_written(side.distinguishing)))
    return notes
