"""Build the first screen of a campaign: status, machines, headline figures, anomalies, and what to do next."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from fleetmark.base.facts import Facts
from fleetmark.base.measurement import Better, Status
from fleetmark.base.text import Message, count, folded, joined, message
from fleetmark.base.units import scale_for, with_unit
from fleetmark.base.words import word
from fleetmark.record.commands import command_for
from fleetmark.record.figures.hosts import METRIC
from fleetmark.record.figures.metric import Metric
from fleetmark.record.results import HostInfo, status_counts
from fleetmark.reports.campaign.against import Against
from fleetmark.reports.campaign.deviation import Deviations, sentence, title
from fleetmark.reports.campaign.headlines import FIRST_SIDES, NOISY
from fleetmark.reports.campaign.problems import Problem, go_on
from fleetmark.reports.campaign.summary.suspect import NETWORK
from fleetmark.reports.campaign.versions import mixed
from fleetmark.reports.campaign.view import View
from fleetmark.reports.comparison.areas import NO_COST, gaps, unmeasured_workloads
from fleetmark.reports.comparison.purchase.bought import price_list
from fleetmark.reports.hosts.generations import Deviation, by_generation
from fleetmark.reports.hosts.likely import SlowHost, remedy
from fleetmark.reports.kit import format as fmt

MOST_ODD = 8
MOST_LOSSES = 3  # benchmarks of a slow host in a sentence
MOST_HOSTS = 3  # hosts named in a list
MOST_NEXT = 4
MOST_REASON = 120  # maximum characters of a reason
REPEATS = 2  # minimum repeats for a CV
_WITH_STEP = (Status.FAILED, Status.LOST)  # statuses whose most frequent problem has a next step
# Facts that should be equal on all hosts of a generation. Other facts (disks, clocks, notes) differ between hosts.
_SETTINGS = (
    *("CPU", "Cores", "Memory", "DIMMs", "PCIe below its best", "BIOS", "Microcode", "Kernel", "Governor", "Boost"),
    *("SMT", "Transparent huge pages", "Clock source", "Mitigations"),
)


def status(view: View) -> str:
    """Return a sentence about how the runs ended."""
    counts = status_counts(view.results.outcomes)
    total, passed, finished = sum(counts.values()), counts[Status.PASSED], view.results.campaign.finished
    runs = count(total, "run")
    if not total and len(view.results.values):
        return message("The journal lists no runs, so how they ended is not known.")
    if not total:
        return message("Nothing was measured.")
    if passed == total:
        if finished:
            return message("All {runs} passed.", runs=runs)
        return message("All {runs} so far passed; the campaign is not finished.", runs=runs)
    if finished:
        return message("{n} of {runs} passed.", n=f"{passed:,}", runs=runs)
    return message("{n} of {runs} passed; the campaign is not finished.", n=f"{passed:,}", runs=runs)


def verdict(view: View, apart: Deviations, against: Against, suspects: Sequence[str]) -> Iterator[str]:
    """Yield the sentences of the title: the slowest host, how the runs ended, and impossible figures.

    For a single host, the first sentence is about the figure closest to a peak.
    """
    slow = [host for host in apart.unlike if host.deviation < 0]
    if slow:
        yield message("{sentence}.", sentence=sentence(slow[0], view.title_of(slow[0].generation)))
        if len(slow) > 1:
            yield message("Also slow: {hosts}.", hosts=some([host.host for host in slow[1:]]))
    elif len(view.hosts) > 1 and apart.collected.peered.any():
        yield message("No host is slower than its peers.")
    elif len(view.hosts) == 1 and not suspects:
        yield from _of_peak(view, against)
    yield status(view)
    if suspects:
        yield message("Some figures are suspect: see below.")


def _of_peak(view: View, against: Against) -> Iterator[Message]:
    """Yield a sentence on the headline with the largest share of its machine's peak, if a peak is known."""
    (host,) = view.hosts
    shares = [
        (against.context_of(metric, host.generation or "").share, metric, rows, shown)
        for metric, rows, shown in view.headlines
    ]
    known = [(share.value, metric, rows, shown) for share, metric, rows, shown in shares if share.value is not None]
    if known:
        part, metric, rows, shown = max(known, key=lambda item: item[0])
        yield message(
            "{host} reaches {share} of its peak in {benchmark} ({value}).",
            host=fmt.clean(host.name),
            share=fmt.share(part, 0),
            benchmark=title(metric),
            value=shown.quantity(float(rows["value"].iloc[0])),
        )


