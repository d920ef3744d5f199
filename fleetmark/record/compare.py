"""Compare machines that selectors choose from all recorded results."""

from __future__ import annotations

import contextlib
import fnmatch
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd

from fleetmark.base.errors import FleetmarkError, suggest
from fleetmark.base.text import Message, count, message
from fleetmark.base.yaml import names_yaml, read_yaml
from fleetmark.planner.comparison import Comparison, Side, compare_sides
from fleetmark.planner.contrast import Pairing
from fleetmark.planner.cost import SERVERS, Terms
from fleetmark.planner.equivalence import Basis
from fleetmark.planner.peers import Outlier
from fleetmark.planner.redundant import LEAST_MACHINES
from fleetmark.record import imports, naming, store
from fleetmark.record import references as reference
from fleetmark.record.commands import command
from fleetmark.record.machines import machines
from fleetmark.record.prices import check_alike, check_energy, exchanged, priced, terms
from fleetmark.record.prices import powered as powered_by
from fleetmark.record.select import Machine, choose, distinct_names
from fleetmark.record.sides import PER, powered, side, sides, some
from fleetmark.record.sides.matching import Again, Drop, Matching
from fleetmark.record.sides.matching import without as without_hosts
from fleetmark.record.sides.mixtures import parted, under_shares
from fleetmark.record.sides.panel import panel as panel_of
from fleetmark.record.sides.same_size import divisor
from fleetmark.record.sides.strata import Sizes
from fleetmark.workloads.declared import frontier

MOST_AGAIN = 2000  # maximum number of machines in a comparison that is repeated without some of them


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """The options of ``fleetmark compare`` and the results root (``root``).

    ``baseline`` and ``candidates``: selectors; ``reference``: a pinned reference that replaces the baseline; ``per``:
    the unit that results are divided by; ``mix``: shares of server-hours; ``panel``: the benchmarks of the headline
    results; ``only``: patterns for ``workload/case/metric``; ``paired``: both sides are the same hosts;
    ``host_label``: what counts as one host (default: a host, or a publisher in imported tables); ``best``: use only the
    best result of each side; ``names``: display names of the sides, in order; ``prices``: server prices by side,
    ``NAME=4.20 USD/hour``; ``rates``: exchange rates, ``USD=0.92 EUR 2026-11-01``; ``watts``: the power of a server by
    side, ``NAME=650``; ``servers``: how many baseline servers to replace; ``term``: years of service, ``4y``;
    ``energy``: the price of energy, ``0.25 EUR/kWh``; ``campaigns``: only these campaigns and imported tables, if there
    are any.
    """

    root: Path
    baseline: str | None
    candidates: Sequence[str]
    reference: str | None = None
    per: str = "server"
    mix: str | None = None
    panel: Sequence[str] = ()
    only: Sequence[str] = ()
    paired: bool = False
    host_label: str | None = None
    best: bool = False
    names: Sequence[str] = ()
    prices: Sequence[str] = ()
    rates: Sequence[str] = ()
    campaigns: Collection[str] = ()
    watts: Sequence[str] = ()
    servers: int = SERVERS
    term: str | None = None
    energy: str | None = None

    def command(self) -> list[str]:
        """Return the command line that repeats the comparison."""
        words = ["compare"]
        for name, value in (("--baseline", self.baseline), ("--reference", self.reference)):
            words += [name, value] if value is not None else []
        for candidate in self.candidates:
            words += ["--candidate", candidate]
        words += ["--per", self.per] if self.per != "server" else []
        words += ["--mix", self.mix] if self.mix is not None else []
        for benchmark in self.panel:
            words += ["--panel", benchmark]
        for pattern in self.only:
            words += ["--only", pattern]
        words += ["--paired"] if self.paired else []
        words += ["--by", self.host_label] if self.host_label is not None else []
        words += ["--best"] if self.best else []
        for name in self.names:
            words += ["--name", name]
        for price in self.prices:
            words += ["--price", price]
        for rate in self.rates:
            words += ["--rate", rate]
        for power in self.watts:
            words += ["--watts", power]
        words += ["--replace", str(self.servers)] if self.servers != SERVERS else []
        for name, value in (("--term", self.term), ("--energy", self.energy)):
            words += [name, value] if value is not None else []
        return command(self.root, *words)


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """A comparison and its input: machines by side title, and host names by (campaign, host).

    ``turned``: the comparison with each candidate as the baseline, by that candidate's title; not available with a
    pinned reference; ``sides``: results by side title; ``selectors``: selector by side title; ``outliers``: hosts that
    differ from their peers; ``without``: the comparison without outliers, by baseline title; ``powered``: titles of the
    sides with recorded power; ``causes``: the machines that cause each warning; ``effects``: how far each warning moves
    the result, as a logarithm; ``again``: a function that repeats the comparison with a baseline without some machines;
    ``terms``: the terms of the purchase; ``whole_servers``: by baseline, a comparison of whole servers, if divided
    results have prices; ``root``: the record, as ``--results`` names it; ``same_size``: the command line that compares
    machines of one size, or per part, if the sides differ in size.
    """

    comparison: Comparison
    machines: Mapping[str, Sequence[Machine]]
    names: Mapping[tuple[str, str], str]
    turned: Mapping[str, Comparison] = field(default_factory=dict)
    sides: Mapping[str, Side] = field(default_factory=dict)
    selectors: Mapping[str, str] = field(default_factory=dict)
    outliers: Sequence[Outlier] = ()
    without: Mapping[str, Comparison] = field(default_factory=dict)
    powered: frozenset[str] = frozenset()
    causes: Mapping[str, Drop] = field(default_factory=dict)
    effects: Mapping[str, float] = field(default_factory=dict)
    again: Callable[[str, Drop], Comparison | None] | None = None
    terms: Terms = field(default_factory=Terms)
    whole_servers: Mapping[str, Comparison] = field(default_factory=dict)
    root: str = ""
    same_size: Sequence[str] = ()


