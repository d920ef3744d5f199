"""A sample of ``benchmarks.faults``: campaigns under faults at random moments are resumed, and nothing is lost."""

from __future__ import annotations

import pytest

from benchmarks.faults import play
from benchmarks.faults.places import Place
from benchmarks.faults.strikes import STRIKES
from tests.fleet.hosts import Fleet

pytestmark = pytest.mark.fleet
SAMPLE = [("controller killed", "cable cut and healed"), ("journal cut",), ("controller's disk full", "job killed")]


@pytest.mark.parametrize("names", SAMPLE, ids=" and ".join)
def test_a_struck_campaign_is_resumed_without_loss(fleet: Fleet, names: tuple[str, ...]) -> None:
    assert set(names) <= set(STRIKES)
    assert play(Place(over="ssh", fleet=fleet), 0, seed=1, names=names).problems == ()
