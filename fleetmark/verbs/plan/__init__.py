"""Implement ``fleetmark plan``: from a question on disk to a plan with alternatives, binding limits and uncertainty."""

from __future__ import annotations

import contextlib
import math
import shlex
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console

from fleetmark.base.errors import FleetmarkError
from fleetmark.base.files import write_atomic
from fleetmark.base.text import message
from fleetmark.base.yaml import read_yaml
from fleetmark.demand import csv as demand_csv
from fleetmark.demand import question as demand
from fleetmark.planner.capacity.analysis.alternatives import alternatives
from fleetmark.planner.capacity.analysis.prices import shadow_prices
from fleetmark.planner.capacity.analysis.results import Conflict
from fleetmark.planner.capacity.analysis.tornado import tornado
from fleetmark.planner.capacity.answer import Answer, Scenario
from fleetmark.planner.capacity.clock import Clock
from fleetmark.planner.capacity.question import Plan, Question
from fleetmark.planner.capacity.solve import solve
from fleetmark.planner.capacity.uncertainty import futures, margined
from fleetmark.record.archive import utc
from fleetmark.verbs.documents import Documents, print_as, renderers, write

if TYPE_CHECKING:
    from fleetmark.reports.kit.document import Document
    from fleetmark.reports.kit.language import Language

Say = Callable[[str], None]
SEEDS_OF_MARGINS = 2  # seeds used to choose margins; the plan looks too good with these, so futures use the next one

FAILING = 20  # minimum number of simulated futures that may fail
MOST_DRAWS = 100_000


@dataclass(frozen=True, slots=True)
class Effort:
    """The effort of a plan.

    ``gap`` is the allowed distance from the best plan, and ``seconds`` the time limit of each solve. ``draws`` and
    ``seed`` apply to the futures.
    """

    gap: float = 0.01
    seconds: float = 60.0
    draws: int = 2000
    seed: int = 1

    @property
    def analysis_seconds(self) -> float:
        """Return the seconds for each of the further analyses: next best plans, and effects of inputs."""
        return self.seconds / 2


@dataclass(frozen=True, slots=True)
class Provenance:
    """The time (``date``, or else ``now``) and the command line of a document."""

    date: str | None = None
    now: str = field(default_factory=utc)
    command: str = field(default_factory=lambda: shlex.join(["fleetmark", *sys.argv[1:]]))

    @property
    def created(self) -> str:
        return self.date or self.now


def question(file: Path | None, workbook: Path | None, root: Path, scenario: Path | None = None) -> Question:
    """Return the question in ``file`` or in an edited ``workbook``, with the changes of a ``scenario``.

    ``file`` is YAML or a folder of sheets. Exactly one of ``file`` and ``workbook`` must be given. Raise FleetmarkError
    with all faults of the question.
    """
    if (file is None) == (workbook is None):
        raise FleetmarkError("plan needs a question: a YAML file, a folder of sheets, or --from plan.xlsx, one of them")
    if workbook is not None:
        from fleetmark.demand import workbook as plan_workbook

        return plan_workbook.read(workbook, root, scenario)
    assert file is not None
    if not file.exists():
        raise FleetmarkError(f"{file}: no such file; `fleetmark plan init {file}` writes an example there")
    if file.suffix == ".xlsx":
        raise FleetmarkError(f"{file}: a workbook is read by --from {file}")
    return demand.read(file, root, scenario)


def answer(
    question: Question,
    effort: Effort,
    console: Console,
    scenarios: Mapping[str, Question] | None = None,
    spoken: Language | None = None,
) -> Answer:
    """Solve the question for its quantile of futures and analyse the plan; and solve its scenarios.

    ``console`` shows the progress in the language ``spoken``.
    """
    with progress(console, spoken) as say:
        return _answer(question, effort, say, scenarios or {})


@contextlib.contextmanager
def progress(console: Console, spoken: Language | None = None) -> Iterator[Say]:
    """Yield a function that shows the present task, in the language ``spoken``."""
    with console.status("", spinner="dots") as status:

        def say(sentence: str) -> None:
            sentence = spoken(sentence) if spoken else sentence
            status.update(sentence)
            if not console.is_terminal:
                console.print(sentence, markup=False, highlight=False, soft_wrap=True)

        yield say


