"""Present the predicted serving of a model: the frontier of each chip, the time of each operator, and the basis."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from fleetmark.base.text import Message, joined, message
from fleetmark.base.units import significant
from fleetmark.planner.predict.serving.calibration import LEVEL, Calibration, group
from fleetmark.planner.predict.serving.chips import GIVEN, MEASURED
from fleetmark.planner.predict.serving.frontier import STREAMS, Figure, Load, OperatorTime, Question, best, operators
from fleetmark.planner.predict.serving.roofline import SIZES, Chip
from fleetmark.reports.kit import charts
from fleetmark.reports.kit import format as fmt
from fleetmark.reports.kit.charts import Across, Chart, Line
from fleetmark.reports.kit.document import FILES, Document, Note, Section
from fleetmark.reports.kit.native import Native
from fleetmark.reports.kit.scatter import Cloud, Spot, drawing
from fleetmark.reports.kit.tabular import Cell, Column, Tabular, compact, number, quantity, share

_GOAL = 0.15  # maximum acceptable median error of a prediction
_METRICS: Mapping[str, str] = {"ttft": message("TTFT"), "tpot": message("TPOT"), "rate": message("tokens/s")}
_OPERATORS: Mapping[str, str] = {
    "projections": message("projections and shared experts"),
    "experts": message("experts"),
    "attention": message("attention over cached tokens"),
    "head": message("output head"),
    "collectives": message("collectives"),
    "launches": message("launches and host"),
}
_BOUNDS: Mapping[str, str] = {
    "compute": message("products"),
    "memory": message("memory"),
    "link": message("link"),
    "latency": message("latency"),
}
_PHASES: Mapping[str, str] = {"prefill": message("prefill of a prompt"), "decode": message("decode step")}


Answers = Sequence[tuple[Chip, Load | None]]  # maps each chip to its load at the required speed


@dataclass(frozen=True, slots=True)
class Predicted:
    """The loads of a model that fit into one chip's memory; at least one."""

    chip: Chip
    loads: Sequence[Load]

    def answer(self, speed: float) -> Load | None:
        """Return the load with the highest rate at which each user gets ``speed``; None if no load is that fast."""
        fast = [load for load in self.loads if load.speed.value >= speed]
        return max(fast, key=lambda load: load.rate.value, default=None)


def document(question: Question, predicted: Sequence[Predicted], speed: float, calibration: Calibration) -> Document:
    """Return the document. ``speed``: tokens per second that each user needs."""
    answers = [(p.chip, p.answer(speed)) for p in predicted]
    unbeaten = [(p.chip, load) for p in predicted for load in best(p.loads)]
    operator_tables = tuple(_operator_tables(question, predicted, speed, calibration))
    sections = (
        Section("frontier", message("Frontier"), (*_at_speed(answers, speed), *_chart(predicted))),
        Section("certainty", message("Uncertainty"), tuple(_notes(question, predicted, calibration))),
        Section("loads", message("Loads"), (_loads("loads", message("Pareto-optimal loads"), unbeaten),)),
        Section("operators", message("Time by operator"), operator_tables, is_folded=True),
        Section("chips", message("Chips"), (_rates(predicted),), FILES, is_folded=True),
    )
    model, length = question.model.name, f"{question.prompt:,}"
    title = message("Predicted serving of {model} in {precision}", model=model, precision=question.precision)
    details = (
        message("{prompt} tokens of prompt, {answer} of answer", prompt=length, answer=f"{question.answer:,}"),
        *((message("engine {name}", name=fmt.clean(question.software)),) if question.software else ()),
        message("not measured: a prediction from data sheets and rates"),
    )
    return Document(title=title, answer=_answer(answers, speed), sections=sections, details=details)


def _answer(answers: Answers, speed: float) -> str:
    """Return the highest rate at the required speed, and the chips that are too slow for it."""
    able = [(chip, load) for chip, load in answers if load]
    words = {"speed": f"{speed:g}"}
    if not able:
        return message("No load gives each user {speed} tokens/s.", **words)
    chip, load = max(able, key=lambda item: item[1].rate.value)
    words |= {"chip": chip.name, "rate": _rounded(load.rate.value), "interval": _ends(load.rate)}
    words |= {"level": f"{LEVEL:.0%}"}
    if len(answers) == 1:
        return message(
            "At {speed} tokens/s for each user, {chip} serves {rate} tokens/s per GPU ({level} interval {interval}).",
            **words,
        )
    return message(
        "At {speed} tokens/s for each user, {chip} serves most: {rate} tokens/s per GPU ({level} interval {interval}).",
        **words,
    )


