"""Grade operators by their share of their device's roofline and by their rate compared with a pinned reference.

Functions are pure. Workloads are graded if their manifest declares the roof of a metric. A class is a case of the
suite; its operators are the cases that the parser derives from it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pandas as pd

from fleetmark.base.measurement import Better
from fleetmark.base.text import Message, message
from fleetmark.reports.campaign.ratios import ratio_of
from fleetmark.reports.campaign.view import View
from fleetmark.reports.kit import format as fmt
from fleetmark.workloads import declared

if TYPE_CHECKING:
    from fleetmark.planner.comparison import Comparison

GRADES = ((0.8, "A"), (0.6, "B"), (0.4, "C"), (0.2, "D"), (0.0, "E"))
WORST = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Graded:
    """The grade of one operator on one side.

    ``share``: the share of the roof, at most 1. ``balance``: below 1, memory limits the rate; above 1, compute does.
    ``score``: the ratio of its rate to the reference's rate, above 1 is better; None without a reference.
    ``launch``: the host's time to start a call over the device's time, None if unknown. ``is_graph``: whether the share
    is based on the time of a graph of the device.
    """

    workload: str
    side: str
    group: str
    operator: str
    share: float
    balance: float
    score: float | None = None
    launch: float | None = None
    is_graph: bool = False

    @property
    def is_launch_bound(self) -> bool:
        return self.launch is not None and self.launch >= 1

    @property
    def grade(self) -> str:
        return grade_of(self.share)


@dataclass(frozen=True, slots=True, kw_only=True)
class GradedClass:
    """A class of ``n`` operators: the geometric means of their shares, and of ``scored`` scores."""

    workload: str
    side: str
    group: str
    n: int
    share: float
    score: float | None
    scored: int
    counts: Mapping[str, int]

    @property
    def grade(self) -> str:
        return grade_of(self.share)


@dataclass(frozen=True, slots=True)
class Grades:
    """All graded operators and classes.

    ``operators`` and ``classes`` are in the order of the record. ``worst``: the operators with the lowest score if
    there is a ``reference``, otherwise with the lowest share.
    """

    operators: tuple[Graded, ...]
    classes: tuple[GradedClass, ...]
    worst: tuple[Graded, ...]
    reference: str = ""


NONE = Grades((), (), ())


def grade_of(share: float) -> str:
    """Return the grade: A from 80% of the roof, B from 60%, C from 40%, D from 20%, otherwise E."""
    return next(letter for least, letter in GRADES if share >= least)


def scale() -> Message:
    """Return a sentence that explains the grades."""
    return message("A from 80% of the roof, B from 60%, C from 40%, D from 20%, E below.")


def grades(view: View, pinned: Comparison | None = None) -> Grades:
    """Return the graded operators of ``view``.

    ``pinned``: the comparison of the campaign's only side with a reference, by the rates of operators.
    """
    graded = tuple(_graded(view, pinned))
    if not graded:
        return NONE
    keys = dict.fromkeys((g.workload, g.side, g.group) for g in graded)
    classes = tuple(_class(key, [g for g in graded if (g.workload, g.side, g.group) == key]) for key in keys)
    scored = any(g.score is not None for g in graded)
    by_score = [g for g in graded if g.score is not None]
    worst = sorted(by_score, key=lambda g: g.score or 0.0) if scored else sorted(graded, key=lambda g: g.share)
    return Grades(graded, classes, tuple(worst[:WORST]), pinned.baseline if scored and pinned else "")


def _graded(view: View, pinned: Comparison | None) -> Iterator[Graded]:
    of_one = len(view.hosts) == 1
    frame = view.merged if of_one else view.generational
    ratio_to = ratio_of(pinned if of_one or len(view.generations) == 1 else None)
    for (workload, name), metric in declared.roofs(map(str, frame["workload"].unique())).items():
        mine = frame[(frame["workload"] == workload) & (frame["subject"] == "host")]
        shares, balances = mine[mine["metric"] == name], _by_place(mine[mine["metric"] == metric.roof])
        launch = metric.launch
        ratios, graphs = (
            _by_place(mine[mine["metric"] == m]) for m in ((launch.ratio, launch.graph) if launch else ("", ""))
        )
        rated = _rated(mine)
        for r in shares.to_dict("records"):
            side = "" if of_one else view.title_of(str(r["generation"] or ""))
            place = (side if of_one else str(r["generation"] or ""), str(r["case"]))
            group, _, operator = str(r["case"]).partition("/")
            if place not in balances or not r["value"] > 0:
                continue
            scores = [row.ratio for x in rated.get(place[1], ()) if (row := ratio_to(x))]
            score = next((ratio for ratio in scores if ratio), None)
            yield Graded(
                workload=fmt.clean(workload),
                side=fmt.clean(side),
                group=fmt.clean(group),
                operator=fmt.clean(operator),
                share=min(float(r["value"]), 1.0),
                balance=float(balances[place]),
                score=score,
                launch=ratios.get(place),
                is_graph=place in graphs,
            )


def _by_place(rows: pd.DataFrame) -> dict[tuple[str, str], float]:
    generations = rows["generation"].fillna("") if "generation" in rows else [""] * len(rows)
    return dict(zip(zip(generations, rows["case"], strict=True), rows["value"], strict=True))


def _rated(rows: pd.DataFrame) -> dict[str, list[Mapping[str, object]]]:
    """Return the rows of each case whose metrics have a direction, to compare them with a reference."""
    of_case: dict[str, list[Mapping[str, object]]] = {}
    for r in rows[rows["better"] != Better.NONE].to_dict("records"):
        of_case.setdefault(str(r["case"]), []).append({str(k): v for k, v in r.items()})
    return of_case


def _class(key: tuple[str, str, str], members: Sequence[Graded]) -> GradedClass:
    scores = [g.score for g in members if g.score]
    workload, side, group = key
    return GradedClass(
        workload=workload,
        side=side,
        group=group,
        n=len(members),
        share=_mean([g.share for g in members]),
        score=_mean(scores) if scores else None,
        scored=len(scores),
        counts={letter: sum(g.grade == letter for g in members) for _, letter in GRADES},
    )


def _mean(values: Sequence[float]) -> float:
    """Return the geometric mean."""
    return math.exp(sum(map(math.log, values)) / len(values))
