"""Present the rules that can be tried on a host, and the results of a trial, as documents."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fleetmark.base.text import Message, count, message
from fleetmark.base.words import word
from fleetmark.planner.diagnosis.trial import Gain, TrialChange
from fleetmark.planner.diagnosis.tuning.rule import Rule
from fleetmark.planner.diagnosis.tuning.setting import Setting
from fleetmark.record.diagnosis.trials import Tried
from fleetmark.reports.kit import format as fmt
from fleetmark.reports.kit.document import FILES, Command, Document, Exhibit, Finding, Note, Section, listing
from fleetmark.reports.kit.tabular import Cell, Column, Tabular, Tone, number, times

_TONES: Mapping[Gain, Tone] = {Gain.FASTER: "good", Gain.SLOWER: "bad", Gain.NEITHER: ""}


@dataclass(frozen=True, slots=True)
class Possible:
    """A rule on one host: its evidence, the setting that it suggests, and the last trial."""

    rule: Rule
    evidence: Message | None
    setting: Setting | None
    tried: Tried | None


@dataclass(kw_only=True, frozen=True, slots=True)
class Preview:
    """A trial that has not run yet. ``workloads``: the workloads of its suite."""

    host: str
    rule: Rule
    evidence: Message | None
    setting: Setting
    workloads: Mapping[str, Any]
    blocks: int

    @property
    def cases(self) -> list[str]:
        """Return the cases as WORKLOAD/CASE."""
        return [f"{workload}/{case}" for workload, settings in self.workloads.items() for case in settings["hosts"]]


def sentence(change: TrialChange) -> Message:
    """Return a change with its interval, in one line."""
    ratio, lo, hi = change.ratio.value, change.ratio.lo or 0.0, change.ratio.hi or 0.0
    share, low, high = (f"{abs(r - 1):.1%}" if r is ratio else fmt.with_minus(f"{r - 1:+.1%}") for r in (ratio, lo, hi))
    values = {"benchmark": change.title, "low": low, "high": high, "pairs": count(change.pairs, "pair")}
    if change.gain is Gain.FASTER:
        return message("{benchmark}: {share} better ({low} to {high}, {pairs})", share=share, **values)
    if change.gain is Gain.SLOWER:
        return message("{benchmark}: {share} worse ({low} to {high}, {pairs})", share=share, **values)
    return message("{benchmark}: no change beyond chance ({low} to {high}, {pairs})", **values)


def headline(tried: Tried) -> Message:
    """Return the result of the whole trial as a sentence."""
    if tried.refused:
        return message("{rule} on {host} was not tried: {why}", rule=tried.rule, host=tried.host, why=tried.refused)
    if not tried.changes:
        return message("{rule} on {host}: nothing was measured with and without it", rule=tried.rule, host=tried.host)
    better = sum(c.gain is Gain.FASTER for c in tried.changes)
    worse = sum(c.gain is Gain.SLOWER for c in tried.changes)
    return message(
        "{rule} on {host}: better in {better}, worse in {worse} of {all}",
        rule=tried.rule,
        host=tried.host,
        better=better,
        worse=worse,
        all=count(len(tried.changes), "benchmark"),
    )


def notes(tried: Tried) -> list[Message]:
    """Return the setting that was changed, whether it was restored, and which runs did not count."""
    listed: list[Message] = []
    if tried.before and tried.after:
        setting = tried.items[0] if len(tried.items) == 1 else message("{n} settings", n=len(tried.items))
        before, after = ", ".join(tried.before), ", ".join(tried.after)
        listed.append(
            message(
                "{what} was alternated between {before} and {after}, and read back after every run",
                what=setting,
                before=before,
                after=after,
            )
        )
    if tried.left:
        listed.append(message("NOT RESTORED: {what}", what=tried.left))
    elif not tried.finished and not tried.refused:
        listed.append(
            message(
                "The trial did not end. Its setting is restored within a minute, at the next boot of the host, or when "
                "you run the same command again."
            )
        )
    elif tried.before:
        listed.append(message("The old value is restored."))
    if tried.cleared:
        listed.append(message("Before it: {what}", what=tried.cleared))
    if tried.lost:
        listed.append(message("{runs} did not pass and do not count", runs=count(tried.lost, "run")))
    if not tried.refused:
        listed.append(message("The runs are in {path}.", path=tried.campaign))
    return listed


def document(tried: Tried) -> Document:
    """Return the changes, the largest first, and whether the setting was restored."""
    changes = tuple(Finding("", sentence(change), tone=_TONES[change.gain]) for change in tried.changes)
    sentences = tuple(
        Note(text, "bad", quiet=False) if _is_alarm(tried, text) else Note(text, quiet=True) for text in notes(tried)
    )
    return Document(
        title=message("Trial of {rule} on {host}", rule=tried.rule, host=tried.host),
        answer=headline(tried),
        sections=(
            Section("changes", "", (*changes, *sentences)),
            Section("ratios", message("Changes"), (_changes(tried),), FILES),
        ),
        data=as_json(tried),
    )


def _is_alarm(tried: Tried, text: str) -> bool:
    return bool(tried.left) and text.startswith("NOT")


def _changes(tried: Tried) -> Tabular:
    columns = (
        Column("benchmark", message("benchmark"), "name"),
        Column("ratio", message("ratio"), "number"),
        Column("pairs", message("pairs"), "number"),
        Column("gain", message("verdict"), "verdict"),
    )
    rows = tuple(
        (
            Cell(c.title),
            times(c.ratio.value, c.ratio.lo, c.ratio.hi),
            number(c.pairs),
            Cell(word(c.gain.value), tone=_TONES[c.gain]),
        )
        for c in tried.changes
    )
    return Tabular("changes", message("Changes"), columns, rows)


def as_json(tried: Tried) -> dict[str, Any]:
    """Return the trial for programs. Ratios above 1 are better."""
    return {
        "host": tried.host,
        "rule": tried.rule,
        "items": list(tried.items),
        "before": list(tried.before),
        "after": list(tried.after),
        "refused": tried.refused or None,
        "left": tried.left or None,
        "cleared": tried.cleared or None,
        "campaign": tried.campaign,
        "runs_lost": tried.lost,
        "finished": tried.finished,
        "changes": [
            {
                "benchmark": c.title,
                "ratio": c.ratio.value,
                "lo": c.ratio.lo,
                "hi": c.ratio.hi,
                "pairs": c.pairs,
                "gain": c.gain.value,
            }
            for c in tried.changes
        ],
    }


def rules(every: Sequence[Rule]) -> Document:
    """Return a row per rule that says whether it can be tried."""
    columns = (
        Column("rule", message("rule"), "name"),
        Column("try", message("can be tried")),
        Column("suggestion", message("suggestion")),
    )
    rows = tuple((Cell(r.name), Cell("--try" if r.reversible else ""), Cell(r.suggestion)) for r in every)
    data = [
        {"rule": r.number, "name": r.name, "try": r.reversible, "suggestion": r.suggestion, "retest": r.retest}
        for r in every
    ]
    title = message("Rules")
    return listing(title, Tabular("rules", title, columns, rows, listing=True), "", data)


def possible(host: str, rows: Sequence[Possible]) -> Document:
    """Return the rules that apply to a host, then the other rules that could be tried on it."""
    exhibits: list[Exhibit] = []
    for p in rows:
        if p.evidence is None:
            continue
        tried = [sentence(c) for c in p.tried.changes] if p.tried is not None else []
        details = (message("suggestion: {what}", what=p.rule.suggestion), *tried)
        exhibits.append(Finding(f"{p.rule.number} {p.rule.name}", p.evidence, details))
        if p.setting is not None:
            exhibits.append(
                Command(message("Try it"), fmt.typed(["fleetmark", "tune", host, p.rule.name, "--try", "--become"]))
            )
    if not exhibits:
        exhibits.append(Note(message("No rule applies to {hosts}.", hosts=host)))
    silent = [p.rule.name for p in rows if p.evidence is None and p.setting is not None]
    if silent:
        exhibits.append(Note(message("Other rules that can be tried: {rules}", rules=", ".join(silent)), quiet=True))
    section = Section("rules", "", tuple(exhibits))
    return Document(
        title=message("Rules on {host}", host=host), answer="", sections=(section,), data=possible_as_json(host, rows)
    )


def possible_as_json(host: str, rows: Sequence[Possible]) -> dict[str, Any]:
    """Return the rules of one host as values for JSON."""
    return {
        "host": host,
        "rules": [
            {
                "rule": p.rule.number,
                "name": p.rule.name,
                "evidence": p.evidence,
                "sets": [item.shown for item in p.setting.items] if p.setting else None,
                "trial": p.tried.campaign if p.tried else None,
            }
            for p in rows
        ],
    }


def preview(preview: Preview) -> Document:
    """Return the setting that a trial would use and the cases that it would measure."""
    cases = ", ".join(preview.cases)
    lines = (
        preview.evidence or message("The rule does not apply to {host}.", host=preview.host),
        message("would set: {what}", what=preview.setting.shown),
        message("would measure {n} times without and with it, alternately: {cases}", n=preview.blocks, cases=cases),
        message("Nothing was changed. Use --try --become to try the setting and restore it."),
    )
    data = {
        "host": preview.host,
        "rule": preview.rule.name,
        "evidence": preview.evidence,
        "sets": [item.shown for item in preview.setting.items],
        "cases": preview.cases,
        "blocks": preview.blocks,
    }
    title = f"{preview.rule.number} {preview.rule.name}"
    return Document(title=title, answer=title, sections=(Section("preview", "", tuple(map(Note, lines))),), data=data)