def _at_speed(answers: Answers, speed: float) -> Iterator[Tabular | Note]:
    """Yield a row per chip at the required speed, and a note on chips that are too slow for it."""
    able = [(chip, load) for chip, load in answers if load]
    if able:
        ranked = sorted(able, key=lambda item: -item[1].rate.value)
        table = _loads("answers", message("At {speed} tokens/s for each user", speed=f"{speed:g}"), ranked)
        answered = ("tpot", "speed")  # columns that the title replaces
        yield table.columns_at([n for n, column in enumerate(table.columns) if column.key not in answered])
    if slow := [chip.name for chip, load in answers if load is None]:
        yield Note(message("Not that fast: {chips}.", chips=joined(slow)), tone="bad")


def _ends(figure: Figure) -> str:
    return f"{_rounded(figure.lo)}–{_rounded(figure.hi)}"


def _rounded(value: float) -> str:
    return significant(float(f"{value:.3g}"), 3)


def _chart(predicted: Sequence[Predicted]) -> Iterator[Chart]:
    """Yield the chart of rate against speed, if there is a line to draw."""
    fronts = {p.chip.name: best(p.loads) for p in predicted}
    if not any(len(front) > 1 for front in fronts.values()):
        return
    colours = charts.colour_of(fronts)
    lines = [
        Line(
            name, colours[name], n, [(load.speed.value, load.rate.value, load.rate.lo, load.rate.hi) for load in front]
        )
        for n, (name, front) in enumerate(fronts.items())
    ]
    clouds = [
        Cloud(name, colours[name], [Spot(load.speed.value, load.rate.value, "", True) for load in front])
        for name, front in fronts.items()
    ]
    across, up = message("tokens/s of one user"), message("tokens/s per GPU")
    native = Native(
        kind="scatter",
        table="loads",
        category="speed",
        values=("rate",),
        axis=up,
        category_axis=across,
        groups=tuple((name, len(front), colours[name]) for name, front in fronts.items()),
    )
    yield Chart(
        message("Throughput against speed (log)"),
        message(
            "A point is a load; higher and further right is better. The band contains {level}.", level=f"{LEVEL:.0%}"
        ),
        spec=partial(charts.curve, lines, across, up, Across.SPEED),
        lines=drawing(clouds, across, up),
        native=native,
    )


def _loads(key: str, title: Message, loads: Iterable[tuple[Chip, Load]]) -> Tabular:
    """Return a row per load of a chip."""
    columns = (
        Column("chip", message("chip"), "side"),
        Column("layout", message("layout"), "name"),
        Column("streams", message("streams"), "number"),
        Column("ttft", message("TTFT"), "number"),
        Column("tpot", message("TPOT"), "number"),
        Column("speed", message("tokens/s of one user"), "number"),
        Column("rate", message("tokens/s per GPU"), "number"),
        Column("per_megawatt", message("million tokens/s per MW"), "number"),
    )
    return compact(Tabular(key, title, columns, tuple(_row(*load) for load in loads), listing=True))


def _row(chip: Chip, load: Load) -> tuple[Cell, ...]:
    return (
        Cell(chip.name),
        Cell(str(load.layout)),
        number(load.streams),
        _time(load.ttft),
        _time(load.tpot),
        _bounded(load.speed),
        _bounded(load.rate),
        _per_megawatt(load),
    )


def _per_megawatt(load: Load) -> Cell:
    return _bounded(load.per_megawatt, 1e6) if load.per_megawatt else Cell()


def _time(figure: Figure) -> Cell:
    return quantity(figure.value, "s", lo=figure.lo, hi=figure.hi)


def _bounded(figure: Figure, unit: float = 1.0) -> Cell:
    scaled = Figure(*(end / unit for end in (figure.value, figure.lo, figure.hi)))
    return Cell(_rounded(scaled.value), scaled.value, lo=scaled.lo, hi=scaled.hi, ends=_ends(scaled))


