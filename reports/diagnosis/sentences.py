"""Describe findings in sentences: what is wrong, by how much, and how sure the finding is."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from fleetmark.base.text import Message, count, joined, message
from fleetmark.planner.diagnosis.confirm import Settled, Verdict
from fleetmark.planner.diagnosis.finding import Finding, Kind
from fleetmark.planner.diagnosis.outliers import DISCOVERY
from fleetmark.record.diagnosis import Diagnosis
from fleetmark.reports.comparison.titles import class_title
from fleetmark.reports.kit import format as fmt
from fleetmark.workloads import declared

MANY = 4  # hosts named in a sentence
_JUDGED = (Kind.SLOW, Kind.NODE, Kind.LINK)  # findings with a false discovery rate


def benchmark(finding: Finding) -> str:
    """Return the benchmark in one line."""
    b = finding.benchmark
    subject = "host" if b["subject"] == "pairs" else b["subject"]
    point = fmt.point(b["metric"], subject, b["labels"], b["standing"])
    return f"{fmt.clean(b['workload'])} {fmt.clean(b['case'])} {point}"


def lost(diagnosis: Diagnosis) -> Iterator[Message]:
    """Yield the cost of the slow hosts: the sum of their deficits in each class of work, in hosts and in money."""
    deficits: dict[str, dict[str, float]] = {}
    for host, findings in diagnosis.suspects().items():
        for f in findings:
            if f.kind is not Kind.TAIL:
                by_host = deficits.setdefault(str(f.benchmark["class"]), {})
                by_host[host] = max(f.deficit, by_host.get(host, 0.0))
    listed = sorted(((sum(d.values()), class_title(c), d) for c, d in deficits.items()), key=lambda x: x[:2])
    parts = [
        joined(
            [
                message(
                    "{n} of {hosts} in {class_}", n=f"{total:.2g}", hosts=count(diagnosis.hosts, "host"), class_=title
                ),
                _price(by_host, diagnosis.prices),
            ],
            " ",
        )
        for total, title, by_host in reversed(listed)
    ]
    if parts:
        yield message(
            "Lost capacity as a number of hosts: {parts}. A job that spans all hosts runs at the speed of the slowest.",
            parts=joined(parts),
        )


def _price(deficits: Mapping[str, float], prices: Mapping[str, tuple[float, str]]) -> str:
    """Return the price of lost shares of hosts, such as ``(3,100 EUR)``; empty without prices in one unit."""
    units = {prices[host][1] if host in prices else "" for host in deficits}
    if len(units) != 1 or "" in units:
        return ""
    amount = sum(deficit * prices[host][0] for host, deficit in deficits.items())
    return f"({fmt.price(amount)} {fmt.clean(units.pop())})"


def sure(diagnosis: Diagnosis) -> Iterator[Message]:
    """Yield how many of the named hosts and links may be false alarms, and how many need a repeat."""
    named = [f for f in diagnosis.findings if f.kind in _JUDGED and not f.cleared and f.settled is None]
    certain = sum(f.sure for f in named)
    if certain:
        yield message(
            "{n} with a false discovery rate below {rate}.",
            n=count(certain, "finding"),
            rate=f"{DISCOVERY:.0%}",
        )
    if len(named) > certain:
        yield message("{n} to be confirmed by a repeat.", n=count(len(named) - certain, "finding"))


def amounts(finding: Finding) -> tuple[str, str]:
    """Return the finding's value and the expected value in the same unit."""
    low, high = sorted((finding.value, finding.expected))
    b = finding.benchmark
    bits, percent = (is_shown(b["workload"], b["metric"]) for is_shown in (declared.in_bits, declared.in_percent))
    counted = declared.counted(b["workload"], b["metric"])
    shown = fmt.fit([(finding.value, low, high)], b["unit"], bits=bits, percent=percent, counted=counted)
    return shown.quantity(finding.value), shown.quantity(finding.expected)


