"""The first screen of a campaign: status, machines, headline figures, anomalies, and what to do next."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from fleetmark.base.facts import Facts
from fleetmark.base.measurement import Kind, Status
from fleetmark.base.text import count, joined, message
from fleetmark.base.units import human
from fleetmark.record.commands import on
from fleetmark.record.figures.hosts import METRIC
from fleetmark.record.figures.metric import Metric
from fleetmark.record.results import HostInfo, status_counts
from reports.campaign.against import NOTHING, Against
from reports.campaign.deviation import Deviations, chosen, sentence, title, unlike
from reports.campaign.problems import Problem, resume_command
from reports.campaign.rows import Rows
from reports.campaign.tables import NOISY, mixed
from reports.campaign.view import MetricRows, View
from reports.comparison.titles import class_title
from reports.hosts.generations import Deviation, by_generation
from reports.kit import format as fmt

MOST_BENCHMARKS = 12
MOST_SIDES = 4  # maximum generations side by side
MOST_ODD = 8
MOST_HOSTS = 3  # maximum hosts named in a list
MOST_NEXT = 3
# Facts that should be equal on all hosts of a generation; others (disks, clocks, notes) differ between hosts.
_SETTINGS = (
    *("CPU", "Cores", "Memory", "DIMMs", "PCIe below its best", "BIOS", "Microcode", "Kernel", "Governor", "Boost"),
    *("SMT", "Transparent huge pages", "Clock source", "Mitigations"),
)


@dataclass(frozen=True, slots=True)
class Figure:
    """A headline figure of one side. Each field may be empty.

    ``text``: the figure without its unit. ``noise``: its coefficient of variation if above NOISY. ``why``: the reason
    why it is missing. ``share``: the share of the machine's peak. ``times``: the ratio to a reference.
    """

    text: str = ""
    noise: str = ""
    why: str = ""
    share: str = ""
    times: str = ""


@dataclass(frozen=True, slots=True)
class Benchmark:
    """A headline metric with a figure for each side. ``factor`` converts from the base unit ``base`` to ``unit``."""

    metric: Metric
    title: str
    class_: str
    unit: str
    better: str
    cells: tuple[Figure, ...]
    factor: float
    base: str


@dataclass(frozen=True, slots=True)
class Front:
    """The text of the first screen, with a row per benchmark and a cell for each of ``sides``.

    ``machines``: the hardware of each generation. ``left_out``: number of further headlines. ``shares``: whether some
    figures have a peak. ``reference``: the name of the reference, if any. ``means``: explanations of both. ``next``:
    what to do next, each with its command.
    """

    status: str
    machines: tuple[str, ...]
    sides: tuple[str, ...]
    benchmarks: tuple[Benchmark, ...]
    left_out: int
    odd: tuple[str, ...]
    next: tuple[tuple[str, str], ...]
    deviations: Deviations
    means: tuple[str, ...] = ()
    shares: bool = False
    reference: str = ""


def front(view: View, problems: Sequence[Problem], against: Against = NOTHING) -> Front:
    """Return the first screen. ``against``: the peaks and the reference of the headlines."""
    apart = Deviations(view)
    benchmarks, left_out = _benchmarks(view, against)
    odd = list(_odd(view, apart))
    sides = tuple(view.title_of(g) for g in view.generations[:MOST_SIDES])
    shown = tuple(odd[:MOST_ODD])
    if len(odd) > MOST_ODD:
        shown = (*shown, message("and {n} more", n=len(odd) - MOST_ODD))
    return Front(
        status(view),
        tuple(_machines(view)),
        sides,
        benchmarks,
        left_out,
        shown,
        tuple(_next(view, problems)),
        apart,
        against.means,
        against.shares,
        against.reference,
    )


def status(view: View) -> str:
    """Return a sentence about how the runs ended."""
    counts = status_counts(view.results.outcomes)
    total, passed, finished = sum(counts.values()), counts[Status.PASSED], view.results.campaign.finished
    runs = count(total, "run")
    if not total:
        return message("Nothing was measured.")
    if passed == total:
        if finished:
            return message("All {runs} passed.", runs=runs)
        return message("All {runs} so far passed; the campaign is not finished.", runs=runs)
    if finished:
        return message("{n} of {runs} passed.", n=f"{passed:,}", runs=runs)
    return message("{n} of {runs} passed; the campaign is not finished.", n=f"{passed:,}", runs=runs)


# --- the machines ----------------------------------------------------------------------------------------------------


def _machines(view: View) -> Iterator[str]:
    """Yield a line about the machines of a generation for each combination of CPU, memory and accelerators."""
    kinds: dict[tuple[str, object], list[HostInfo]] = {}
    for host in view.hosts:
        kinds.setdefault((host.generation or "", _kind(host.facts)), []).append(host)
    for (generation, _), hosts in list(kinds.items())[:MOST_SIDES]:
        who = fmt.clean(hosts[0].name) if len(hosts) == 1 else count(len(hosts), "host")
        if generation:
            who = message("{generation} ({hosts})", generation=fmt.clean(generation), hosts=who)
        facts = hosts[0].facts
        about = joined(_about(facts)) if facts else message("its facts are not known")
        yield message("{who}: {about}", who=who, about=about)
    if len(kinds) > MOST_SIDES:
        yield message("and {n} more", n=len(kinds) - MOST_SIDES)


def _kind(facts: Facts | None) -> object:
    """Return a key that is equal for machines whose figures may be combined. Hosts without facts share one key."""
    if facts is None:
        return None
    gpus = facts.gpus[0].name if facts.gpus else ""
    return facts.cpu.model, facts.cpu.cores, round((facts.memory or 0) / 2**30, -1), gpus, len(facts.gpus)


def _about(facts: Facts) -> Iterator[str | None]:
    cpu = facts.cpu
    yield fmt.clean(cpu.model) if cpu.model else None
    yield count(cpu.sockets, "socket") if cpu.sockets else None
    yield count(cpu.cores, "core") if cpu.cores else None
    yield message("{size} GiB memory", size=f"{facts.memory / 2**30:,.0f}") if facts.memory else None
    if facts.gpus:
        yield f"{len(facts.gpus)} × {fmt.clean(facts.gpus[0].name)}"
    speed = max((n.speed for n in facts.nics if n.speed), default=None)
    yield message("{rate} network", rate=human(speed, "B/s", bits=True)) if speed else None
    yield fmt.clean(facts.product) if facts.product else None
    yield fmt.clean(facts.os) if facts.os else None


# --- headline figures ------------------------------------------------------------------------------------------------


def leading(view: View, limit: int) -> list[MetricRows]:
    """Return the ``limit`` headlines that represent all others, or one of each class if there are more classes."""
    headlines = {headline[0]: headline for headline in view.headlines}
    first: dict[str, Metric] = {}  # per class; a guardrail only if the class has nothing else
    for metric, rows, _ in sorted(view.headlines, key=lambda headline: str(headline[1]["kind"][0]) == Kind.GUARDRAIL):
        first.setdefault(class_of(rows), metric)
    return [headlines[metric] for metric in chosen(list(headlines), max(limit, len(first)), set(first.values()))]


def class_of(rows: Rows) -> str:
    return str(rows["class"][0])


def _benchmarks(view: View, against: Against) -> tuple[tuple[Benchmark, ...], int]:
    shown = leading(view, MOST_BENCHMARKS)
    return tuple(_benchmark(view, against, *metric) for metric in shown), len(view.headlines) - len(shown)


def _benchmark(view: View, against: Against, metric: Metric, rows: Rows, shown: fmt.Shown) -> Benchmark:
    if "generation" in rows:
        sides = rows["generation"].tolist()
    else:  # one host per side; a host without a generation has no side
        hosts = rows["host"].tolist()
        sides = [view.generation[host] or "" if host in view.generation else None for host in hosts]
    by_side = dict(zip(sides, rows.each("value", "cv"), strict=True))
    cells = []
    for generation in view.generations[:MOST_SIDES]:
        if generation not in by_side:
            cells.append(Figure(why="–"))
            continue
        value, cv = by_side[generation]
        beside = against.of(metric, generation)
        cells.append(Figure(shown.number(value), noise(cv), "", beside.share, beside.times))
    return Benchmark(
        metric,
        title(metric),
        class_title(class_of(rows)),
        shown.unit,
        str(rows["better"][0]),
        tuple(cells),
        shown.factor,
        metric.unit,
    )


def noise(cv: float) -> str:
    """Return the coefficient of variation in percent if it is above NOISY, else an empty string."""
    return fmt.percent(cv) if cv > NOISY else ""


# --- anomalies -------------------------------------------------------------------------------------------------------


def _odd(view: View, apart: Deviations) -> Iterator[str]:
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
    hosts = unlike(apart)
    for host in hosts[:MOST_HOSTS]:
        yield sentence(host, view.title_of(host.generation))
    if len(hosts) > MOST_HOSTS:
        more = count(len(hosts) - MOST_HOSTS, "further host")
        yield message("{hosts} differ from their peers: see the map of hosts", hosts=more)


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
    unusual = [d for d in by_generation(view.hosts).deviations if d.name in _SETTINGS]
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


def short(text: str, most: int = 60) -> str:
    """Return ``text``, shortened to ``most`` characters with an ellipsis if it is longer."""
    return text if len(text) <= most else f"{text[: most - 1]}…"


def some(names: Sequence[str], most: int = MOST_HOSTS) -> str:
    """Return the first names of a list, and how many more there are."""
    listed = ", ".join(short(fmt.clean(n), 40) for n in names[:most])
    if len(names) <= most:
        return listed
    return message("{hosts} and {n} more", hosts=listed, n=f"{len(names) - most:,}")


# --- what to do next -------------------------------------------------------------------------------------------------


def _next(view: View, problems: Sequence[Problem]) -> Iterator[tuple[str, str]]:
    """Yield what to do next, each with its command; at most MOST_NEXT."""
    steps: dict[str, str] = {}
    if not view.results.campaign.finished:
        steps[resume_command(view.results)] = message("Finish the campaign")
    for problem in problems:
        steps.setdefault(problem.command, problem.advice)
    for line, advice in _after(view):
        steps.setdefault(line, advice)
    yield from [(advice, line) for line, advice in steps.items()][:MOST_NEXT]


def _after(view: View) -> Iterator[tuple[str, str]]:
    root = view.results.campaign.root
    named = [g for g in view.generations if g]
    if len(named) > 1:
        sides = ["-b", f"gen={named[0]}", *(word for g in named[1:3] for word in ("-c", f"gen={g}"))]
        yield fmt.typed(on(root, "compare", *sides)), message("Compare the generations")
    elif view.hosts and len(view.of_merged):
        which = f"gen={named[0]}" if named else f"host={view.hosts[0].name}"
        name = named[0] if named else view.hosts[0].name
        text = message("Save these figures as a reference for later")
        yield fmt.typed(on(root, "reference", "save", name, "--from", which)), text
