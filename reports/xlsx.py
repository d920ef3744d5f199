"""A report as a workbook with live formulas: raw figures, hosts, benchmarks and conversions."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from fleetmark.base.measurement import Better, Kind
from fleetmark.base.text import Message, joined, message
from fleetmark.base.words import word
from planner.comparison import CLASH, Comparison
from planner.equivalence import DISAGREE, Basis
from planner.estimate import CONFIDENCE
from planner.guardrail import Held
from planner.ratio import SAME, Ratio
from reports import sheets
from reports.comparison.front import Front, front
from reports.comparison.headline import FLEET, WORKLOAD
from reports.comparison.method import DEGREES, method
from reports.comparison.model import footnotes, lone, question
from reports.comparison.titles import labelled, titled
from reports.comparison.xlsx import classes as class_tabs
from reports.comparison.xlsx import hosts as host_tabs
from reports.comparison.xlsx import ratios
from reports.comparison.xlsx.classes import ClassRow
from reports.comparison.xlsx.grid import FIRST_ROW, form_of, grid
from reports.comparison.xlsx.sources import LIVE, sources
from reports.kit.format import ROUNDING
from reports.kit.prose import Prose
from reports.kit.workbook import COLOURS, GRID, INTEGER, PERCENT, RATIO, Book, Head, Sheet, cell, literal
from reports.report import Report

# Columns of the tab Benchmarks.
_BEFORE = (
    "candidate",
    "class",
    "kind",
    "benchmark",
    "unit",
    "direction",
    "baseline",
    "other",
    *ratios.KEYS,
    "p_adjusted",
)
_AT = {name: n for n, name in enumerate((*_BEFORE, "standing", "note", *ratios.WORKINGS))}
_HELD = {Held.KEPT: "better", Held.BROKEN: "worse", Held.CANNOT_TELL: "unsure"}  # guardrail result to text colour
_INPUTS = 4  # row of the first input in the tab Conversion


def render(report: Report) -> bytes:
    """Return the report as an XLSX file. The same report always gives the same bytes.

    Raise FleetmarkError if there are more hosts than a sheet has columns.
    """
    book = Book(question(report.comparison), report.date, report.language)
    _Workbook(report, report.comparison, book)
    return book.bytes()


class _Workbook:
    """The tabs of a comparison, in order."""

    def __init__(self, report: Report, comparison: Comparison, book: Book) -> None:
        self.report, self.comparison, self.book = report, comparison, book
        self.grid = grid(comparison, report.sides)
        self.sources = sources(report, self.grid.titles)
        self.readme = book.sheet(message("Readme"), "#1F3A5F")
        self.conversion = book.sheet(message("Conversion"), COLOURS[0])
        self.classes = book.sheet(message("Classes"), COLOURS[0])
        self.weights = book.sheet(message("Weights"), COLOURS[1])
        self.benchmarks = book.sheet(message("Benchmarks"), COLOURS[0])
        guardrails = any(c.guardrails for c in comparison.candidates)
        self.guardrails = book.sheet(message("Guardrails"), COLOURS[0]) if guardrails else None
        self.parts = sheets.parts(book, report)
        self.figures = book.sheet(message("Per host"), COLOURS[2])
        self.logs = book.sheet(message("Host logs"), COLOURS[2])
        self.scores = book.sheet(message("Host scores"), COLOURS[2])
        self.raw = book.sheet(message("Raw"), COLOURS[2])
        self.excluded = book.sheet(message("Excluded"), COLOURS[5])
        self.facts = book.sheet(message("Facts"), COLOURS[5])
        self._hosts()
        self._benchmarks()
        if self.guardrails:
            self._guardrails(self.guardrails)
        lines = class_tabs.write(self.grid, self.weights, self.scores, self.logs, self.classes)
        self._classes(lines)
        self._conversion(lines)
        self._lists()
        self._readme(lines)

    # ------------------------------------------------------------ measurements and figures

    def _hosts(self) -> None:
        live = self.sources.listed and not self.sources.rows.empty
        if live:
            self.raw.top(message("Measurements behind the means"), _RAW)
            host_tabs.raw(self.raw, self.sources, self.comparison.per)
        else:
            self.raw.top(message("Measurements behind the means"), self._no_raw())
        self.logs.top(message("Logarithms of the hosts' figures; higher is better"), _LOGS if live else _LOGS_AS_VALUES)
        host_tabs.logs(self.grid, self.logs, self.sources, self.raw if live else None)
        host_tabs.figures(self.grid, self.figures, self.logs)

    def _no_raw(self) -> Message:
        if not self.sources.count:
            return message("No measurements are recorded for these sides.")
        return message(
            "{n} measurements are too many for formulas over each (at most {most}): the means stand as values. "
            "Every measurement is in the file measurements.parquet of its campaign, below {path}.",
            n=f"{self.sources.count:,}",
            most=f"{LIVE:,}",
            path=str(self.report.campaign.path),
        )

    def _benchmarks(self) -> None:
        comparison, sheet, at = self.comparison, self.benchmarks, _AT
        sheet.top(
            message("Benchmarks, each for itself"),
            message(
                "A ratio above 1: the candidate is better. Means are of whole servers, ratios of capacity per {per}.",
                per=word(comparison.per),
            ),
        )
        heads = ratios.heads(comparison.baseline) | {
            "candidate": Head(message("candidate")),
            "class": Head(message("class"), "", 14),
            "kind": Head(message("kind"), "", 14),
            "benchmark": Head(message("benchmark")),
            "unit": Head(message("unit"), "", 9),
            "direction": Head(message("direction"), "", 10),
            "baseline": Head(message("baseline"), comparison.baseline, 16),
            "other": Head(message("candidate"), message("geometric mean"), 16),
            "p_adjusted": ratios.AMONG,
            "standing": Head(message("standing"), "", 12),
            "note": Head(message("note"), "", 44),
        }
        row = FIRST_ROW
        for candidate in comparison.candidates:
            first = row
            each = {t: r for e in candidate.classes.values() for t, r in e.each.items()}
            strata = {t for e in candidate.classes.values() if e.basis is Basis.STRATA for t in e.each}
            left_out = {t: w for e in candidate.classes.values() for t, w in e.left_out.items()}
            left_out |= dict(candidate.excluded)
            left_out |= {
                title: joined([left_out.get(title), why], "; ") for title, why in lone(comparison, candidate).items()
            }
            for title in self.grid.titles:
                about = comparison.benchmarks.loc[title]
                sheet.text(row, at["candidate"], candidate.title)
                sheet.text(row, at["class"], about["class"])
                sheet.text(row, at["kind"], word(str(about["kind"])))
                sheet.text(row, at["benchmark"], title, "strong")
                sheet.text(row, at["unit"], about["unit"])
                sheet.text(row, at["direction"], word(str(about["better"])))
                if not candidate.excluded.get(title, "").startswith(CLASH):  # the figures are not comparable
                    self._means(row, title, candidate.title)
                sheet.text(row, at["standing"], word(candidate.standing.get(title, "")))
                sheet.text(row, at["note"], left_out.get(title, ""), "note")
                if title in each:
                    self._ratio(row, title, candidate.title, each, standing=title in strata)
                row += 1
            self.book.name(f"ratios_{candidate.title}", sheet.span(first, at["ratio"], row - 1, at["ratio"]))
        sheet.heads(FIRST_ROW - 1, [heads[name] for name in at])
        sheet.filtered(FIRST_ROW - 1, row - 1, len(at), frozen_columns=4)
        sheet.printed(row - 1, at["note"])
        ratios.paint(sheet, FIRST_ROW, row - 1, at["verdict"])

    def _guardrails(self, sheet: Sheet) -> None:
        """Write the guardrails, with the figures of both sides and the limit."""
        sheet.top(
            message("Guardrails: conditions that must hold"),
            message("Without a limit the candidate must not be worse than the baseline. Figures are means over hosts."),
        )
        heads = [
            Head(message("candidate")),
            Head(message("class"), "", 14),
            Head(message("benchmark")),
            Head(message("unit"), "", 9),
            Head(message("direction"), "", 10),
            Head(message("baseline"), self.comparison.baseline, 16),
            Head(message("candidate"), "", 16),
            Head(message("limit"), "", 12),
            Head(message("guardrail"), "", 12),
            Head(message("hosts, baseline"), "", 10),
            Head(message("hosts, candidate"), "", 10),
            Head(message("note"), "", 44),
        ]
        row = FIRST_ROW
        for candidate in self.comparison.candidates:
            for title, guard in candidate.guardrails.items():
                about = self.comparison.benchmarks.loc[title]
                texts = (candidate.title, about["class"], title, about["unit"], word(str(about["better"])))
                for column, text in enumerate(texts):
                    sheet.text(row, column, text)
                values = (guard.a, guard.b, guard.limit)
                form = form_of(self.comparison, title, values)
                for column, value in enumerate(values, 5):
                    sheet.number(row, column, value, form, "value")
                sheet.text(row, 8, word(str(guard.held or "")))
                for column, hosts in enumerate(guard.n, 9):
                    sheet.number(row, column, hosts, INTEGER, "value")
                sheet.text(row, 11, guard.why, "note")
                row += 1
        sheet.heads(FIRST_ROW - 1, heads)
        sheet.filtered(FIRST_ROW - 1, row - 1, len(heads), frozen_columns=3)
        sheet.printed(row - 1, len(heads) - 1)
        words = {self.book.words(word(held)): role for held, role in _HELD.items()}
        sheet.paint(f"{cell(FIRST_ROW, 8)}:{cell(row - 1, 8)}", words)

    def _means(self, row: int, title: str, candidate: str) -> None:
        """Write the geometric means of both sides, as formulas unless the figures are divided by an amount."""
        about = self.comparison.benchmarks.loc[title]
        sides = ((self.comparison.baseline, _AT["baseline"]), (candidate, _AT["other"]))
        known = {side: self.comparison.figures[side].get(title) for side, _ in sides}
        form = form_of(self.comparison, title, known.values())
        sign = "-" if about["better"] == Better.LOWER else ""
        for side, column in sides:
            value = known[side]
            if value is None or self.comparison.per != "server" or self.grid.frames[side][title].isna().all():
                self.benchmarks.number(row, column, value, form, "value")
            else:
                hosts = self.grid.hosts(self.logs, self.grid.row(title), side)
                self.benchmarks.formula(row, column, f"=EXP({sign}AVERAGE({hosts}))", value, form)

    def _ratio(self, row: int, title: str, candidate: str, each: Mapping[str, Ratio], *, standing: bool) -> None:
        if standing or each[title].of_repeats or each[title].clusters:
            ratios.stand(self.benchmarks, row, _AT, each[title])
            return
        pairing, place = self.comparison.pairing, self.grid.row(title)
        sides = (self.comparison.baseline, candidate)
        a, b = (self.grid.hosts(self.logs, place, side) for side in sides)
        x, y = (self.grid.frames[side][title].to_numpy(float) for side in sides)
        values = ratios.worked_out(x, y, pairing, each[title])
        ratios.write(self.benchmarks, row, _AT, ratios.of_hosts(a, b, pairing), values)

    # ------------------------------------------------------------ results

    def _classes(self, lines: Sequence[ClassRow]) -> None:
        at = class_tabs.AT
        self.weights.top(
            message("Weights of benchmarks in their class"),
            message("Yellow cells are inputs. Change a weight or exclude a benchmark to recalculate the headlines."),
        )
        self.scores.top(
            message("Each host's score: the weighted sum of its logarithms"),
            message("A host without every benchmark of the headline has no score."),
        )
        self.classes.top(
            message("Classes: what one candidate is worth, and how fast it is"),
            message("Live from the hosts' scores. The range of the benchmarks stands beside each headline."),
        )
        ratios.paint(self.classes, FIRST_ROW, FIRST_ROW + len(lines) - 1, at["verdict"])
        class_tabs.forest(self.classes, lines, message("Ratio of each class, with its interval"))
        for line in lines:
            name = f"{line.candidate.title}_{line.class_}{'_equal_work' if line.equal_work else ''}"
            for key, prefix in (("ratio", "E"), ("lo", "E_lo"), ("hi", "E_hi")):
                self.book.name(f"{prefix}_{name}", self.classes.at(line.row, at[key]))

    def _conversion(self, lines: Sequence[ClassRow]) -> None:
        sheet = self.conversion
        sheet.top(
            question(self.comparison), message("All values here are computed from the other tabs and the yellow cells.")
        )
        head = self._inputs() + 3
        work = [line for line in lines if line.kind == Kind.CAPACITY]
        rest = [line for line in lines if line.kind != Kind.CAPACITY]
        per, last, below = 9 if self.comparison.per == "server" else 6, head, head
        if work:
            last = below = self._converted(head, work, message("one is worth"), replaced=per == 9)
        if rest:
            below = self._converted(below + 3 if work else head, rest, message("so many times as fast"))
        sheet.frozen(head + 1, 1)
        sheet.inner.repeat_rows(head)
        if work:
            self._bars(head, last, len(self.comparison.candidates), per, below)

    def _converted(self, head: int, lines: Sequence[ClassRow], called: Message, *, replaced: bool = False) -> int:
        """Write the classes of one kind, starting at the row ``head``. Return the last row.

        ``replaced``: add the number of servers that are replaced.
        """
        sheet, at = self.conversion, class_tabs.AT
        names = list(dict.fromkeys(class_tabs.title(line) for line in lines))
        candidates = [c.title for c in self.comparison.candidates]
        per = 9 if replaced else 6
        heads = [Head(message("class"), "", 40)]
        for k, candidate in enumerate(candidates):
            sheet.text(head - 1, 1 + k * per, candidate, "heading")
            heads += [
                Head(called, message("× baseline"), 11),
                Head(message("from"), message("fleet, × baseline"), 11),
            ]
            heads += [Head(message("to"), message("fleet, × baseline"), 11), Head(message("verdict"), "", 13)]
            if replaced:
                heads += [Head(message("needed instead"), message("servers"), 11)]
                heads += [Head(message("needed, from"), message("servers"), 10)]
                heads += [Head(message("needed, to"), message("servers"), 10)]
            heads += [
                Head(message("your workload from"), message("× baseline, a value"), 12),
                Head(message("your workload to"), message("× baseline, a value"), 12),
            ]
        place = {(line.candidate.title, class_tabs.title(line)): line for line in lines}
        for n, name in enumerate(names, head + 1):
            sheet.text(n, 0, name, "strong")
            for k, candidate in enumerate(candidates):
                line = place.get((candidate, name))
                if line is None:
                    continue
                ratio = line.ratio
                verdict = word(ratio.verdict) if ratio and line.judged else None
                values = (ratio.value, ratio.lo, ratio.hi, verdict) if ratio else (None,) * 4
                first = 1 + k * per
                for m, (key, value) in enumerate(zip(("ratio", "lo", "hi", "verdict"), values, strict=True)):
                    source = self.classes.at(line.row, at[key])
                    shown = f'=IF({source}="","",{source})'
                    sheet.formula(n, first + m, shown, value, RATIO, ("key", "computed", "computed", "word")[m])
                if replaced:
                    ends = (ratio.value, ratio.hi, ratio.lo) if ratio else (None, None, None)
                    for m, (column, end) in enumerate(zip((0, 2, 1), ends, strict=True), first + 4):
                        own = cell(n, first + column)
                        needed = None if end is None else math.ceil(100 / end - ROUNDING)
                        shown = f'=IF({own}="","",ROUNDUP(servers_replaced/{own}-{ROUNDING:.6f},0))'
                        sheet.formula(n, m, shown, needed, INTEGER)
                for m, (key, value) in enumerate(class_tabs.yours(line), first + per - 2):
                    source = self.classes.at(line.row, at[key])
                    sheet.formula(n, m, f'=IF({source}="","",{source})', value, RATIO)
        last = head + len(names)
        sheet.heads(head, heads)
        for k in range(len(candidates)):
            ratios.paint(sheet, head + 1, last, 4 + k * per)
        return last

    def _inputs(self) -> int:
        """Write the inputs that all tabs share. Return the row below them."""
        sheet = self.conversion
        inputs = [
            (message("confidence of intervals"), CONFIDENCE, PERCENT, ratios.CONFIDENCE_NAME, 0.5, 0.999),
            (message("no difference worth having: within"), SAME, PERCENT, ratios.SAME_NAME, 0, 0.5),
        ]
        if self.comparison.per == "server":
            inputs.append((message("baseline servers to replace"), 100.0, "#,##0", "servers_replaced", 0, 1e9))
        sheet.text(_INPUTS - 1, 0, message("Inputs"), "heading")
        for n, (text, value, form, name, lo, hi) in enumerate(inputs, _INPUTS):
            sheet.text(n, 0, text, "strong")
            sheet.number(n, 1, value, form, "input")
            sheet.must_be_number(n, 1, lo, hi, message("a number from {lo} to {hi}", lo=f"{lo:g}", hi=f"{hi:g}"))
            self.book.name(name, sheet.at(n, 1))
        return _INPUTS + len(inputs)

    def _bars(self, head: int, last: int, candidates: int, per: int, below: int) -> None:
        chart = self.book.chart("column", message("What one candidate is worth, in baselines"))
        for k in range(candidates):
            column = 1 + k * per
            chart.add_series(
                {
                    "name": f"={self.conversion.at(head - 1, column)}",
                    "categories": f"={self.conversion.span(head + 1, 0, last, 0)}",
                    "values": f"={self.conversion.span(head + 1, column, last, column)}",
                    "fill": {"color": COLOURS[k % len(COLOURS)]},
                    "gap": 60,
                }
            )
        chart.set_y_axis({"name": self.book.words(message("× baseline")), "num_format": "0.0", "min": 0} | GRID)
        self.conversion.place(chart, below + 2, 0, 860, 360)

    # ------------------------------------------------------------ explanations

    def _lists(self) -> None:
        self.excluded.top(message("Data that is not in the figures, and why"))
        sheets.excluded(self.excluded, self.report, FIRST_ROW - 1)
        self.facts.top(message("Hosts side by side"), sheets.ALIKE)
        sheets.facts(self.facts, self.report, FIRST_ROW - 1)

    def _readme(self, lines: Sequence[ClassRow]) -> None:
        first = front(self.comparison, self.report.rows, self.report.around)
        prose = Prose(self.readme, self.readme.top(first.answer) - 1)
        prose.sentences(line for line in (first.sides, first.basis, *first.totals, first.bought) if line)
        prose.sentences([message("Gets worse: {what}", what=line) for line in first.worse], "worse")
        if first.unsure:
            prose.sentences([message("May get worse: {what}", what=first.unsure)], "worse")
        if not first.worse and not first.unsure and first.lines:
            prose.sentences([message("Nothing that was measured gets worse.")])
        if first.guardrails:
            prose.sentences([first.guardrails], "worse" if first.broken else "wrap")
        if first.not_measured:
            prose.sentences([message("Not measured: {areas}", areas=first.not_measured)])
        self._first_table(prose, first)
        prose.heading(message("Before you rely on this"))
        prose.sentences([*(r.text for r in first.before), *first.legend])
        prose.heading(message("Live from the other tabs"))
        for line in lines:
            if line.judged:
                self._answer(prose, line)
        prose.sentences([FLEET, WORKLOAD], "note")
        if self.comparison.warnings:
            prose.heading(message("Warnings"))
            prose.sentences([titled(w) for w in self.comparison.warnings], "worse")
        prose.heading(message("How to work with it"))
        prose.sentences(_HOW if self.sources.listed else [_HOW[0], *_HOW[2:]])
        prose.tabs({sheet.name: text for sheet, text in self._tabs()})
        prose.heading(message("Method"))
        for name, text in (*method(self.comparison), DEGREES):
            prose.pair(name, text)
        prose.sentences(footnotes(self.comparison), "note")
        sheets.provenance(prose, self.report)

    def _first_table(self, prose: Prose, first: Front) -> None:
        """Write the classes of the first screen, one per line."""
        for line in first.lines:
            parts = []
            for title, c in zip(first.candidates, line.cells, strict=True):
                needed = message("{becomes} {servers}", becomes=first.becomes, servers=c.needed) if c.needed else None
                own = message("own program {interval}", interval=c.workload) if c.workload else None
                figures = joined([c.text or "–", needed, own])
                parts.append(labelled(title, figures))
            prose.pair(line.title, joined([*parts, line.remark], "; "))

    def _answer(self, prose: Prose, line: ClassRow) -> None:
        """Write a sentence with live numbers about one candidate and class. Benchmarks that disagree come first."""
        own = {name: self.classes.at(line.row, at) for name, at in class_tabs.AT.items()}
        words, ratio, e = self.book.words, line.ratio, line.equivalence
        begin, end = words(class_tabs.title(line)) + ": ", f" × {words(self.comparison.baseline)}"
        if line.kind == Kind.RESPONSIVENESS:
            end = words(message(" times as fast as {baseline}", baseline=self.comparison.baseline))
        mean, yours = words(message("mean")) + " ", "; " + words(message("your workload")) + " "
        lo, hi = (value for _, value in class_tabs.yours(line))
        if ratio is None:
            value = begin + words(class_tabs.why(line))
        else:
            apart = f"{e.lowest:,.2f} ({e.lowest_title}) – {e.highest:,.2f} ({e.highest_title}); {mean}"
            interval = f" ({ratio.lo:,.2f} – {ratio.hi:,.2f})" if ratio.interval else ""
            value = f"{begin}{apart if e.disagree and not line.equal_work else ''}{ratio.value:,.2f}{end}{interval}"
            value += f", {words(word(ratio.verdict))}" + (f"{yours}{lo:,.2f} – {hi:,.2f}" if lo and hi else "")
        least, most = own["lowest"], own["highest"]
        ends = f'" ("&FIXED({own["lo"]},2)&" – "&FIXED({own["hi"]},2)&")"'
        live = f'FIXED({own["ratio"]},2)&{literal(end)}&IF({own["lo"]}="","",{ends})&", "&{own["verdict"]}'
        if not line.equal_work:
            both = f"AND({least}<1-{ratios.SAME_NAME},{most}>1+{ratios.SAME_NAME})"
            named = f'FIXED({least},2)&" ("&{own["lowest_title"]}&") – "&FIXED({most},2)&" ("&{own["highest_title"]}'
            named = f'{named}&"); "&{literal(mean)}'
            live = f'IF(OR({both},{most}>{DISAGREE!r}*{least}),{named},"")&{live}'
        workload = f'FIXED({own["workload_lo"]},2)&" – "&FIXED({own["workload_hi"]},2)'
        live += f'&IF({own["workload_lo"]}="","",{literal(yours)}&{workload})'
        formula = f'={literal(begin)}&IF({own["ratio"]}="",{own["note"]},{live})'
        self.readme.text(prose.row, 0, line.candidate.title, "strong")
        self.readme.formula(prose.row, 1, formula, value, role="word")
        prose.row += 1

    def _tabs(self) -> Sequence[tuple[Sheet, Message]]:
        return (
            (self.conversion, message("What one candidate is worth in baselines, class by class; inputs; a chart.")),
            (self.classes, message("The headline of each class with its interval and how it comes about; a chart.")),
            (self.weights, message("The weight of each benchmark in its class: inputs, in yellow.")),
            (self.benchmarks, message("The ratio of each benchmark with its interval and how it comes about.")),
            *([(self.guardrails, message("Conditions that must hold: kept or broken."))] if self.guardrails else []),
            *self.parts.items(),
            (self.figures, message("Each host's geometric mean of each benchmark.")),
            (self.logs, message("The same as logarithms, oriented so that more is better, for ratios.")),
            (self.scores, message("Each host's weighted sum over a class, for headlines.")),
            (self.raw, message("Every measurement that is in a mean, with the file it was read from.")),
            (self.excluded, message("Excluded data and failed runs, with the reasons.")),
            (self.facts, message("The hardware and configuration of the hosts, side by side.")),
        )


_RAW = message(
    "Measurements that are in a mean. Filter rows as you like, but do not sort: the tab Host logs refers to them."
)
_LOGS = message("Live from the tab Raw. Grey cells are values without a formula.")
_LOGS_AS_VALUES = message("Values instead of formulas, because there are too many measurements.")
_HOW = (
    message("Yellow cells are inputs. When you change one, all results that depend on it are recalculated."),
    message("You can filter rows, but sort only copies, because formulas refer to ranges of other tabs."),
    message("Use the named cells (E_…, E_lo_…, E_hi_…) in your own workbooks."),
    message("Programs other than Excel and LibreOffice show the results that Fleetmark computed."),
)
