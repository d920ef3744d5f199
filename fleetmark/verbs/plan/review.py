"""Implement ``fleetmark plan review``: measure delivered servers against a plan, and plan the rest again."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from rich.console import Console

from fleetmark.base.errors import FleetmarkError
from fleetmark.base.files import write_atomic
from fleetmark.base.text import message
from fleetmark.demand import saved
from fleetmark.demand.worth import Record
from fleetmark.planner.capacity.analysis.results import Conflict
from fleetmark.planner.capacity.answer import Answer
from fleetmark.planner.capacity.question import Plan, Question
from fleetmark.planner.capacity.uncertainty import futures
from fleetmark.planner.review.later import plan_from, question_from
from fleetmark.planner.review.lots import Delivery, deliveries
from fleetmark.planner.review.origin import Origin
from fleetmark.planner.review.posterior import Measurement
from fleetmark.planner.review.review import Review, findings, replanned, updated, updates
from fleetmark.record.campaigns import find
from fleetmark.reports.kit.language import Language
from fleetmark.verbs import documents as writing
from fleetmark.verbs import plan as planning
from fleetmark.verbs.documents import Documents
from fleetmark.verbs.plan import SEEDS_OF_MARGINS, Effort, Provenance

Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Measuring:
    """Define how to measure worths that were given as figures: a ``baseline`` selector, and a class or benchmark."""

    baseline: str = ""
    class_: str = ""
    benchmark: str = ""

    def origin(self) -> Origin | None:
        """Return how the worths are measured, or None. Raise FleetmarkError if the options are incomplete."""
        if not (self.baseline or self.class_ or self.benchmark):
            return None
        if not self.baseline or bool(self.class_) == bool(self.benchmark):
            raise FleetmarkError(
                "--baseline goes with one of --class and --benchmark: --baseline gen=icelake --class cpu-int"
            )
        return Origin("host=*", self.baseline, class_=self.class_, benchmark=self.benchmark)


def review(
    file: Path,
    delivered: Sequence[str],
    root: Path,
    effort: Effort,
    console: Console,
    *,
    now: str | None = None,
    quantile: float | None = None,
    measuring: Measuring | None = None,
    spoken: Language | None = None,
) -> Review:
    """Return the review of the plan in ``file`` after the deliveries ``LOT=CAMPAIGN``.

    ``now`` is the first period to plan again; by default, it is the first one with orders after the last delivery.
    ``quantile`` is the share of futures to meet from that period on; by default, it is the share that the question
    leaves for this review. ``console`` shows the progress in the language ``spoken``. Raise FleetmarkError for invalid
    input, and for a campaign that does not measure what the plan assumed.
    """
    if not delivered:
        raise FleetmarkError("plan review needs a delivered lot: --delivered LOT=CAMPAIGN, such as genoa@2027-Q2=last")
    question, plan = saved.read(file)
    if question.reviews and question.reviewed >= question.reviews and quantile is None:
        raise FleetmarkError(
            f"{file}: all reviews of its question were made (reviews: {question.reviews}); give the share of futures "
            "to meet from now on with --quantile"
        )
    lots = deliveries(question, plan, delivered)
    start = _start(question, lots, now)
    with planning.progress(console, spoken) as say:
        record = Record(root)
        given = (measuring or Measuring()).origin()
        measured = [(d, _measured(record, question, d, given, say)) for d in _with_ids(lots, root)]
        changes = updates(question, measured)
        remaining = question_from(question, plan, start)
        if quantile is not None:
            remaining = replace(remaining, quantile=quantile, reviews=0, reviewed=0)
        elif question.reviews:
            remaining = replace(remaining, reviewed=question.reviewed + 1)
        after = updated(remaining, changes)
        kept = plan_from(after, plan, start)
        say(message("solving for {share} of futures", share=f"{after.promise:.1%}"))
        answer, late = replanned(after, lambda q: planning.planned(q, effort, say))
        say(message("simulating {n} futures", n=f"{effort.draws:,}"))
        seed = effort.seed + SEEDS_OF_MARGINS
        new = answer if isinstance(answer, Plan) else None
        return Review(
            now=start,
            question=after,
            findings=findings(question, measured),
            updates=changes,
            kept=kept,
            kept_futures=futures(after, kept, effort.draws, seed),
            plan=new,
            futures=None if new is None else futures(after, new, effort.draws, seed),
            conflict=answer if isinstance(answer, Conflict) else None,
            late=late,
        )


def show(
    review: Review, provenance: Provenance, form: str, console: Console, documents: Documents, new: Path | None = None
) -> None:
    """Write the new plan as JSON to ``new``, write the review's documents, and print the review as ``form`` (table,
    json, ...).
    """
    from fleetmark.reports.review.document import document

    if new is not None and review.plan is not None:
        answer = Answer(review.question, review.plan, futures=review.futures)
        text = writing.renderers(planning.document(answer, provenance, documents.language), documents)["json"]()
        write_atomic(new, text)
        console.print(documents.language(message("wrote {file} ({size} MB)", file=new, size=f"{len(text) / 1e6:.1f}")))
    elif new is not None:
        console.print(documents.language(message("no document was written: there is no plan")))
    writing.show(document(review, provenance.created, provenance.command), form, console, documents)


def _start(question: Question, lots: Sequence[Delivery], now: str | None) -> int:
    """Return the number of the first period to plan again."""
    names = question.periods
    last = max((d.lot for d in lots), key=lambda lot: lot.reviewed)
    if last.reviewed >= len(names):
        raise FleetmarkError(
            f"lot {last.name}: nothing remains to be planned after it; plan the question for more periods, then review"
        )
    if now is None:
        return last.reviewed
    if now not in names:
        raise FleetmarkError(f"--now {now}: the plan has no such period; there are {', '.join(names)}")
    if names.index(now) < last.reviewed:
        first = names[last.reviewed]
        raise FleetmarkError(f"--now {now}: lot {last.name} counts from {first} on; name that period or a later one")
    return names.index(now)


def _with_ids(lots: Sequence[Delivery], root: Path) -> list[Delivery]:
    """Return the deliveries with the ids of their campaigns. Raise FleetmarkError if one is not under ``root``."""
    result = []
    for delivery in lots:
        archive = find(root, delivery.campaign)
        if archive.path.parent.resolve() != root.resolve():
            raise FleetmarkError(
                f"{delivery.campaign}: is not a campaign under {root}; specify its folder with --results"
            )
        result.append(replace(delivery, campaign=archive.id))
    return result


def _measured(
    record: Record, question: Question, delivery: Delivery, given: Origin | None, say: Say
) -> dict[str, Measurement]:
    """Return the measured worth of a delivery by workload."""
    say(message("measuring {lot} by campaign {campaign}", lot=delivery.lot.name, campaign=delivery.campaign))
    result = {}
    for workload, worth in question.skus[delivery.lot.sku].worth.items():
        origin = worth.origin or given
        if origin is None:
            continue
        try:
            result[workload] = record.delivered(origin, delivery.campaign)
        except FleetmarkError as error:
            place = f"lot {delivery.lot.name}: campaign {delivery.campaign}"
            raise FleetmarkError(f"{place} does not measure the worth for {workload}: {error}") from error
    if not result:
        raise FleetmarkError(
            f"lot {delivery.lot.name}: the question gives the worth of {delivery.lot.sku} as a figure; specify how "
            "to measure it: --baseline gen=icelake --class cpu-int"
        )
    return result