# --- the machines ----------------------------------------------------------------------------------------------------


def machines(view: View) -> Iterator[str]:
    """Yield a line about the machines of a generation for each combination of CPU, memory and accelerators."""
    kinds: dict[tuple[str, object], list[HostInfo]] = {}
    for host in view.hosts:
        kinds.setdefault((host.generation or "", _kind(host)), []).append(host)
    for (generation, _), hosts in list(kinds.items())[:FIRST_SIDES]:
        subject = fmt.clean(hosts[0].name) if len(hosts) == 1 else count(len(hosts), "host")
        if generation:
            subject = message("{generation} ({hosts})", generation=fmt.clean(generation), hosts=subject)
        facts = hosts[0].facts
        silent = message("no facts") if hosts[0].reachable else message("no answer")
        hardware = joined(_hardware(facts)) if facts else silent
        yield message("{who}: {about}", who=subject, about=hardware)
    if len(kinds) > FIRST_SIDES:
        yield message("and {n} more", n=len(kinds) - FIRST_SIDES)


def _kind(host: HostInfo) -> object:
    """Return a key that is equal for machines whose figures may be combined.

    Hosts without facts share one key, and hosts that did not answer share another.
    """
    facts = host.facts
    if facts is None:
        return host.reachable
    gpus = facts.gpus[0].name if facts.gpus else ""
    return facts.cpu.model, facts.cpu.cores, round((facts.memory or 0) / 2**30, -1), gpus, len(facts.gpus)


def _rate(speed: float) -> str:
    """Return the rate of a port as its manufacturer writes it: ``25 Gbit/s``."""
    scale = scale_for(speed, "B/s", bits=True)
    return with_unit(f"{speed * scale.factor:.3g}", scale.unit)


def _hardware(facts: Facts) -> Iterator[str | None]:
    cpu = facts.cpu
    yield fmt.clean(cpu.model) if cpu.model else None
    yield count(cpu.sockets, "socket") if cpu.sockets else None
    yield count(cpu.cores, "core") if cpu.cores else None
    yield message("{size} GiB memory", size=f"{facts.memory / 2**30:,.0f}") if facts.memory else None
    if facts.gpus:
        yield f"{len(facts.gpus)} × {fmt.clean(facts.gpus[0].name)}"
    speed = max((n.speed for n in facts.nics if n.speed), default=None)
    yield message("{rate} network", rate=_rate(speed)) if speed else None
    yield fmt.clean(facts.product) if facts.product else None
    yield fmt.clean(facts.os) if facts.os else None


def unmeasured(view: View, *, has_reference: bool) -> str:
    """Return the areas of work that no benchmark covers, and the machines' prices or a note that they are unknown.

    A single host cannot measure the network, and without a reference nothing shows that it is slow.
    """
    classes = _classes(view)
    if not classes:
        return ""
    is_single = len(view.hosts) == 1
    prices = price_list([g for g in view.generations if g], view.hosts)
    verdict = message("No verdict: a single host has no peers, and no reference is saved for its kind")
    return gaps(
        classes - (NETWORK if is_single else frozenset()),
        verdict if is_single and not has_reference else None,
        prices or NO_COST,
    )


def _classes(view: View) -> set[str]:
    return {str(rows["class"].iloc[0]) for _, rows, _ in view.headlines}


# --- anomalies -------------------------------------------------------------------------------------------------------


def anomalies(view: View, apart: Deviations, suspects: Sequence[str] = ()) -> tuple[str, ...]:
    """Return sentences about what is unusual, the most important first.

    ``suspects``: sentences about implausible figures.
    """
    listed = [*suspects, *_anomalies(view, apart)]
    more = (message("and {n} more", n=len(listed) - MOST_ODD),) if len(listed) > MOST_ODD else ()
    return (*listed[:MOST_ODD], *more)


def below_title(anomalies: Sequence[str], slow: Sequence[SlowHost]) -> tuple[str, ...]:
    """Return ``anomalies`` for a page whose title has the sentence about the slowest host: its losses replace it."""
    losses = {host.sentence: _losses(host) for host in slow[:1] if host.shortfalls}
    return tuple(losses.get(anomaly, anomaly) for anomaly in anomalies)


