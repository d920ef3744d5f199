"""Draw the roofline chart of graded operators: each operator under the roof of its device and precision."""

from __future__ import annotations

from collections.abc import Iterator

from fleetmark.base.text import joined, message
from fleetmark.reports.campaign.grades import Graded, Grades
from fleetmark.reports.kit.charts import Chart
from fleetmark.reports.kit.language import Language
from fleetmark.reports.kit.roofline import Ceiling, Dot, roofline

_ROOF = (Ceiling("", 1.0, 1.0),)
LOWEST = 1e-4  # operations per byte relative to the device's balance, at which operators that only move data are drawn


def pictures(grades: Grades, language: Language | None = None) -> list[Chart]:
    """Return a chart for each workload and side."""
    _ = language or Language()
    keys = dict.fromkeys((g.workload, g.side) for g in grades.operators)
    return [_picture(key, grades, _) for key in keys]


def _picture(key: tuple[str, str], grades: Grades, _: Language) -> Chart:
    mine = [g for g in grades.operators if (g.workload, g.side) == key]
    titles = (
        _(message("operations per byte, relative to the point where computing becomes the limit")),
        _(message("share of the peak of its precision")),
    )
    note = message(
        "One dot per operator and precision. The line is the measured roof of this device: the memory rate on the "
        "left, and the rate of matrix products on the right. Operators that only move data are at the left edge."
    )
    return Chart(joined([key[0], key[1]], ": "), note, spec=lambda: roofline(_ROOF, list(_dots(mine)), *titles))


def _dots(operators: list[Graded]) -> Iterator[Dot]:
    for g in operators:
        x = max(g.balance, LOWEST)
        yield Dot(g.group, x, min(x, 1.0) * g.share, f"{g.operator}: {100 * g.share:.0f}%")
