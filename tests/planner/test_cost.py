"""Test what the same work costs, by hand and by the meaning of a break-even price."""

from __future__ import annotations

import pytest

from fleetmark.planner.cost import Offer, Terms, break_even, cost, needed
from fleetmark.planner.estimate import Estimate

TWO = Estimate(2.0, 1.8, 2.25)


def test_servers_are_whole() -> None:
    assert [needed(100, ratio) for ratio in (2.0, 1.9, 3.0, 100 / 25.0000001)] == [50, 53, 34, 25]


def test_a_purchase_without_years_has_no_cost_per_year() -> None:
    spent = cost(Offer(price=9000, watts=500), 100, Terms())
    assert (spent.total, spent.yearly, spent.lifetime, spent.power) == (900_000, None, None, 50_000)
    assert break_even(TWO, Offer(price=9000), Offer(price=15_500), Terms()) == Estimate(18_000, 16_200, 20_250)


def test_years_and_energy_by_hand() -> None:
    """9,000 / 4 = 2,250 a year, and 0.5 kW x 8,766 h x 0.25 = 1,095.75."""
    terms = Terms(years=4, energy=0.25, currency="EUR")
    spent = cost(Offer(price=9000, watts=500, rack_units=2), 10, terms)
    assert spent.yearly == pytest.approx(10 * (2250 + 1095.75))
    assert spent.lifetime == pytest.approx(40 * (2250 + 1095.75))
    assert spent.rack_units == 20


def test_a_price_for_an_hour_costs_8766_times_as_much_in_a_year() -> None:
    rented = Offer(price=2.5, hours=1)
    assert cost(rented, 3, Terms()).yearly == pytest.approx(3 * 2.5 * 8766)
    even = break_even(TWO, rented, Offer(price=None, hours=1), Terms())
    assert even is not None and even.value == pytest.approx(5.0)


@pytest.mark.parametrize("hours", [None, 1.0, 730.5])
@pytest.mark.parametrize("energy", [None, 0.3])
def test_at_the_break_even_price_the_same_work_costs_the_same(hours: float | None, energy: float | None) -> None:
    terms = Terms(years=5, energy=energy)
    base, other = Offer(price=800, hours=hours, watts=450), Offer(price=None, hours=hours, watts=700)
    even = break_even(TWO, base, other, terms)
    assert even is not None
    at_even = cost(Offer(price=even.value, hours=hours, watts=700), 1, terms)
    before = cost(base, 2, terms)
    assert at_even.yearly == pytest.approx(before.yearly)


def test_a_candidate_whose_energy_alone_costs_more_has_no_break_even_price() -> None:
    terms = Terms(years=1, energy=1.0)
    assert break_even(Estimate(1.0), Offer(price=10, watts=100), Offer(price=None, watts=5000), terms) is None
