"""Provide the result of a comparison as data frames, and write it as documents."""

from __future__ import annotations

import os
from dataclasses import asdict, fields
from functools import cached_property
from pathlib import Path

import pandas as pd
from rich.console import Console

from fleetmark.record.compare import Question, compare
from fleetmark.reports.comparison.model import RatioRow, rows
from fleetmark.reports.kit.language import ENGLISH
from fleetmark.verbs.documents import Documents, documents_of, renderers, write
from fleetmark.verbs.report import answer_for, comparison_document

_BOTH = ["candidate", "class", "kind", "ratio", "lo", "hi", "verdict"]
_CLASS = [
    *_BOTH,
    "benchmarks",
    "your_workload_lo",
    "your_workload_hi",
    "lowest",
    "lowest_title",
    "highest",
    "highest_title",
    "p",
    "p_adjusted",
    "hosts_baseline",
    "hosts_candidate",
    "interval_of",
    "note",
]
_BENCHMARK = [
    *_BOTH[:2],
    "benchmark",
    *_BOTH[2:],
    "baseline_value",
    "candidate_value",
    "unit",
    "better",
    "weight",
    "p",
    "p_adjusted",
    "hosts_baseline",
    "hosts_candidate",
    "interval_of",
    "limit",
    "standing",
    "note",
]


class Comparison:
    """Compare one or more candidates with a baseline. ``Record.compare`` returns it.

    In both frames, ``ratio`` is candidate over baseline, oriented so that a value above 1 means that the candidate is
    better. ``lo`` and ``hi`` are the bounds of its 95% confidence interval. Missing numbers are NaN.
    """

    def __init__(self, question: Question) -> None:
        self._question = question
        self._answer = compare(question)
        frame = pd.DataFrame([asdict(row) for row in rows(self._answer.comparison)]).rename(columns={"class_": "class"})
        self._rows = frame.astype({field.name: float for field in fields(RatioRow) if field.type == "float | None"})

    @property
    def baseline(self) -> str:
        """Return the title of the baseline."""
        return str(self._answer.comparison.baseline)

    @property
    def candidates(self) -> list[str]:
        """Return the titles of the candidates."""
        return [str(candidate.title) for candidate in self._answer.comparison.candidates]

    @property
    def classes(self) -> pd.DataFrame:
        """Return a row per candidate and class of work.

        - ``candidate``, ``class``, ``kind`` (capacity or responsiveness)
        - ``ratio``, ``lo``, ``hi``, ``verdict`` (better, worse, same, unclear; empty without an interval)
        - ``benchmarks``: the number of benchmarks in the ratio
        - ``your_workload_lo``, ``your_workload_hi``: the prediction interval for another workload of the class
        - ``lowest``, ``highest``: the extreme benchmark ratios, with their titles
        - ``p``, ``p_adjusted``, ``hosts_baseline``, ``hosts_candidate``
        - ``interval_of``: ``fleet``, or ``repeats`` if a side has a single host
        - ``note``: why a ratio is missing
        """
        return self._part(self._rows["benchmark"] == "", _CLASS)

    @property
    def benchmarks(self) -> pd.DataFrame:
        """Return a row per candidate and benchmark, including guardrails and benchmarks that are not compared.

        Further columns are ``benchmark`` (its title), ``baseline_value`` and ``candidate_value`` (geometric means over
        hosts, in ``unit``), ``better``, ``weight`` (share of the class's ratio), ``limit`` (of a guardrail), and
        ``note`` (why it is not compared).
        """
        return self._part(self._rows["benchmark"] != "", _BENCHMARK)

    def _part(self, chosen: pd.Series, columns: list[str]) -> pd.DataFrame:
        return self._rows.loc[chosen, columns].reset_index(drop=True)

    @cached_property
    def answer(self) -> str:
        """Return the first sentence of the report, in English."""
        return str(comparison_document(self._question, self._answer, Documents(), has_evidence=False).answer)

    @property
    def warnings(self) -> list[str]:
        """Return sentences on what to check before relying on the figures."""
        return [str(warning) for warning in self._answer.comparison.warnings]

    def save(
        self,
        path: str | os.PathLike[str],
        *,
        lang: str = ENGLISH,
        templates: str | os.PathLike[str] | None = None,
        date: str | None = None,
        appendix: bool = False,
    ) -> Path:
        """Write the report, as ``fleetmark compare`` does, and return its path.

        - ``path``: its extension is .html, .pdf, .xlsx, .md, .json or .csv
        - ``lang``: its language, en or zh-CN
        - ``templates``: a folder with your logo.svg, colours.css and templates
        - ``date``: the date to print (2026-11-21); by default SOURCE_DATE_EPOCH or now
        - ``appendix``: add all metrics and plots to a PDF

        Raise FleetmarkError for another extension, or if the file cannot be written.
        """
        folder = None if templates is None else Path(templates)
        documents = documents_of({}, lang, folder, date, appendix, output=[Path(path)], option="save")
        answer = answer_for(self._question, documents)
        shown = comparison_document(self._question, answer, documents, has_evidence=True)
        write(shown, documents, renderers(shown, documents), Console(quiet=True))
        return Path(path)

    def __repr__(self) -> str:
        return f"<Comparison of {', '.join(self.candidates)} with {self.baseline}>"