def lost(view: View, apart: Deviations) -> Message | None:
    """Return the capacity that is lost to slow hosts, as a number of hosts; None if no host is slow."""
    total = -sum(host.deviation for host in apart.unlike if host.deviation < 0 and not host.benchmark)
    if not total:
        return None
    return message(
        "Capacity lost to slow hosts: about {n} of {hosts} (the sum of their median losses).",
        n=f"{total:.2g}",
        hosts=count(sum(host.facts is not None for host in view.hosts), "host"),
    )


def _losses(slow: SlowHost) -> str:
    losses = [f"{s.benchmark} (−{fmt.share(s.loss, 0)})" for s in slow.shortfalls[:MOST_LOSSES]]
    return message("{host} lost most in {benchmarks}", host=fmt.clean(slow.host), benchmarks=joined(losses))


def _anomalies(view: View, apart: Deviations) -> Iterator[str]:
    yield from _unlike(view, apart)
    yield from _unstable(view)
    yield from (fmt.clean(note) for note in view.results.campaign.notes)
    yield from _settings(view)
    for workload, version, names in mixed(view.results.values):
        yield message(
            "{workload} {version} on {hosts}: versions are not comparable",
            workload=fmt.clean(workload),
            version=version,
            hosts=some(names),
        )


def _unlike(view: View, apart: Deviations) -> Iterator[str]:
    hosts = apart.unlike
    for host in hosts[:MOST_HOSTS]:
        yield sentence(host, view.title_of(host.generation))
    if len(hosts) > MOST_HOSTS:
        more = count(len(hosts) - MOST_HOSTS, "further host")
        yield message("{hosts} differ from their peers: see the map of hosts", hosts=more)


def calm(view: View) -> str:
    """Return the statement that nothing is unusual, and the evidence for it."""
    parts = [part for part in view.headlines_in_parts() if len(part)]
    if not parts:
        return message("There are no figures to judge.")
    largest = max((float(part["cv"].max()) for part in parts if part["cv"].notna().any()), default=None)
    repeats = min(int(part["n"].min()) for part in parts)
    if largest is None or repeats < REPEATS:
        agree = message("too few repeats to see how figures vary")
    else:
        agree = message("figures vary by at most {cv} (CV, {n} repeats)", cv=fmt.percent(largest), n=repeats)
    if len(view.hosts) == 1:
        return message(
            "Nothing: {agree}, and nothing disturbed the runs. Other hosts of this kind may differ.", agree=agree
        )
    return message("Nothing: {agree}, hosts are like their peers, nothing disturbed the runs.", agree=agree)


def _unstable(view: View) -> Iterator[str]:
    """Yield a sentence about headline figures whose repeats vary, if there are any."""
    all_, noisy, worst = 0, 0, None
    for figures in view.headlines_in_parts():
        above = figures[figures["cv"] > NOISY]
        all_, noisy = all_ + len(figures), noisy + len(above)
        if len(above) and (worst is None or above["cv"].max() > worst["cv"]):
            worst = above.iloc[int(above["cv"].argmax())]
    if worst is None:
        return
    yield message(
        "{n} of {all} headline figures vary by more than {bound} (CV); most {benchmark} on {host}: {cv}",
        n=f"{noisy:,}",
        all=f"{all_:,}",
        bound=fmt.share(NOISY, 0),
        benchmark=title(Metric(*(str(worst[c]) for c in METRIC))),
        host=fmt.clean(worst["host"]),
        cv=fmt.percent(worst["cv"]),
    )


def _settings(view: View) -> Iterator[str]:
    differing = [d for d in by_generation(view.hosts).deviations if d.name in _SETTINGS]
    dimms = {tuple(d.hosts) for d in differing if d.name == "DIMMs"}
    unusual = [d for d in differing if d.name != "Memory" or tuple(d.hosts) not in dimms]  # DIMMs give the size
    for deviation in unusual[:MOST_HOSTS]:
        yield different(deviation)
    if len(unusual) > MOST_HOSTS:
        yield message("Further settings differ: see Hosts")


def different(d: Deviation) -> str:
    """Return a sentence about a fact in which hosts differ from most of their generation."""
    return message(
        "{fact} on {hosts}: {value}; most: {usual}",
        fact=d.name,
        hosts=some(d.hosts),
        value=short(d.text) or message("not known"),
        usual=short(d.usual) or message("not known"),
    )


def short(text: str, limit: int = 60) -> str:
    """Return ``text``, shortened to ``limit`` characters with an ellipsis if it is longer."""
    return text if len(text) <= limit else f"{text[: limit - 1]}…"


