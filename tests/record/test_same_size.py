"""Test which divisor makes machines of unequal size comparable."""

from __future__ import annotations

import pytest

from fleetmark.base.facts import Cpu, Gpu
from fleetmark.record.select import Machine
from fleetmark.record.sides.same_size import divisor
from tests.schedules import facts


def machine(name: str, sockets: int, gpus: int = 0, cores: int = 64) -> Machine:
    """Return a host of a campaign."""
    known = facts(
        cpu=Cpu(sockets=sockets, cores=cores), gpus=tuple(Gpu(index=n, name="x", vendor="y") for n in range(gpus))
    )
    return Machine("c", name, {}, lambda: known)


@pytest.mark.parametrize(
    ("old", "new", "has_gpus", "per"),
    [
        ((2, 0), (1, 0), False, "socket"),
        ((2, 0), (2, 0), False, ""),
        ((2, 4), (2, 8), True, "gpu"),
        ((2, 4), (2, 8), False, ""),  # nothing ran on accelerators
        ((2, 8), (2, 8), True, ""),
        ((2, 0), (1, 8), True, "socket"),  # one side has no accelerators to divide by
    ],
)
def test_own_servers_of_unequal_size_have_a_divisor(
    old: tuple[int, int], new: tuple[int, int], has_gpus: bool, per: str
) -> None:
    sides = [[machine(f"{name}{n}", *size) for n in range(3)] for name, size in (("o", old), ("n", new))]
    assert divisor(sides, has_gpus=has_gpus, has_cores=True) == per


def test_whole_servers_may_differ_in_cores() -> None:
    sides = [[machine("o", 2, cores=32)], [machine("n", 2, cores=128)]]
    assert divisor(sides, has_gpus=False, has_cores=True) == ""


def test_mixed_sides_have_no_divisor() -> None:
    sides = [[machine("o", 2), machine("p", 1)], [machine("n", 1)]]
    assert divisor(sides, has_gpus=False, has_cores=True) == ""