def compare(question: Question, *, turn: bool = False, values: bool = False) -> Answer:
    """Return the answer to ``question``.

    ``turn``: also compare with each candidate as the baseline; ``values``: add single values to the sides. Raise
    FleetmarkError if the question is invalid or has no data.
    """
    q = question
    _check(q)
    mix = None if q.mix is None else _mix(q.mix)
    pinned = None if q.reference is None else reference.load(q.root, q.reference)
    every = [m for m in machines(q.root) if not q.campaigns or m.campaign in q.campaigns]
    chosen, called, names = _chosen(q, every, pinned)
    host_labels = {title: _host_label(q, machines_of_side) for title, machines_of_side in chosen.items()}
    rest_first = dict(sorted(chosen.items(), key=lambda item: called.selectors[item[0]] == q.baseline))
    sides_by_title = sides(
        q.root, rest_first, only=q.only, per=q.per, host_label=host_labels, best=q.best, names=names, values=values
    )
    weights, pairing = None, Pairing.SAME_HOSTS if q.paired else Pairing.APART
    if pinned is not None:
        first, weights = pinned.side, pinned.weights
        pairing = Pairing.APART if len(first.means) > 1 else Pairing.PINNED
    else:
        first = sides_by_title[called.short[str(q.baseline)]]
    others = [sides_by_title[called.short[candidate]] for candidate in dict.fromkeys(q.candidates)]
    _all_matched(q.only, [first, *others])
    panel = panel_of(q.panel, (str(t) for s in (first, *others) for t in s.benchmarks.index)) if q.panel else None
    kinds = None
    if q.reference is None:
        kinds = kinds_of([m for machines_of in chosen.values() for m in machines_of], q.root, q.only)

    mixed = [m for title, of_side in chosen.items() for m in parted(title, of_side, sides_by_title[title], names)]
    held = [text for title, of_side in chosen.items() for text in under_shares(title, of_side)]
    notes = [*called.notes, *_publishers(q, host_labels, chosen, sides_by_title), *([pinned.error] if pinned else [])]
    alike = pinned is not None or q.paired or q.best or q.per in ("socket", "core", "thread", "gpu")
    matching = Matching(
        pooled=partial(
            compare_sides,
            per=q.per,
            mix=mix,
            machines=kinds,
            weights=weights,
            panel=panel,
            pairing=pairing,
            served=any(frontier(w) for s in (first, *others) for w in set(s.benchmarks["workload"])),
        ),
        build=lambda some, labels: sides(q.root, some, only=q.only, per=q.per, host_label=labels, names=names),
        host_labels=host_labels,
        chosen=chosen,
        names=names,
        sizes=None if alike else Sizes(chosen),
    )

    def against(base: Side, rest: Sequence[Side], drop: Drop | None = None) -> Comparison:
        result = matching.compare(base, rest, drop)
        several = {
            title: label
            for title, label in host_labels.items()
            if len(sides_by_title[title].means) < len(chosen[title])
        }
        labels = several | ({pinned.side.title: pinned.host_label} if pinned else {})
        grouped = {title: label for title, label in labels.items() if label != "host"}
        warnings = [*result.warnings, *(m.text for m in mixed), *held]
        result = replace(result, warnings=warnings, notes=[*notes, *result.notes], grouped=grouped)
        return _credited(q.root, result, chosen)

    of_side = {s.title: s for s in (first, *others)}
    off = q.best or pinned is not None or sum(map(len, chosen.values())) > MOST_AGAIN
    answer = against(first, others)
    turned = {}
    if turn and q.reference is None:
        for side in others:
            with contextlib.suppress(FleetmarkError):  # two candidates may have no benchmark in common
                turned[side.title] = against(side, [first, *(s for s in others if s is not side)])
    of_hosts = [] if q.best else [s for s in (first, *others) if host_labels.get(s.title) == "host"]
    odd = [outlier for s in of_hosts for outlier in matching.unlike(s)]
    out = {title: [o.host for o in odd if o.side == title] for title in of_side}
    typical = {title: without_hosts(side, out[title]) for title, side in of_side.items()}
    without = {}
    for result in (answer, *turned.values()) if odd else ():
        with contextlib.suppress(FleetmarkError):  # the remaining hosts may have no benchmark in common
            rest = [typical[c.title] for c in result.candidates]
            without[result.baseline] = against(typical[result.baseline], rest, out)
    return Answer(
        comparison=answer,
        machines=chosen,
        names=names,
        turned=turned,
        sides=of_side,
        selectors=called.selectors,
        outliers=odd,
        without=without,
        powered=powered(q.root, chosen),
        causes={m.text: {m.side: m.rest} for m in mixed if m.rest},
        effects=matching.effects,
        again=None if off else Again(matching, of_side, against),
        terms=terms(q.servers, q.term, q.energy),
        whole_servers=_whole(q, chosen, turn=turn),
        root=store.name_of(q.root),
        same_size=() if alike or q.per != "server" else _same_size(q, called, chosen, matching.narrowed, answer),
    )


