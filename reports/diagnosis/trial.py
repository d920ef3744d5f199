"""What can be tried on a host, and what a trial changed, for a terminal or a program."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from fleetmark.base.text import Message, count, message
from fleetmark.record.diagnosis.trials import Tried
from planner.diagnosis.trial import Change, Gain
from planner.diagnosis.tuning.rule import Rule
from planner.diagnosis.tuning.setting import Setting
from reports.kit import format as fmt
from reports.kit.language import Language


@dataclass(frozen=True, slots=True)
class Possible:
    """A rule on one host: what it says there, what it would set, and what the last trial showed."""

    rule: Rule
    evidence: Message | None
    setting: Setting | None
    tried: Tried | None


@dataclass(frozen=True, slots=True)
class Preview:
    """What a trial would do. ``workloads``: as its suite has them."""

    host: str
    rule: Rule
    evidence: Message | None
    setting: Setting
    workloads: Mapping[str, Any]
    blocks: int

    @property
    def cases(self) -> list[str]:
        """The cases, as WORKLOAD/CASE."""
        return [f"{workload}/{case}" for workload, of in self.workloads.items() for case in of["hosts"]]


def sentence(change: Change) -> Message:
    """A change with its interval, in one line."""
    ratio, lo, hi = change.ratio.value, change.ratio.lo or 0.0, change.ratio.hi or 0.0
    share, low, high = (f"{abs(r - 1):.1%}" if r is ratio else f"{r - 1:+.1%}" for r in (ratio, lo, hi))
    values = {"benchmark": change.title, "low": low, "high": high, "pairs": count(change.pairs, "pair")}
    if change.gain is Gain.FASTER:
        return message("{benchmark}: {share} better ({low} to {high}, {pairs})", share=share, **values)
    if change.gain is Gain.SLOWER:
        return message("{benchmark}: {share} worse ({low} to {high}, {pairs})", share=share, **values)
    return message("{benchmark}: no change beyond chance ({low} to {high}, {pairs})", **values)


def headline(tried: Tried) -> Message:
    """What the trial showed as a whole."""
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
    """What was set, whether it was put back, and what did not count."""
    listed: list[Message] = []
    if tried.before and tried.after:
        what = tried.items[0] if len(tried.items) == 1 else message("{n} settings", n=len(tried.items))
        before, after = ", ".join(tried.before), ", ".join(tried.after)
        listed.append(
            message(
                "{what} was {before} and {after} in turns, read after every run", what=what, before=before, after=after
            )
        )
    if tried.left:
        listed.append(message("NOT PUT BACK: {what}", what=tried.left))
    elif not tried.finished and not tried.refused:
        listed.append(
            message(
                "It did not end. What it set is put back within a minute, by a boot of the host, or when the same "
                "command goes on."
            )
        )
    elif tried.before:
        listed.append(message("It is put back."))
    if tried.cleared:
        listed.append(message("Before it: {what}", what=tried.cleared))
    if tried.lost:
        listed.append(message("{runs} did not pass and do not count", runs=count(tried.lost, "run")))
    if not tried.refused:
        listed.append(message("The runs are in {path}.", path=tried.campaign))
    return listed


def table(tried: Tried, _: Language) -> RenderableType:
    """The changes, the largest first."""
    parts: list[RenderableType] = [Text(_said(headline(tried), _), style="bold")]
    styles = {Gain.FASTER: "green", Gain.SLOWER: "red", Gain.NEITHER: ""}
    parts += [_line(_said(sentence(c), _), styles[c.gain]) for c in tried.changes]
    return Group(
        *parts, *(_line(_said(n, _), "red" if tried.left and n.startswith("NOT") else "dim") for n in notes(tried))
    )


def as_json(tried: Tried) -> str:
    """Everything, ratios above 1 are better."""
    return json.dumps(
        {
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
        },
        indent=1,
    )


def rules(every: Sequence[Rule], _: Language) -> RenderableType:
    """Which rules there are and which can be tried."""
    rows = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for name in (_("rule"), _("can be tried"), _("suggestion")):
        rows.add_column(name, overflow="fold")
    for rule in every:
        rows.add_row(rule.name, "--try" if rule.reversible else "", _said(rule.suggestion, _))
    return rows


def rules_as_json(every: Sequence[Rule]) -> str:
    return json.dumps(
        [
            {"rule": r.number, "name": r.name, "try": r.reversible, "suggestion": r.suggestion, "retest": r.retest}
            for r in every
        ],
        indent=1,
    )


def possible(host: str, rows: Sequence[Possible], _: Language) -> RenderableType:
    """What rules say of a host, then what could be tried there besides."""
    speaking = [p for p in rows if p.evidence is not None]
    silent = [p for p in rows if p.evidence is None and p.setting is not None]
    parts: list[RenderableType] = []
    for p in speaking:
        parts.append(Text(f"{p.rule.number:>2} {p.rule.name}", style="bold"))
        parts.append(_line(_said(p.evidence or message(""), _)))
        parts.append(_line(_said(message("suggestion: {what}", what=p.rule.suggestion), _)))
        if p.tried is not None:
            parts += [_line(_said(sentence(c), _)) for c in p.tried.changes]
        if p.setting is not None:
            parts.append(_line(f"fleetmark tune {fmt.clean(host)} {p.rule.name} --try --become", "dim"))
    if not speaking:
        parts.append(Text(_said(message("No rule has anything to say of {hosts}.", hosts=host), _)))
    if silent:
        names = ", ".join(p.rule.name for p in silent)
        parts.append(Text(_said(message("Can be tried besides: {rules}", rules=names), _), style="dim"))
    return Group(*parts)


def possible_as_json(host: str, rows: Sequence[Possible]) -> str:
    return json.dumps(
        {
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
        },
        indent=1,
    )


def preview(about: Preview, _: Language) -> RenderableType:
    """What would be set, what would be measured, and what to type."""
    cases = ", ".join(about.cases)
    lines = [
        about.evidence or message("The rule has nothing to say of {host}.", host=about.host),
        message("would set: {what}", what=about.setting.shown),
        message("would measure {n} times without and with it, in turns: {cases}", n=about.blocks, cases=cases),
        message("Nothing was changed. --try --become does it, and puts it back."),
    ]
    return Group(Text(f"{about.rule.number:>2} {about.rule.name}", style="bold"), *(_line(_said(n, _)) for n in lines))


def preview_as_json(about: Preview) -> str:
    return json.dumps(
        {
            "host": about.host,
            "rule": about.rule.name,
            "evidence": about.evidence,
            "sets": [item.shown for item in about.setting.items],
            "cases": about.cases,
            "blocks": about.blocks,
        },
        indent=1,
    )


def _said(text: Message, _: Language) -> str:
    return fmt.clean(_(text))


def _line(text: str, style: str = "") -> RenderableType:
    return Padding(Text(text, style=style), (0, 0, 0, 3))
