"""Find the selectors and the divisor that repeat a comparison of unequal machine sizes at equal size."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from fleetmark.record import imports
from fleetmark.record.select import Machine, Term
from fleetmark.record.sides.amounts import amount_of
from fleetmark.record.sides.mixtures import MOST_FACTS
from fleetmark.record.sides.strata import Strata

_FACTS: Mapping[str, Sequence[str]] = {"sockets": ("cpu.sockets",), "cores": ("cpu.cores",)}
_PER = ("gpu", "socket", "core")  # divisors that make machines of different sizes comparable


def conditions(strata: Strata, measured: Sequence[Sequence[Machine]]) -> tuple[str, str] | None:
    """Return the conditions that select the only stratum from the baseline and from the candidate.

    ``measured``: the machines of both sides. Return None if there are several strata, if all machines are in the
    stratum, or if no condition on labels or facts selects it.
    """
    if len(strata.keys) != 1:
        return None
    (stratum,) = strata.keys.values()
    halves = (stratum.baseline, stratum.candidate)
    if all(len(half) == len(side) for half, side in zip(halves, measured, strict=True)):
        return None
    written = []
    for half, side in zip(halves, measured, strict=True):
        terms = [next(_terms(trait, half[0]), None) for trait in strata.traits]
        known = [term for term in terms if term is not None]
        if len(known) < len(terms) or [m for m in side if all(term.matches(m) for term in known)] != list(half):
            return None
        written.append(",".join(f"{term.key}={term.value}" for term in known))
    return written[0], written[1]


def _terms(trait: str, example: Machine) -> Iterator[Term]:
    """Yield the conditions on labels and facts that give the size of a machine."""
    labels = [label for label, counted in imports.SIZES.items() if counted == trait]
    for key in (*labels, *_FACTS.get(trait, ())):
        for value in example.values(key):
            yield Term(key, "=", value)


def divisor(sides: Sequence[Sequence[Machine]], *, has_gpus: bool, has_cores: bool) -> str:
    """Return the divisor that makes machines of unequal size comparable, or nothing.

    The divisor is the first of ``gpu``, ``socket`` and ``core`` whose numbers do not overlap between sides, if the
    number is known for every machine. ``has_gpus``: whether benchmarks of accelerators are compared. ``has_cores``:
    whether cores are the only size to compare. Servers of campaigns are compared whole, whatever their number of cores.
    """
    is_published = all(imports.publisher(side) for side in sides)
    left_out = {"gpu" if not has_gpus and not is_published else "", "core" if not (has_cores and is_published) else ""}
    for per in (per for per in _PER if per not in left_out):
        steps = [max(1, -(-len(side) // MOST_FACTS)) for side in sides]
        sizes = [{amount_of(m, per) for m in side[::step]} for side, step in zip(sides, steps, strict=True)]
        if None not in set().union(*sizes) and not set.intersection(*sizes):
            return per
    return ""