def _same_size(
    q: Question,
    called: naming.Names,
    chosen: Mapping[str, Sequence[Machine]],
    narrowed: Mapping[tuple[str, str], tuple[str, str]],
    result: Comparison,
) -> list[str]:
    """Return the command line that compares machines of one size, or per part, or nothing if the sizes are equal.

    It has the candidates that are compared at the same size of the baseline. Sides with prices or powers keep their
    names, because these refer to them.
    """
    baseline = called.short[str(q.baseline)]
    terms = {c: narrowed[baseline, called.short[c]] for c in q.candidates if (baseline, called.short[c]) in narrowed}
    if not terms:
        others = [m for c in q.candidates for m in chosen[called.short[c]]]
        is_refused = any(e.basis is Basis.STRATA and not e.each for c in result.candidates for e in c.classes.values())
        has_gpus = any(str(name).startswith("gpu") for name in result.benchmarks["class"])
        per = divisor((chosen[baseline], others), has_gpus=has_gpus, has_cores=is_refused)
        return replace(q, per=per).command() if per else []
    first = next(iter(terms.values()))[0]
    comparable = [c for c, (of_baseline, _) in terms.items() if of_baseline == first]
    names = [baseline, *(called.short[c] for c in comparable)] if q.names or q.prices or q.watts else []
    candidates = [f"{c},{terms[c][1]}" for c in comparable]
    return replace(q, baseline=f"{q.baseline},{first}", candidates=candidates, names=names).command()