def share(deficit: float) -> str:
    """Return a deficit as a percentage."""
    return f"{deficit:.1%}" if deficit < 0.1 else f"{deficit:.0%}"


def sentence(finding: Finding) -> Message:
    """Return what is wrong, in one sentence."""
    value, expected = amounts(finding)
    common = {"benchmark": benchmark(finding), "deficit": share(finding.deficit)}
    match finding.kind:
        case Kind.TAIL:
            text = message(
                "{benchmark}: its slowest run is {worst} worse than its own median ({usual} on {peers}).",
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
                "{benchmark}: this pair is {deficit} worse than either host is with others, so the link is at fault.",
                **common,
            )
        case Kind.REGRESSION:
            text = _regression(finding)
        case Kind.BORDER if finding.uplink:
            text = message(
                "{benchmark}: {deficit} worse on {pairs} over the uplink of {place}: not a host.",
                **common,
                pairs=count(finding.n, "pair"),
                place=fmt.clean(finding.place),
            )
        case Kind.BORDER:
            text = message(
                "{benchmark}: {deficit} worse on {pairs} across {place}: the border, not a host.",
                **common,
                pairs=count(finding.n, "pair"),
                place=fmt.clean(finding.place),
            )
        case Kind.GROUPS:
            text = _group(finding, common, value, expected)
        case _:
            text = message(
                "{benchmark}: {deficit} worse than {peers} ({value}, median {expected}).",
                **common,
                value=value,
                expected=expected,
                peers=count(finding.n, "peer"),
            )
    return text


def _group(finding: Finding, common: dict[str, str], value: str, expected: str) -> Message:
    """Describe a group of hosts that are slow together."""
    slower = len(finding.members)
    sizes = {"n": slower, "hosts": count(slower + finding.n, "host"), "value": value, "expected": expected}
    if finding.interval is not None:
        low, high = finding.interval
        return message(
            "{benchmark}: {n} of {hosts} are {deficit} slower (95% {low} to {high}): {value}, others {expected}.",
            **common,
            **sizes,
            low=f"{low:.1%}",
            high=f"{high:.1%}",
        )
    return message(
        "{benchmark}: {populations} populations of hosts. {n} of {hosts} are {deficit} slower: {value}, others "
        "{expected}.",
        **common,
        **sizes,
        populations=finding.populations,
    )


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
    """Describe how certain a finding is, and how to make it more certain."""
    if finding.kind is Kind.GROUPS:
        return _cause(finding)
    if finding.settled is not None:
        return repeated(finding.settled)
    z = f"{abs(finding.z):.1f}"
    if finding.kind is Kind.REGRESSION:
        return message("Beyond what repeats vary: shortfall of {z} robust deviations.", z=z)
    if finding.sure:
        certainty_text = message(
            "Shortfall of {z} robust deviations; false discovery rate below {rate}.", z=z, rate=f"{DISCOVERY:.0%}"
        )
    else:
        certainty_text = message("Repeat to confirm: shortfall of {z} robust deviations.", z=z)
    if finding.kind is Kind.BORDER:
        return message("Beyond what pairs vary: shortfall of {z} robust deviations.", z=z)
    other_firmware = message("Its peers have another firmware.") if finding.mixed else None
    text = joined([certainty_text, other_firmware, *_distinctions(finding)], " ")
    return text if isinstance(text, Message) else certainty_text


def _distinctions(finding: Finding) -> list[Message]:
    """Return the facts that only slow hosts have."""
    return [
        message(
            "Only slow hosts have {fact} {value} (others: {others}).",
            fact=fmt.clean(name),
            value=fmt.clean(value),
            others=fmt.clean(others),
        )
        for name, value, others in finding.because
    ]


