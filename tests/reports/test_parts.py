"""Test that figures read in parts give the same view and first screen as a single frame."""

from __future__ import annotations

import pandas as pd
import pytest

from fleetmark.record.figures import hosts
from fleetmark.reports.campaign.against import against
from fleetmark.reports.campaign.deviation import Deviations
from fleetmark.reports.campaign.front import anomalies, status
from fleetmark.reports.campaign.headlines import first_table
from fleetmark.reports.campaign.view import headlines, meaning, view
from tests.records import plain
from tests.reports import sample


@pytest.mark.parametrize("make", [sample.six, lambda: sample.many(30)], ids=["six", "many"])
def test_parts_give_the_same_view_and_first_screen_as_one_frame(make, monkeypatch: pytest.MonkeyPatch) -> None:  # type: ignore[no-untyped-def]
    results = make()
    one = view(results)
    expected = (anomalies(one, Deviations(one)), first_table(one, against(one)), status(one), meaning(one))
    monkeypatch.setattr(hosts, "_AT_ONCE", 300)
    parts = view(results)
    assert len(list(parts.of_merged)) > 1
    for name in ("stats", "merged", "generational"):
        shown, as_one = (plain(getattr(seen, name)) for seen in (parts, one))
        pd.testing.assert_frame_equal(shown, as_one, check_dtype=False, check_exact=False, rtol=1e-12)
    rows = pd.concat([plain(part) for part in parts.headlines_in_parts()], ignore_index=True)
    pd.testing.assert_frame_equal(
        rows, plain(headlines(one.merged)).reset_index(drop=True), check_dtype=False, rtol=1e-12
    )
    deviations = Deviations(parts)
    assert expected == (anomalies(parts, deviations), first_table(parts, against(parts)), status(parts), meaning(parts))
