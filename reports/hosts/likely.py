"""Describe a slow host and its likely cause in one sentence, and write the text of a ticket about it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from fleetmark.base.facts import Facts
from fleetmark.base.text import Message, joined, message
from fleetmark.planner.diagnosis.likely import LikelyCause
from fleetmark.reports.kit import format as fmt
from fleetmark.reports.kit.document import Block

MOST_MEASURED = 5  # maximum benchmarks in a ticket
EXPLAINED = 0.6  # minimum ratio of the expected loss to the measured loss for a fact to explain it


@dataclass(frozen=True, slots=True)
class Shortfall:
    """A benchmark in which a host is slow.

    ``loss``: the missing share. ``value``, ``usual``: the host's figure and the median of its peers, as text.
    """

    benchmark: str
    class_: str
    loss: float
    value: str
    usual: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SlowHost:
    """A host that is slower than its peers.

    ``sentence``: how much slower it is, such as ``n17 is 15% worse than the median of genoa``. ``causes``: the facts
    that may explain it, the most likely first. ``command``: the command that repeats its slow benchmarks.
    """

    host: str
    sentence: str
    facts: Facts | None
    causes: Sequence[LikelyCause]
    shortfalls: Sequence[Shortfall]
    command: str


def remedy(slow: SlowHost) -> Message:
    """Return the likely cause and what to do, for a reader who knows how slow the host is."""
    host = fmt.clean(slow.host)
    if slow.facts is None:
        return message("The facts of {host} are not recorded: repeat its slow benchmarks", host=host)
    if not slow.causes:
        return message("No recorded fact of {host} differs from its peers: repeat its slow benchmarks", host=host)
    first = slow.causes[0]
    values = {"host": host, "fact": fact(first), "why": strength(first, slow.shortfalls), "remedy": first.remedy}
    return message("{host} has {fact}: {why}; {remedy}, then repeat its slow benchmarks", **values)


def advice(slow: SlowHost) -> Message:
    """Return what is wrong with a host, the likely cause, and what to do, in one sentence."""
    if slow.facts is None:
        return message("{slow}; its facts are not recorded: repeat its slow benchmarks", slow=slow.sentence)
    if not slow.causes:
        return message(
            "{slow}; no recorded fact differs from its peers: repeat its slow benchmarks", slow=slow.sentence
        )
    first = slow.causes[0]
    values = {
        "slow": slow.sentence,
        "fact": fact(first),
        "why": strength(first, slow.shortfalls),
        "remedy": first.remedy,
    }
    return message("{slow} and has {fact}: {why}; {remedy}, then repeat its slow benchmarks", **values)


def fact(cause: LikelyCause) -> Message | str:
    """Return a fact with the value of the host's peers, such as ``boost off (peers: on)``."""
    if cause.usual is None:
        return fmt.clean(cause.fact)
    return message("{fact} (peers: {usual})", fact=fmt.clean(cause.fact), usual=fmt.clean(cause.usual))


def strength(cause: LikelyCause, shortfalls: Sequence[Shortfall]) -> Message:
    """Return whether a fact is a likely cause, its expected loss, and whether this explains the whole loss."""
    if not cause.is_likely:
        return message("possible cause")
    if cause.loss is None or cause.resource is None:
        return message("likely cause")
    values = {"loss": fmt.share(cause.loss, 0), "what": cause.resource}
    measured = max((s.loss for s in shortfalls), default=0.0)
    if cause.loss < EXPLAINED * measured:
        lost = fmt.share(measured, 0)
        return message(
            "a likely cause, but it explains only about {loss} of {what}, and the host lost up to {measured}",
            measured=lost,
            **values,
        )
    return message("likely cause, about {loss} of {what}", **values)


def ticket(slow: SlowHost, campaign: str) -> Block:
    """Return the text of a ticket about a host, for copying."""
    return Block(message("Ticket for {host}", host=fmt.clean(slow.host)), tuple(_lines(slow, campaign)))


def _lines(slow: SlowHost, campaign: str) -> Iterator[Message]:
    yield message("Host: {what}", what=joined([fmt.clean(slow.host), *_machine(slow.facts)]))
    yield message("Problem: {what}", what=slow.sentence)
    for s in slow.shortfalls[:MOST_MEASURED]:
        yield message(
            "Measured: {benchmark} {value}, median of peers {usual} ({loss} worse)",
            benchmark=s.benchmark,
            value=s.value,
            usual=s.usual,
            loss=fmt.share(s.loss, 0),
        )
    for cause in slow.causes[:MOST_MEASURED]:
        yield message("Differs from its peers: {fact} ({why})", fact=fact(cause), why=strength(cause, slow.shortfalls))
    if slow.causes:
        yield message("To do: {what}", what=slow.causes[0].remedy)
    yield message("Repeat with: {command}", command=fmt.clean(slow.command))
    yield message("Campaign: {what}", what=fmt.clean(campaign))


def _machine(facts: Facts | None) -> Iterator[str]:
    if facts is not None:
        yield from (fmt.clean(text) for text in (joined([facts.vendor, facts.product], " "),) if text)
        if facts.machine_id:
            yield message("machine ID {id}", id=fmt.clean(facts.machine_id))