def _cause(finding: Finding) -> Message:
    """Describe what the hosts of a group have in common, and how this fact was chosen."""
    names = fmt.clean(", ".join(finding.members[:MANY])) + (", …" if len(finding.members) > MANY else "")
    if not finding.because:
        return message("Unexplained: no known fact or label tells them apart. Slowest first: {names}", names=names)
    facts = joined(
        [
            message("{fact} {value} (others: {others})", fact=fmt.clean(n), value=fmt.clean(a), others=fmt.clean(b))
            for n, a, b in finding.because
        ],
        ", ",
    )
    if not finding.tried:
        return message("They share {facts}. Slowest first: {names}", facts=facts, names=names)
    return message(
        "They share {facts}: the clearest of {tried} facts and labels, p below {p} after correction for all of them. "
        "Slowest first: {names}",
        facts=facts,
        tried=finding.tried,
        p=f"{max(finding.q, 1e-9):.0e}",
        names=names,
    )


def repeated(settled: Settled) -> Message:
    """Describe the result of a repeat."""
    parts = {"deficit": share(settled.deficit), "runs": count(settled.runs, "run"), "campaign": settled.campaign}
    match settled.verdict:
        case Verdict.CONFIRMED:
            return message("Confirmed: {deficit} worse again in {runs} next to healthy hosts ({campaign}).", **parts)
        case Verdict.CLEARED:
            return message(
                "Cleared: at most {high} worse in {runs} next to healthy hosts ({campaign}).",
                high=share(max(settled.high, 0.0)),
                runs=parts["runs"],
                campaign=settled.campaign,
            )
        case Verdict.OPEN:
            return message(
                "Neither confirmed nor cleared: {low} to {high} worse in {runs} next to healthy hosts; repeat once "
                "more ({campaign}).",
                low=share(settled.low),
                high=share(settled.high),
                runs=parts["runs"],
                campaign=settled.campaign,
            )


def headline(diagnosis: Diagnosis) -> Message:
    """Return the answer in one sentence."""
    suspects, links, common = list(diagnosis.suspects()), diagnosis.links(), diagnosis.everywhere()
    groups = [_together(finding, hosts=diagnosis.hosts) for finding in _first_of_each(diagnosis.groups())]
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
    named_links = [message("{link} (−{loss})", link=fmt.clean(between(f)), loss=share(f.deficit)) for f in links[:MANY]]
    links_text = message("Slow links: {links}.", links=joined(named_links))
    parts = [
        *groups[:MANY],
        _places(diagnosis.borders()),
        slow if suspects else None,
        links_text if links else None,
        changed if common else None,
    ]
    text = joined(parts, " ")
    return text if isinstance(text, Message) else slow


def _places(borders: list[Finding]) -> Message | None:
    """Return the slow borders and uplinks in one short sentence."""
    if not borders:
        return None
    names = dict.fromkeys(fmt.clean(f.place) for f in borders)
    return message("Slow borders or uplinks: {places}.", places=", ".join([*names][:MANY]))


def _first_of_each(groups: list[Finding]) -> list[Finding]:
    """Return the finding with the largest loss for each set of facts, or for each benchmark if it has no facts."""
    first: dict[tuple[str, str], Finding] = {}
    for finding in groups:
        place = finding.place
        first.setdefault((finding.cohort, place or benchmark(finding)), finding)
    return list(first.values())


def _together(finding: Finding, hosts: int) -> Message:
    """Describe a group in one short sentence."""
    common = {"n": len(finding.members), "hosts": count(hosts, "host"), "deficit": share(finding.deficit)}
    if finding.because:
        return message(
            "{n} of {hosts} are {deficit} slower and share {place}.", **common, place=fmt.clean(finding.place)
        )
    return message("Two populations, unexplained: {n} of {hosts} are {deficit} slower.", **common)


def between(link: Finding) -> Message:
    """Return both ends of a link: ``n02 to n04``."""
    return message("{host} to {other}", host=link.host, other=link.other)


def owner(finding: Finding) -> str:
    """Return the host of a finding, or both ends of its link."""
    return between(finding) if finding.other else finding.host
