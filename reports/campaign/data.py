"""Export a campaign for programs: its first screen, its tables, every outcome and every measurement."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from fleetmark.reports.campaign import headlines, status
from fleetmark.reports.campaign.against import Against
from fleetmark.reports.campaign.front import machines
from fleetmark.reports.campaign.front import status as status_of
from fleetmark.reports.campaign.problems import Problem
from fleetmark.reports.campaign.view import View, footnotes
from fleetmark.reports.kit.document import Section, in_json
from fleetmark.reports.kit.tabular import records as rows_of

_RUNS = 20_000  # outcomes read per batch


class Records:
    """Records that are created each time they are read."""

    def __init__(self, make: Callable[[], Iterator[dict[str, Any]]]) -> None:
        self.make = make

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return self.make()


def _records(frames: Iterable[pd.DataFrame]) -> Iterator[dict[str, Any]]:
    """Yield the rows of frames. Numbers have every digit; a missing value is None."""
    for frame in frames:
        rows: list[dict[str, Any]] = frame.astype(object).where(frame.notna(), None).to_dict("records")  # type: ignore[assignment]
        yield from rows


def record(
    view: View,
    problems: Sequence[Problem],
    odd: Sequence[str],
    steps: Sequence[tuple[str, str]],
    against: Against,
    parts: Mapping[str, Sequence[Section]],
    page: Path | None,
) -> dict[str, Any]:
    """Return the campaign as JSON members.

    ``parts``: sections that become separate members. ``page``: the path of the HTML page, if one was written.
    """
    results = view.results
    return {
        "campaign": results.campaign.id,
        "path": str(results.campaign.path),
        "page": page and str(page.resolve()),
        "finished": results.campaign.finished,
        "status": status_of(view),
        "machines": list(machines(view)),
        "means": list(against.means),
        "odd": list(odd),
        "next": [{"advice": advice, "command": command} for advice, command in steps],
        "notes": list(results.campaign.notes),
        "sha256": dict(sorted(results.campaign.hashes.items())),
        "footnotes": footnotes(results.values.distinct("standing")["standing"]),
        **{key: documents for key, sections in parts.items() if (documents := in_json(sections))},
        "headlines": Records(lambda: iter(rows_of(headlines.table(view, against, view.headlines).for_format("json")))),
        "causes": rows_of(status.causes_table(problems)),
        "outcomes": Records(lambda: _records(_slices(results.outcomes))),
        "measurements": Records(lambda: _records(results.values.parts())),
    }


def _slices(outcomes: pd.DataFrame) -> Iterator[pd.DataFrame]:
    for n in range(0, len(outcomes), _RUNS):
        yield outcomes.iloc[n : n + _RUNS]
