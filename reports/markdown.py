"""A comparison as Markdown, for a pull request or a wiki."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from fleetmark.base.text import count, joined, message
from fleetmark.base.words import word
from planner.comparison import Comparison
from planner.ratio import Verdict
from reports.campaign.problems import Problem
from reports.comparison.cell import Cell
from reports.comparison.front import Front
from reports.comparison.front import front as comparison_front
from reports.comparison.model import RatioRow
from reports.comparison.table import Figure, table
from reports.kit import format as fmt
from reports.kit.language import Language
from reports.kit.marks import as_line, code, escaped, part_lines, table_head, table_row, written
from reports.report import Report

MOST_PROBLEMS = 50  # causes
MOST_HOSTS = 6  # maximum number of hosts named in a list


def render(report: Report) -> str:
    """Return the report as Markdown in its language."""
    _ = report.language
    parts = _comparison(report, report.comparison, _)
    tables = (line for part in report.parts for line in part_lines(part, _))
    return written([*parts, *tables, *_problems(report.problems, _), *_provenance(report, _)])


def _comparison(report: Report, comparison: Comparison, _: Language) -> Iterator[str]:
    first = comparison_front(comparison, report.rows, report.around)
    yield from (f"# {as_line(_(first.answer))}", "")
    yield from (f"{as_line(_(line))}  " for line in (first.sides, first.basis, *first.totals, first.bought) if line)
    yield ""
    worse = f"**{_('Gets worse:')}**"
    yield from (f"- {worse} {escaped(_(line))}" for line in first.worse)
    if first.unsure:
        yield f"- **{_('May get worse:')}** {escaped(_(first.unsure))}"
    if not first.worse and not first.unsure and first.lines:
        yield f"- {_('Nothing that was measured gets worse.')}"
    if first.guardrails:
        yield f"- {escaped(_(first.guardrails))}"
    if first.not_measured:
        yield f"- {escaped(_(message('Not measured: {areas}', areas=first.not_measured)))}"
    yield ""
    yield from _classes(first, _)
    yield from ("", f"## {_('Before you rely on this')}", "")
    yield from (f"- {escaped(_(line))}" for line in (*(r.text for r in first.before), *first.legend))
    yield from _benchmarks(comparison, report.rows, _)
    excluded = [row for row in report.rows if row.left_out]
    if excluded:
        yield from ("", f"## {_('Benchmarks not compared')}", "")
        reasons: dict[str, dict[str, None]] = {}
        for row in excluded:
            reasons.setdefault(row.note, {})[row.benchmark] = None
        for reason, titles in sorted(reasons.items(), key=lambda item: -len(item[1])):
            some = ", ".join(list(titles)[:MOST_HOSTS]) + (", …" if len(titles) > MOST_HOSTS else "")
            yield f"- {escaped(_(reason))}: {escaped(some)} ({_(count(len(titles), 'benchmark'))})"
    if comparison.notes:
        yield from ("", f"## {_('Notes')}", "", *(f"- {escaped(_(note))}" for note in comparison.notes))


def _classes(first: Front, _: Language) -> Iterator[str]:
    """Yield a table of classes by candidates: the ratio, and how many units replace 100 of the baseline."""
    if not first.lines:
        return
    needs = [*first.candidates] if first.becomes else []
    heads = [_("class of work"), *first.candidates, *(f"{_(first.becomes)}: {c}" for c in needs)]
    yield from table_head(heads, "l" + "r" * (len(heads) - 1))
    for line in first.lines:
        title = joined([line.title, line.remark])
        cells = [_figure(cell, _) for cell in line.cells]
        yield table_row([_(title), *cells, *(_(cell.needed) or "–" for cell in line.cells if needs)])


def _figure(cell: Cell, _: Language) -> str:
    verdict = word(cell.verdict) if cell.verdict not in ("", Verdict.BETTER) else ""
    spread = message("benchmarks {range}", range=cell.spread) if cell.spread else ""
    own = message("own program {interval}", interval=cell.workload) if cell.workload else ""
    return _(joined([cell.text or "–", verdict, spread, own]))


def _benchmarks(comparison: Comparison, rows: Sequence[RatioRow], _: Language) -> Iterator[str]:
    """Yield every benchmark with both figures and the ratio, then the guardrails."""
    below = table(comparison, rows)
    titles = [c.title for c in comparison.candidates]
    if below.groups:
        yield from ("", f"## {_('Benchmarks')}", "", as_line(_(below.usual)), "")
        heads = [_("benchmark"), comparison.baseline, *titles, *(f"{t}: {_('ratio')}" for t in titles)]
        yield from table_head(heads, "l" + "r" * (len(heads) - 1))
    for group in below.groups:
        for entry in (group.head, *group.entries):
            name = entry.benchmark or f"{_(group.title)} ({group.class_})"
            about = joined(
                [
                    word(entry.standing) if entry.standing else None,
                    entry.basis,
                    f"n {entry.hosts}" if entry.hosts else None,
                ]
            )
            values = [
                f"{v} {entry.unit}".strip() if v else "" for v in (entry.baseline, *(f.value for f in entry.figures))
            ]
            ratios = [_ratio(figure, _) for figure in entry.figures]
            yield table_row([joined([name, _(about)]), *values, *ratios])
    if below.guards:
        heads = [_("guardrail"), _("candidate"), comparison.baseline, _("candidate's value"), _("limit"), "", _("note")]
        yield from ("", f"## {_('Guardrails')}", "", *table_head(heads, "llrrrll"))
        for guard in below.guards:
            figures = [guard.baseline, guard.candidate, guard.limit]
            row = guard.row
            yield table_row([row.benchmark, row.candidate, *figures, _(word(row.verdict)), _(row.note)])


def _ratio(figure: Figure, _: Language) -> str:
    verdict = figure.row.verdict if figure.row else ""
    return _(joined([figure.text, word(verdict) if verdict not in ("", Verdict.BETTER) else None]))


def _problems(problems: Sequence[Problem], _: Language) -> Iterator[str]:
    if not problems:
        return
    yield from ("", f"## {_('Not passed')}", "")
    for p in problems[:MOST_PROBLEMS]:
        names = joined([*p.hosts[:MOST_HOSTS], "…" if len(p.hosts) > MOST_HOSTS else None])
        what = [_(count(p.runs, "run"))] if p.runs else []
        where = _("{what} on {hosts}", what=joined([*what, *p.workloads]), hosts=names) if what else names
        yield f"- **{_(word(p.status))}**, {escaped(where)}: {escaped(_(p.reason))}"
        yield f"  - {_(p.advice)}{_(': ')}{code(p.command)}"
    if len(problems) > MOST_PROBLEMS:
        causes = _(count(len(problems) - MOST_PROBLEMS, "further cause"))
        yield f"- {_('{causes}: see the HTML report.', causes=causes)}"
    yield ""


def _provenance(report: Report, _: Language) -> Iterator[str]:
    campaign = report.campaign
    yield from ("", f"## {_('Provenance')}", "", f"- {_('Run it again')}: {code(fmt.typed(campaign.command))}")
    yield f"- Fleetmark {escaped(campaign.fleetmark_version)}, {fmt.moment(campaign.created)}"
    for c in report.campaigns:
        about = [
            fmt.moment(c.created),
            _("suite {suite}, seed {seed}", suite=c.suite, seed=c.seed) if c.suite else "",
            *(f"{tool} {version}" for tool, version in sorted(c.tool_versions.items())),
        ]
        yield f"- {_('Campaign')} {code(c.id)}: {escaped(joined(about))}"
        if c is not campaign:
            yield f"  - {code(fmt.typed(c.command))}"
        yield from (f"  - {escaped(_(note))}" for note in c.notes)
        yield from (f"  - SHA-256 {code(digest)}: {escaped(file)}" for file, digest in c.hashes.items())
    yield ""
