"""Findings as sentences: what is wrong, by how much, and how sure that is."""

from __future__ import annotations

from fleetmark.base.text import Message, count, joined, message
from fleetmark.planner.diagnosis.confirm import Settled, Verdict
from fleetmark.planner.diagnosis.finding import Finding, Kind
from fleetmark.planner.diagnosis.outliers import DISCOVERY
from fleetmark.record.diagnosis import Diagnosis
from fleetmark.reports.kit import format as fmt
from fleetmark.workloads import declared

MANY = 4  # hosts that a sentence names


def benchmark(finding: Finding) -> str:
    """The benchmark in one line."""
    b = finding.benchmark
    subject = "host" if b["subject"] == "pairs" else b["subject"]
    point = fmt.point(b["metric"], subject, b["labels"], b["standing"])
    return f"{fmt.clean(b['workload'])} {fmt.clean(b['case'])} {point}"


def amounts(finding: Finding) -> tuple[str, str]:
    """The finding's value and the expected one, in one unit."""
    low, high = sorted((finding.value, finding.expected))
    b = finding.benchmark
    bits, percent = (is_shown(b["workload"], b["metric"]) for is_shown in (declared.in_bits, declared.in_percent))
    shown = fmt.fit([(finding.value, low, high)], b["unit"], bits=bits, percent=percent)
    return shown.quantity(finding.value), shown.quantity(finding.expected)


def share(deficit: float) -> str:
    """A deficit as a percentage."""
    return f"{deficit:.1%}" if deficit < 0.1 else f"{deficit:.0%}"


def sentence(finding: Finding) -> Message:
    """What is wrong, in one sentence."""
    value, expected = amounts(finding)
    common = {"benchmark": benchmark(finding), "deficit": share(finding.deficit)}
    match finding.kind:
        case Kind.TAIL:
            text = message(
                "{benchmark}: its slowest run is {worst} below its own median ({usual} on {peers}).",
                benchmark=common["benchmark"],
                worst=share(finding.worst),
                usual=share(finding.usual),
                peers=count(finding.n, "peer"),
            )
        case Kind.NODE:
            text = message(
                "{benchmark}: {deficit} worse than usual with all of its {partners}: the host, not a link.",
                **common,
                partners=count(finding.n, "partner"),
            )
        case Kind.LINK if finding.either:
            text = message(
                "{benchmark}: {deficit} worse than usual; too few partners to tell whether it is the link or a host.",
                **common,
            )
        case Kind.LINK:
            text = message(
                "{benchmark}: {deficit} worse than these two hosts are with others: the link, not a host.", **common
            )
        case Kind.REGRESSION:
            text = _regression(finding)
        case Kind.GROUPS:
            text = message(
                "{benchmark}: two groups of hosts. {slower} at {value}, {faster} at {expected} ({deficit} worse).",
                **common,
                value=value,
                expected=expected,
                slower=count(len(finding.members), "host"),
                faster=count(finding.n, "host"),
            )
        case _:
            text = message(
                "{benchmark}: {deficit} worse than {peers} ({value}, median {expected}).",
                **common,
                value=value,
                expected=expected,
                peers=count(finding.n, "peer"),
            )
    return text


def _regression(finding: Finding) -> Message:
    value, expected = amounts(finding)
    common = {"benchmark": benchmark(finding), "deficit": share(finding.deficit), "baseline": finding.cohort}
    if not finding.members:
        return message(
            "{benchmark}: {deficit} worse than in {baseline} ({expected} to {value}).",
            **common,
            value=value,
            expected=expected,
        )
    return message(
        "{benchmark}: {hosts} slower than in {baseline}, the median one by {deficit} ({expected} to {value}).",
        **common,
        hosts=count(len(finding.members), "host"),
        value=value,
        expected=expected,
    )


def certainty(finding: Finding) -> Message:
    """How sure a finding is, and what would make it so."""
    if finding.kind is Kind.GROUPS:
        names = fmt.clean(", ".join(finding.members[:MANY])) + (", …" if len(finding.members) > MANY else "")
        if not finding.because:
            return message("No host is blamed: no known fact tells the groups apart. Slower: {names}", names=names)
        parts = [
            message(
                "{fact} is {slower} on the slower, {faster} on the faster",
                fact=n,
                slower=fmt.clean(a),
                faster=fmt.clean(b),
            )
            for n, a, b in finding.because
        ]
        return message("No host is blamed: {facts}. Slower: {names}", facts=joined(parts, "; "), names=names)
    if finding.settled is not None:
        return repeated(finding.settled)
    z = f"{finding.z:.1f}"
    if finding.kind is Kind.REGRESSION:
        return message("Beyond what repeats vary: z {z}.", z=z)
    if finding.sure:
        certainty_text = message("Not chance: z {z}, false discovery rate below {rate}.", z=z, rate=f"{DISCOVERY:.0%}")
    else:
        certainty_text = message("Repeat to confirm: z {z}.", z=z)
    text = joined([certainty_text, message("Its peers have another firmware.") if finding.mixed else None], " ")
    return text if isinstance(text, Message) else certainty_text


def repeated(settled: Settled) -> Message:
    """What a repeat showed."""
    parts = {"deficit": share(settled.deficit), "runs": count(settled.runs, "run"), "campaign": settled.campaign}
    match settled.verdict:
        case Verdict.CONFIRMED:
            return message("Confirmed: {deficit} worse again in {runs} beside sound hosts ({campaign}).", **parts)
        case Verdict.CLEARED:
            return message(
                "Cleared: at most {high} worse in {runs} beside sound hosts ({campaign}).",
                high=share(max(settled.high, 0.0)),
                runs=parts["runs"],
                campaign=settled.campaign,
            )
        case Verdict.OPEN:
            return message(
                "Neither confirmed nor cleared: {low} to {high} worse in {runs} beside sound hosts; repeat once more "
                "({campaign}).",
                low=share(settled.low),
                high=share(settled.high),
                runs=parts["runs"],
                campaign=settled.campaign,
            )


def headline(diagnosis: Diagnosis) -> Message:
    """The answer in one sentence."""
    suspects, links, common = list(diagnosis.suspects()), diagnosis.links(), diagnosis.everywhere()
    hosts = count(diagnosis.hosts, "host")
    if not diagnosis.findings and not diagnosis.judged:
        return message("No host could be judged: no cohort has enough hosts.")
    if diagnosis.healthy and diagnosis.cleared():
        return message("No host of {hosts} is slower than its peers: a repeat cleared what was suspect.", hosts=hosts)
    if diagnosis.healthy:
        return message("No host of {hosts} is slower than its peers.", hosts=hosts)
    names = fmt.clean(", ".join(suspects[:MANY])) + (", …" if len(suspects) > MANY else "")
    slow = message("{n} of {hosts} slower than expected: {names}.", n=len(suspects), hosts=hosts, names=names)
    changed = message("Slower everywhere than in the reference: {n}.", n=count(len(common), "benchmark"))
    links_text = message("Slow links: {links}.", links=fmt.clean(", ".join(map(between, links[:MANY]))))
    text = joined([slow if suspects else None, links_text if links else None, changed if common else None], " ")
    return text if isinstance(text, Message) else slow


def between(link: Finding) -> str:
    """Both ends of a link."""
    return f"{link.host} - {link.other}"


def owner(finding: Finding) -> str:
    """Return the host of a finding, or both ends of its link."""
    return between(finding) if finding.other else finding.host