def _whole(q: Question, chosen: Mapping[str, Sequence[Machine]], *, turn: bool) -> Mapping[str, Comparison]:
    """Return the comparison of whole servers by baseline if ``q`` divides results, because costs refer to whole
    servers.
    """
    if q.per == "server" or not any(m.labels.get("price") for machines in chosen.values() for m in machines):
        return {}
    with contextlib.suppress(FleetmarkError):
        answer = compare(replace(q, per="server"), turn=turn)
        return {answer.comparison.baseline: answer.comparison, **answer.turned}
    return {}


def _chosen(
    q: Question, every: Sequence[Machine], pinned: reference.Reference | None
) -> tuple[dict[str, Sequence[Machine]], naming.Names, dict[tuple[str, str], str]]:
    """Return the machines of each side by title, with prices, the names of the sides, and the names of hosts."""
    selected = {c: choose(every, c) for c in dict.fromkeys([*filter(None, [q.baseline]), *q.candidates])}
    everyone = [m for group in selected.values() for m in group]
    names = distinct_names(everyone, by_id=q.paired or q.per != "server")
    for candidate in q.candidates:
        if q.baseline is not None:
            _apart(q.baseline, selected[q.baseline], candidate, selected[candidate], names, q.paired)
    called = naming.names(selected, q.names, [pinned.side.title] if pinned else ())
    chosen = priced({called.short[selector]: group for selector, group in selected.items()}, q.prices, called.selectors)
    chosen = powered_by(exchanged(chosen, q.rates), q.watts, called.selectors)
    check_energy(chosen, terms(q.servers, q.term, q.energy))
    if q.per == "money":
        check_alike(chosen)
    return chosen, called, names


def _credited(root: Path, result: Comparison, chosen: Mapping[str, Sequence[Machine]]) -> Comparison:
    """Return ``result`` with the publishers' required notices, and the names of single-benchmark classes."""
    credit_lines = imports.credits(root, [m for machines in chosen.values() for m in machines], _compared(result))
    return replace(result, credits=credit_lines, called=imports.micro(_cases(result)))


def _cases(result: Comparison) -> dict[str, list[str]]:
    """Return the cases of the benchmarks in each class."""
    titles: dict[str, set[str]] = {}
    for candidate in result.candidates:
        for name, e in candidate.classes.items():
            titles.setdefault(name, set()).update(e.weights)
    case_of = result.benchmarks["case"]
    return {
        name: sorted({str(case_of[t]) for t in titles_of_class if t in case_of})
        for name, titles_of_class in titles.items()
        if titles_of_class
    }


def _compared(result: Comparison) -> list[tuple[str, str]]:
    """Return the case and metric of every compared benchmark."""
    titles = {title for c in result.candidates for e in c.classes.values() for title in e.each}
    return [tuple(row) for row in result.benchmarks.loc[sorted(titles), ["case", "metric"]].to_numpy().tolist()]


def _check(q: Question) -> None:
    """Raise FleetmarkError for conflicting options."""
    if (q.baseline is None) == (q.reference is None):
        raise FleetmarkError("compare: no baseline; give either --baseline gen=… or --reference NAME")
    if q.per not in PER:
        raise FleetmarkError(f"--per {q.per}{suggest(q.per, list(PER))}: it is one of {', '.join(PER)}")
    if q.panel and q.mix is not None:
        raise FleetmarkError("--panel and --mix: a mix already selects benchmarks; omit one of the options")
    if q.reference is not None and (q.paired or q.per != "server"):
        raise FleetmarkError(
            "--reference needs whole servers and no --paired, because a pinned figure supports neither"
        )
    if (q.best or q.host_label not in (None, "host")) and (q.paired or q.per != "server"):
        raise FleetmarkError("--best and --by cannot be combined with --per or --paired: they merge several hosts")