def _operator_tables(
    question: Question, predicted: Sequence[Predicted], speed: float, calibration: Calibration
) -> Iterator[Tabular]:
    """Yield, for each chip, the times of operators at the load of the answer, or at the chip's fastest load."""
    columns = (
        Column("phase", message("phase"), "side"),
        Column("operator", message("operator"), "name"),
        Column("least", message("at its peak"), "number"),
        Column("share", message("efficiency"), "number"),
        Column("predicted", message("predicted"), "number"),
        Column("bound", message("bound by"), "text"),
    )
    for p in predicted:
        load = p.answer(speed) or best(p.loads)[-1]
        times = operators(question, p.chip, load, calibration)
        rows = tuple(_operator_row(phase, time) for phase, listed in times.items() for time in listed)
        title = message(
            "{chip}, {layout}, {streams} streams",
            chip=p.chip.name,
            layout=str(load.layout),
            streams=f"{load.streams:,}",
        )
        yield Tabular("operators", title, columns, rows)


def _operator_row(phase: str, time: OperatorTime) -> tuple[Cell, ...]:
    return (
        Cell(_PHASES[phase]),
        Cell(_OPERATORS[time.operator]),
        quantity(time.least or None, "s"),
        share(time.share, 0),
        quantity(time.predicted, "s"),
        Cell(_BOUNDS[time.bound]),
    )


def _rates(predicted: Sequence[Predicted]) -> Tabular:
    """Return the rates of each chip. Measured rates are converted to the datasheet rates that would give them."""
    columns = (
        Column("chip", message("chip"), "side"),
        *(Column(precision, precision, "number") for precision in SIZES),
        Column("memory", message("memory"), "number"),
        Column("link", message("link"), "number"),
        Column("watts", message("power"), "number"),
        Column("source", message("source"), "note"),
    )
    return compact(Tabular("chips", message("Rates"), columns, tuple(_of_chip(p.chip) for p in predicted)))


def _of_chip(chip: Chip) -> tuple[Cell, ...]:
    parts = [part for part, source in chip.source.items() if source == MEASURED]
    measured = (
        message("measured, divided by the usual share of the data sheet value: {parts}", parts=joined(parts))
        if parts
        else None
    )
    sheets = dict.fromkeys(source for source in chip.source.values() if source not in (MEASURED, GIVEN))
    return (
        Cell(chip.name),
        *(quantity(chip.dense.get(precision), "FLOP/s") for precision in SIZES),
        quantity(chip.memory, "B/s"),
        quantity(chip.link or None, "B/s"),
        quantity(chip.watts or None, "W"),
        Cell(joined([measured, *sheets], "; ")),
    )


def _notes(question: Question, predicted: Sequence[Predicted], calibration: Calibration) -> Iterator[Note]:
    new = [p.chip.name for p in predicted if not calibration.is_known(group(question.software, p.chip))]
    engines = joined(calibration.known_groups())
    if not question.software:
        text = message(
            "No engine is selected, so intervals are wide; select one with --engine: {engines}.", engines=engines
        )
        yield Note(text, tone="unsure")
    elif new:
        text = message(
            "{chips}: no points of this engine on this generation, so the interval is wide; engines with points: "
            "{engines}.",
            chips=joined(new),
            engines=engines,
        )
        yield Note(text, tone="unsure")
    if single := [p.chip.name for p in predicted if not p.chip.link]:
        text = message(
            "{chips}: the link between GPUs is not known, so only one GPU is predicted.", chips=joined(single)
        )
        yield Note(text, tone="unsure")
    streams = {load.streams for p in predicted for load in p.loads}
    if min(streams) < STREAMS[0] or max(streams) > STREAMS[-1]:
        ends = {"fewest": STREAMS[0], "most": STREAMS[-1]}
        yield Note(
            message("Efficiencies were fitted to {fewest} to {most} streams; other loads are extrapolated.", **ends),
            tone="unsure",
        )
    for metric, error in calibration.errors.items():
        words = {
            "metric": _METRICS[metric],
            "error": fmt.share(error),
            "held": fmt.share(calibration.coverage[metric], 0),
        }
        text = message(
            "{metric}: on chips left out of the fit, the median error is {error}; intervals contained {held} of the "
            "points.",
            **words,
        )
        missed = error > _GOAL
        goal = message(" This misses the target of {goal}.", goal=fmt.share(_GOAL, 0)) if missed else ""
        yield Note(joined([text, goal], ""), tone="unsure" if missed else "", quiet=not missed)
    yield Note(message("Loads that do not fit into the memory are left out."), quiet=True)
    if any(p.chip.watts and p.chip.source["power"] != GIVEN for p in predicted):
        yield Note(
            message("Power is only the limit of the GPUs; add a share of server and cooling with --watts."),
            quiet=True,
        )