def planned(question: Question, effort: Effort, say: Say) -> Plan | Conflict:
    """Return the cheapest plan that meets demand in the question's share of futures, or why there is none."""

    def solved(q: Question, *, margin: Mapping[str, Any]) -> Plan | Conflict:
        return solve(q, gap=effort.gap, seconds=effort.seconds, margin=margin)

    draws = min(math.ceil(FAILING / (1 - question.promise)), MOST_DRAWS) if question.reviews else 0
    return margined(question, solved, n=max(effort.draws, draws), seed=effort.seed, say=say)


def _answer(question: Question, effort: Effort, say: Say, scenarios: Mapping[str, Question]) -> Answer:
    began = time.monotonic()
    say(message("solving for {share} of futures", share=f"{question.promise:.1%}"))
    plan = planned(question, effort, say)
    if isinstance(plan, Conflict):
        return Answer(question, None, plan, seconds=time.monotonic() - began)
    say(message("searching for the next best plans"))
    clocks = [Clock(effort.analysis_seconds), Clock(effort.analysis_seconds)]
    others = alternatives(question, plan, clock=clocks[0])
    say(message("computing what relaxing each tight limit would save"))
    bindings = shadow_prices(question, plan)
    say(message("simulating {n} futures", n=f"{effort.draws:,}"))
    ahead = futures(question, plan, effort.draws, effort.seed + SEEDS_OF_MARGINS)
    effects = tornado(question, plan, clock=clocks[1])
    solved_scenarios = []
    for name, other in scenarios.items():
        say(message("solving the scenario {name}", name=name))
        result = planned(other, effort, say)
        solved_scenarios.append(Scenario(name, other, None if isinstance(result, Conflict) else result))
    solved = [plan, *(a.plan for a in others), *(s.plan for s in solved_scenarios if s.plan is not None)]
    stopped = any(clock.stopped for clock in clocks) or any(p.stopped for p in solved)
    return Answer(
        question,
        plan,
        None,
        others,
        bindings,
        futures=ahead,
        tornado=effects,
        seconds=time.monotonic() - began,
        scenarios=solved_scenarios,
        stopped=stopped,
    )


def document(answer: Answer, provenance: Provenance, language: Language) -> Document:
    """Return the answer as a document."""
    from fleetmark.reports.plan import document

    return document.document(answer, provenance.created, provenance.command, language)


def show(
    answer: Answer,
    provenance: Provenance,
    form: str,
    console: Console,
    progress: Console,
    documents: Documents,
    stamp: Callable[[Document], Document] = lambda document: document,
) -> None:
    """Write the documents, then print the answer as ``form``: table, json or md. Without a plan, write no document.

    ``stamp`` adds the manifest to every document that is written.
    """
    shown = document(answer, provenance, documents.language)
    forms = renderers(shown, documents)
    if answer.plan is not None:
        stamped = stamp(shown) if documents.paths else shown
        # Before printing to stdout, which the reader may close.
        write(stamped, documents, renderers(stamped, documents), progress)
    elif not documents.is_empty:
        progress.print(documents.language(message("no document was written: there is no plan")))
    print_as(shown, form, console, documents.language, forms)


def init(target: Path) -> list[Path]:
    """Write the example as a YAML file or a folder of sheets. Raise FleetmarkError if the path exists."""
    if target.exists():
        raise FleetmarkError(f"{target}: exists already; give another name, or remove it first")
    if not target.parent.is_dir():
        raise FleetmarkError(f"{target}: there is no folder {target.parent}; make it first")
    if target.suffix in (".yml", ".yaml"):
        write_atomic(target, demand.EXAMPLE.read_text("utf-8"))
        return [target]
    names = demand.read(demand.EXAMPLE, Path()).periods
    written = []
    for name, sheet in demand_csv.sheets(read_yaml(demand.EXAMPLE), names).items():
        write_atomic(target / name, sheet)
        written.append(target / name)
    return written