def some(names: Sequence[str], limit: int = MOST_HOSTS) -> str:
    """Return the first names of a list, with runs of numbers as ``n[001-040]``, and the number of other names."""
    parts = [(name, 1) for name in names] if len(names) <= limit else folded(names)
    listed = joined([short(fmt.clean(n), 40) for n, _ in parts[:limit]])
    left = sum(number for _, number in parts[limit:])
    return message("{hosts} and {n} more", hosts=listed, n=f"{left:,}") if left else listed


# --- what to do next -------------------------------------------------------------------------------------------------


def next_steps(view: View, problems: Sequence[Problem], slow: Sequence[SlowHost] = ()) -> list[tuple[str, str]]:
    """Return what to do next, each step with its command; at most MOST_NEXT.

    ``slow``: hosts slower than their peers. A single command repeats the benchmarks of all of them.
    """
    steps: dict[str, str] = {}
    for host in slow[:1]:
        steps[host.command] = remedy(host)
        if len(slow) > 1:
            others = joined([fmt.clean(other.host) for other in slow[1:]])
            steps[host.command] = message("{advice}; likewise {hosts}", advice=remedy(host), hosts=others)
    again = go_on(view.results)
    separate = [problem for problem in problems if again is None or problem.command != again[1]]
    first_of_each = {problem.status: problem for problem in reversed(separate) if problem.status in _WITH_STEP}
    for problem in sorted(first_of_each.values(), key=separate.index):
        steps.setdefault(problem.command, _after_problem(problem))
    if again:
        steps.setdefault(again[1], again[0])
    for problem in separate:
        steps.setdefault(problem.command, _after_problem(problem))
    for line, text in _after(view):
        steps.setdefault(line, text)
    return [(text, line) for line, text in steps.items()][:MOST_NEXT]


def place(problem: Problem, limit: int = MOST_HOSTS) -> Message:
    """Return the runs that did not pass, such as ``42 runs of lmbench on h1``; at most ``limit`` hosts are named."""
    runs, workloads = count(problem.runs, "run"), joined([fmt.clean(name) for name in problem.workloads])
    hosts = some(problem.hosts, limit)
    if problem.runs and problem.workloads:
        return message("{runs} of {workloads} on {hosts}", runs=runs, workloads=workloads, hosts=hosts)
    if problem.runs:
        return message("{runs} on {hosts}", runs=runs, hosts=hosts)
    return message("host {hosts}", hosts=hosts)


def _after_problem(problem: Problem) -> Message:
    """Return the runs that did not pass, the reason, and what to do about it."""
    return message(
        "{what} {status} ({reason}): {advice}",
        what=place(problem),
        status=word(str(problem.status)),
        reason=short(problem.reason, MOST_REASON),
        advice=problem.advice,
    )


def _after(view: View) -> Iterator[tuple[str, str]]:
    if not set(view.results.values.distinct("better")["better"]) - {Better.NONE.value}:
        return  # no measured value has a direction, such as the uptime of a self-test
    if gap := _gap(view):
        yield fmt.typed(gap), message("Measure what is missing")
    root = view.results.campaign.root
    named = [g for g in view.generations if g]
    if len(named) > 1:
        sides = ["-b", f"gen={named[0]}", *(word for g in named[1:3] for word in ("-c", f"gen={g}"))]
        yield fmt.typed(command_for(root, "compare", *sides)), message("Compare the generations")
    elif view.hosts and len(view.of_merged):
        selector = f"gen={named[0]}" if named else f"host={view.hosts[0].name}"
        name = named[0] if named else view.hosts[0].name
        text = message("Save these figures as a reference for later")
        yield fmt.typed(command_for(root, "reference", "save", name, "--from", selector)), text


def _gap(view: View) -> list[str]:
    """Return the campaign's command for the workloads of one host that were not measured; empty if none is missing."""
    classes = _classes(view)
    words, workloads = list(view.results.campaign.command), unmeasured_workloads(classes) if classes else ()
    is_plain = words[1:2] == ["run"] and not {"--resume", "--only", "--workloads"} & set(words)
    if len(view.hosts) != 1 or not workloads or not is_plain:
        return []
    for option in ("--suite", "-s", "--seed"):  # other workloads need no equal order
        if option in words:
            del words[words.index(option) : words.index(option) + 2]
    return [*words, "--suite", ",".join(workloads)]
