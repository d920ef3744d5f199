"""Find hosts that are slow with all others but not with each other, because they share something without a label."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence

Pair = frozenset[str]
Fast = Callable[[str, Sequence[str]], Collection[str]]

MOST_SETS = 4  # maximum number of sets, so that many faulty hosts need few runs


def gathered(hosts: Sequence[str], fast_with: Fast) -> list[list[str]]:
    """Return the sets of at least two hosts that are fast with each other.

    A host with a fault of its own is slow with any other host, so it is in no set. ``fast_with`` runs a host with
    others and returns those with which it is fast.
    """
    left, sets = list(hosts), []
    for _ in range(MOST_SETS):
        if len(left) < 2:
            break
        first, *left = left
        if near := set(fast_with(first, left)):
            sets.append([first, *(h for h in left if h in near)])
            left = [h for h in left if h not in near]
    return sets


def components(hosts: Iterable[str], fast: Iterable[Pair]) -> list[list[str]]:
    """Return the connected components of the graph of fast pairs, the largest first."""
    component = {host: [host] for host in hosts}
    for pair in fast:
        one, other = (component[host] for host in sorted(pair))
        if one is not other:
            one += other
            component |= dict.fromkeys(other, one)
    distinct = {id(members): sorted(members) for members in component.values()}
    return sorted(distinct.values(), key=lambda members: (-len(members), members))