def _host_label(q: Question, chosen: Sequence[Machine]) -> str:
    """Return the default of ``--by``: the label that identifies a host of a side."""
    if q.host_label is not None or q.paired or q.best:
        return q.host_label or "host"
    return imports.publisher(chosen) or "host"


def _publishers(
    q: Question,
    host_labels: Mapping[str, str],
    chosen: Mapping[str, Sequence[Machine]],
    sides_by_title: Mapping[str, Side],
) -> Iterator[Message]:
    """Yield a note if machines of one publisher count as one host by default."""
    for title, label in host_labels.items():
        if (
            q.host_label is None
            and label in (*imports.PUBLISHERS, imports.BY_TABLE)
            and len(sides_by_title[title].means) < len(chosen[title])
        ):
            yield message(
                "{side}: {machines} count as {hosts}, one per {label} (undo with --by host)",
                side=title,
                machines=count(len(chosen[title]), "machine"),
                hosts=count(len(sides_by_title[title].means), "host"),
                label=label,
            )


def _apart(
    baseline: str,
    first: Sequence[Machine],
    title: str,
    chosen: Sequence[Machine],
    names: Mapping[tuple[str, str], str],
    paired: bool,
) -> None:
    """Raise FleetmarkError if two sides share results, or if paired sides share no host."""
    mine = {(m.campaign, m.host) for m in first}
    both = [f"{m.host} of {m.campaign}" for m in chosen if (m.campaign, m.host) in mine]
    if both:
        raise FleetmarkError(
            f"{baseline} and {title} both select {', '.join(both[:3])}{', …' if len(both) > 3 else ''}: "
            "a host cannot be compared with itself; narrow one of them"
        )
    if paired and not {names[key] for key in mine} & {names[m.campaign, m.host] for m in chosen}:
        shared_names = {m.host for m in first} & {m.host for m in chosen}
        hint = f" ({', '.join(sorted(shared_names)[:3])}: other machines of that name)" if shared_names else ""
        raise FleetmarkError(f"--paired: {baseline} and {title} have no host in common{hint}; compare them without")


def _all_matched(only: Sequence[str], sides: Sequence[Side]) -> None:
    for pattern in only:
        titles = {"/".join(row) for s in sides for row in s.benchmarks[["workload", "case", "metric"]].to_numpy()}
        if not any(fnmatch.fnmatchcase(t, pattern) for t in titles):
            raise FleetmarkError(f"--only {pattern} matches no benchmark that passed; there are {some(titles)}")


def kinds_of(chosen: Sequence[Machine], root: Path, only: Sequence[str] = ()) -> pd.DataFrame | None:
    """Return one row per generation of the ``chosen`` machines, to find redundant benchmarks.

    Other recorded machines have no influence. Return None if there are fewer than LEAST_MACHINES generations.
    """
    labelled = [m for m in chosen if "gen" in m.labels]
    if len({m.labels["gen"] for m in labelled}) < LEAST_MACHINES:
        return None
    return side(root, "all sides", labelled, only=only, host_label="gen").means


def inline_mix(text: str) -> str:
    """Return a mix as words, whether it is given as words or as a file."""
    return ",".join(f"{name}={share}" for name, share in _mix(text).items())


def _mix(text: str) -> dict[str, float]:
    """Parse a mix such as ``cpu-int=0.6,disk-iops=0.4``, or read it from a YAML file."""
    if names_yaml(text):
        pairs: dict[str, Any] = read_yaml(Path(text))
    else:
        parts = [(name.strip(), share) for name, _, share in (part.rpartition("=") for part in text.split(","))]
        pairs = dict(parts)
        if twice := [name for n, (name, _) in enumerate(parts) if name in dict(parts[:n])]:
            raise FleetmarkError(f"--mix {text}: {twice[0]} is repeated; give it one share")
    shares = {}
    for name, share in pairs.items():
        try:
            shares[str(name)] = float(share)
        except (TypeError, ValueError):
            raise FleetmarkError(f"--mix {text}: {share!r} is not a share; write cpu-int=0.6,disk-iops=0.4") from None
        if not name:
            raise FleetmarkError(f"--mix {text}: {share} has no name; write cpu-int=0.6,disk-iops=0.4")
    return shares
