"""A report as Markdown, for a pull request or a wiki: a comparison, or a campaign's headlines, problems and origin."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Iterator, Sequence

from fleetmark.base.text import count, joined
from fleetmark.base.words import word
from fleetmark.record.results import status_counts
from planner.comparison import Comparison
from reports.campaign.front import front
from reports.campaign.problems import WORST_FIRST, Problem, resume_command
from reports.campaign.view import View, footnotes, headlines, legend, meaning, spread
from reports.comparison import model as of
from reports.kit import format as fmt
from reports.kit.language import Language
from reports.report import Report

MOST_PROBLEMS = 50  # causes
MOST_HOSTS = 6  # named of a list
MOST_ROWS = 400  # of headlines

# What CommonMark, and the kinds of it with tables and formulas, takes for markup within a line. An underscore within
# a word is none, and names are full of them.
_MARKUP = re.compile(r"[\\`*{}\[\]|~$]|(?<![A-Za-z0-9])_|_(?![A-Za-z0-9])")
_BEGINS = re.compile(r"^([#+=>-]|\d+(?=[.)]))")  # what makes a heading, a list or a quotation of a line


def render(report: Report) -> str:
    """The report as Markdown in its language."""
    _ = report.language
    parts = _campaign(report, _) if report.comparison is None else _comparison(report.comparison, report.rows, _)
    return _written([*parts, *_problems(report.problems, _), *_provenance(report, _)])


def _written(lines: Iterable[str]) -> str:
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip() + "\n"


def _comparison(comparison: Comparison, rows: Sequence[of.RatioRow], _: Language) -> Iterator[str]:
    yield from (f"**{_line(_(of.question(comparison)))}**", "")
    for warning in comparison.warnings:
        yield from (f"> **{_('Warning:')}** {_text(_(warning))}", "")
    heads = [_("benchmark"), _("baseline"), _("candidate"), _("ratio"), "±", "p", "n", _("verdict")]
    block = None
    for row in rows:
        if block != (row.candidate, row.kind) and (not row.benchmark or row.guardrail):
            block = (row.candidate, row.kind)
            yield from ("", f"## {_text(_(of.heading(comparison, row.kind, row.candidate)))}", "")
            if row.guardrail:
                limits = [_("benchmark"), _("baseline"), _("candidate"), _("limit"), "n", _("guardrail"), _("note")]
                yield from _head(limits, "lrrrrll")
        if row.guardrail:
            figures = [of.value(v, row.unit) for v in (row.baseline_value, row.candidate_value, row.limit)]
            state = [of.hosts(comparison, row), _(word(row.verdict)), _(row.note)]
            yield _row([_(of.named(row.benchmark, row)), *figures, *state])
            continue
        if not row.benchmark:
            yield from (
                "",
                f"### {_text(row.candidate)}: {_text(_(of.named(row.class_, row)))}: {_text(_headline(row, _))}",
                "",
            )
            for line in (row.headline, row.intervals, row.note):
                yield from (_line(_(line)), "") if line else ()
            if any(r.benchmark and (r.candidate, r.class_) == (row.candidate, row.class_) for r in rows):
                yield from _head(heads, "lrrrrrrl")
            continue
        if block is None or block[0] != row.candidate:
            block = (row.candidate, "")
            yield from ("", *_head(heads, "lrrrrrrl"))
        values = [of.value(v, row.unit) for v in (row.baseline_value, row.candidate_value)]
        numbers = [of.figure(row.ratio), of.plus_minus(row), of.p_value(row), of.hosts(comparison, row)]
        yield _row([_(of.named(row.benchmark, row)), *values, *numbers, _(word(row.verdict) or row.note)])
    notes = [*comparison.notes, *of.footnotes(comparison), *of.how_to_read(comparison)]
    yield from ("", *(f"- {_text(_(note))}" for note in notes), "")


def _headline(row: of.RatioRow, _: Language) -> str:
    if row.ratio is None:
        return _("no headline")
    figure = f"{of.figure(row.ratio)} {of.plus_minus(row)}".strip()
    if row.disagree and not row.work:
        return _("{extent}, mean {figure}", figure=figure, extent=of.extent(row))
    return _("{figure}, benchmarks {extent}", figure=figure, extent=of.extent(row)) if of.extent(row) else figure


def _campaign(report: Report, _: Language) -> Iterator[str]:
    view, campaign = report.view, report.campaign
    first = front(view, report.problems, report.against)
    counts = status_counts(view.results.outcomes)
    total = sum(counts.values())
    yield from (f"# {_line(campaign.id)}", "", f"**{_line(_(first.status))}**", "")
    state = [
        _("{n} {status}", n=f"{counts[s]:,}", status=_(word(s)))
        for s in counts
        if counts[s] or s not in WORST_FIRST  # the count of passed runs is given even where it is 0
    ]
    runs, hosts = _(count(total, "run")), _(count(len(view.hosts), "host"))
    yield _line(_("{runs} on {hosts}: {state}", runs=runs, hosts=hosts, state=", ".join(state)))
    yield ""
    yield from (f"- {_line(_(line))}" for line in first.machines)
    if first.means:
        yield from ("", f"## {_('What it means')}", "", *(f"- {_line(_(line))}" for line in first.means))
    if first.odd:
        yield from ("", f"## {_('What is odd')}", "", *(f"- {_line(_(line))}" for line in first.odd))
    if first.next:
        steps = (f"- {_text(_(advice))}: {_code(command)}" for advice, command in first.next)
        yield from ("", f"## {_('What to do next')}", "", *steps)
    if not campaign.finished:
        yield from ("", f"{_('The campaign is not finished. Go on with it:')} {_code(resume_command(view.results))}")
    yield from ("", f"## {_('Headlines')}", "")
    yield from _headlines(view, _)


def _headlines(view: View, _: Language) -> Iterator[str]:
    of_hosts = len(view.hosts) == 1
    frame = headlines(view.merged if of_hosts else view.generational)
    if frame.empty:
        yield from (_("No run passed, so there is no figure to show."), "")
        return
    who = [] if of_hosts else [_("generation")]
    heads = [_("metric"), *who, _("value"), _("unit"), _("spread"), "CV", "n", _("better")]
    yield from _head(heads, "l" + "l" * len(who) + "rlrrrl")
    for key, rows, shown in view.by_metric(frame.head(MOST_ROWS)):
        title = f"{key[0]} {key[1]} {fmt.point(key[2], key[3], key[4], key[5])}"
        for r in rows.to_dict("records"):
            side = [] if of_hosts else [_(view.title_of(r["generation"]))]
            extent = spread(shown, r["lo"], r["hi"], r["interval"])
            numbers = [shown.number(r["value"]), shown.unit, extent, fmt.percent(r["cv"]), str(r["n"])]
            yield _row([title, *side, *numbers, _(fmt.better(r["better"]))])
    yield ""
    if len(frame) > MOST_ROWS:
        yield from (_("{rows} more are in the HTML report.", rows=_(count(len(frame) - MOST_ROWS, "row"))), "")
    yield from (_line(f"{_(meaning(view))} {_(legend({*frame['interval']}))}"), "")
    yield from (f"- {_text(_(note))}" for note in footnotes(frame))
    yield ""


def _problems(problems: Sequence[Problem], _: Language) -> Iterator[str]:
    if not problems:
        return
    yield from ("", f"## {_('Not passed')}", "")
    for p in problems[:MOST_PROBLEMS]:
        names = joined([*p.hosts[:MOST_HOSTS], "…" if len(p.hosts) > MOST_HOSTS else None])
        what = [_(count(p.runs, "run"))] if p.runs else []
        where = _("{what} on {hosts}", what=joined([*what, *p.workloads]), hosts=names) if what else names
        yield f"- **{_(word(p.status))}**, {_text(where)}: {_text(_(p.reason))}"
        yield f"  - {_(p.advice)}: {_code(p.command)}"
    if len(problems) > MOST_PROBLEMS:
        causes = _(count(len(problems) - MOST_PROBLEMS, "further cause"))
        yield f"- {_('{causes}: see the HTML report.', causes=causes)}"
    yield ""


def _provenance(report: Report, _: Language) -> Iterator[str]:
    campaign = report.campaign
    yield from ("", f"## {_('Provenance')}", "", f"- {_('Run it again')}: {_code(shlex.join(campaign.command))}")
    yield f"- Fleetmark {_text(campaign.fleetmark_version)}, {fmt.moment(campaign.created)}"
    for c in report.campaigns:
        about = [
            fmt.moment(c.created),
            _("suite {suite}, seed {seed}", suite=c.suite, seed=c.seed) if c.suite else "",
            *(f"{tool} {version}" for tool, version in sorted(c.tool_versions.items())),
        ]
        yield f"- {_('Campaign')} {_code(c.id)}: {_text(joined(about))}"
        if c is not campaign:
            yield f"  - {_code(shlex.join(c.command))}"
        yield from (f"  - {_text(_(note))}" for note in c.notes)
        yield from (f"  - SHA-256 {_code(digest)}: {_text(file)}" for file, digest in c.hashes.items())
    yield ""


def _head(cells: Sequence[str], sides: str) -> list[str]:
    """A table's head; ``sides``: l or r for each column."""
    return [_row(cells), f"|{'|'.join('-:' if s == 'r' else '-' for s in sides)}|"]


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(map(_text, cells))} |"


def _text(text: str) -> str:
    """``text`` as nothing but text, where it stands within a line."""
    shown = fmt.clean(text).replace("&", "&amp;").replace("<", "&lt;")
    return _MARKUP.sub(lambda m: f"\\{m[0]}", shown)


def _line(text: str) -> str:
    """``text`` as nothing but text, where it begins a line."""
    return _BEGINS.sub(lambda m: f"{m[0]}\\" if m[0].isdigit() else f"\\{m[0]}", _text(text.strip()))


def _code(text: str) -> str:
    """``text`` as code, whatever is in it: more backticks around it than it has in a row."""
    shown = fmt.clean(text)
    fence = "`" * (1 + max((len(run) for run in re.findall(r"`+", shown)), default=0))
    room = " " if "`" in shown else ""
    return f"{fence}{room}{shown}{room}{fence}"


# For other documents in Markdown.
escaped, as_line, code, head, row, written = _text, _line, _code, _head, _row, _written
