"""Warn about clusters of similar hosts, and about groups of benchmarks that no host ran together."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from fleetmark.base.text import Message, count, joined, message
from fleetmark.base.words import word
from fleetmark.planner.clustered import Clusters
from fleetmark.planner.equivalence import Equivalence

MOST_NAMED = 2  # maximum number of benchmarks named per group


def of_hosts(baseline: str, candidate: str, classes: Mapping[str, Equivalence]) -> Iterator[Message]:
    """Yield a warning for each side with an interval that counts clusters, or with benchmarks in separate groups."""
    for name, e in classes.items():
        for side, clusters, halves in zip((baseline, candidate), e.clusters, e.halves, strict=True):
            if clusters is not None and e.headline is not None and e.headline.clusters:
                yield _by_clusters(word(name), side, clusters)
            if len(halves) > 1:
                yield _in_halves(word(name), side, halves)


def _by_clusters(class_: str, side: str, clusters: Clusters) -> Message:
    number, one = numbered(clusters)
    return message(
        "{class_}: the interval counts {number} of {side}; hosts with the same {one} are similar (ICC {icc})",
        class_=class_,
        number=number,
        side=side,
        one=one,
        icc=f"{clusters.icc:.1f}",
    )


def numbered(clusters: Clusters) -> tuple[Message, str]:
    """Return a count with its noun, such as ``4 batches``, and the noun in the singular, such as ``batch``."""
    match clusters.kind:
        case "batch":
            return count(clusters.number, "batch", "batches"), message("batch")
        case "rack":
            return count(clusters.number, "rack"), message("rack")
        case "bios":
            return count(clusters.number, "BIOS version"), message("BIOS version")
        case "microcode":
            return count(clusters.number, "microcode version"), message("microcode version")
    return count(clusters.number, "cluster"), clusters.kind


def _in_halves(class_: str, side: str, halves: Sequence[Sequence[str]]) -> Message:
    one, other = (joined(half[:MOST_NAMED]) + (" …" if len(half) > MOST_NAMED else "") for half in halves[:2])
    return message(
        "{class_}: no host of {side} ran both {one} and {other}; run one of them on a host that ran the other",
        class_=class_,
        side=side,
        one=one,
        other=other,
    )
