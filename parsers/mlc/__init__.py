"""Parse Intel Memory Latency Checker (MLC) 3.0 to 3.12: a whole run, or the output of a single mode.

Case: ``mlc``. Latencies are in s (lower is better), bandwidths in B/s (higher is better); MLC's 1 MB/sec is 1e6 B/s.

- ``idle_latency``: by ``from`` and ``to`` (NUMA nodes, or sockets if MLC does not see nodes; ``cpu`` and ``to`` with
  -a). A single --idle_latency run has its options instead: ``buffer`` in bytes, ``core``, ``memory_core``, ``to``,
  ``stride``
- ``local_latency``: the lowest latency of a node to itself
- ``bandwidth``: by ``from`` and ``to``
- ``peak_bandwidth``, ``max_bandwidth`` (--max_bandwidth): by ``mix`` of reads and writes; ``peak_read_bandwidth`` and
  ``max_read_bandwidth`` are those with reads only
- ``loaded_latency``, ``loaded_bandwidth``: by injected ``delay``
- ``c2c_latency``: by ``state`` (HIT, HITM), ``level`` (L2, LLC) and, between nodes, ``from`` (writer), ``to`` (reader)
  and ``homed``. A single pair of cores has ``reader_core``, ``writer_core`` and ``memory_core``

Bandwidth and loaded figures have the label ``mix`` if they are not read-only (-W), and ``traffic`` if they are not
sequential (-U). If runs in one text differ only in other options, their figures have these as ``options``.

Latencies apply to sequential access with the prefetchers off. If MLC cannot switch them off, and always on AMD, it
accesses memory at random. These latencies are separate metrics, such as ``idle_latency_random``. They are recognised
by the heading (3.10 and later), by MLC's message that it could not modify the prefetchers, or by -r. Sequential access
with the prefetchers on (-e, or heading and message disagree) has the suffix ``_prefetched``. Up to 3.9, and in single
runs, MLC does not print that access is random on AMD.

Source: Intel's documentation of MLC 3.x, and outputs of versions 3.1 to 3.12.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from fleetmark.base.errors import ParseError
from fleetmark.base.measurement import Better, Measurement, Parsed
from fleetmark.base.units import is_whole
from fleetmark.parsers.kit.cut import cut, cut_in_line
from fleetmark.parsers.kit.text import decimals, decode, numbered
from fleetmark.parsers.mlc import words
from fleetmark.parsers.mlc.end import Begun, section_missing
from fleetmark.parsers.mlc.words import CACHES, IDLE, LOADED, MATRIX, MOST, PEAK, Options

_TOOL = _CASE = "mlc"
_MOST_NOTES = 20
_SINGLE = {"c": "core", "i": "memory_core", "j": "to", "J": "to", "l": "stride"}  # options of one --idle_latency run
_COUPLE = {"c": "reader_core", "w": "writer_core", "i": "memory_core"}  # options of one --c2c_latency run
_ALL_READS = {"peak_bandwidth": "peak_read_bandwidth", "max_bandwidth": "max_read_bandwidth"}
_SECTIONS = {
    "idle_latency": IDLE,
    "peak_bandwidth": PEAK,
    "max_bandwidth": MOST,
    "bandwidth": MATRIX,
    "c2c_latency": CACHES,
}
_ACCESS_NOTES = {
    "_random": "latencies are of random access: not comparable with sequential ones",
    "_prefetched": "latencies of sequential access with enabled prefetchers: not "
    "comparable with MLC's usual latencies or with random ones",
}


def parse(raw: bytes, command: Sequence[str] = ()) -> Parsed:
    """Return the measurements of every run in ``raw``.

    ``command`` gives a full run's options, which MLC does not print. Raise ParseError if no figure can be read.
    """
    text = decode(raw)
    reader = _Reader(command=words.options_of(command))
    lines = numbered(text)
    for position, (n, line) in enumerate(lines):
        reader.take(n, line, position == len(lines) - 1)
    measurements = tuple(_named(reader.runs))
    if not measurements:
        raise reader.nothing(lines)
    return Parsed(_TOOL, measurements, reader.version, reader.end_missing(text), tuple(reader.notes(measurements)))


@dataclass(frozen=True, slots=True)
class _Figure:
    """One printed figure; a latency's metric still lacks the suffix for the kind of access."""

    metric: str
    value: float
    unit: str
    labels: Mapping[str, str]


@dataclass(kw_only=True, slots=True)
class _Run:
    """The output of one run of MLC; a text may contain several runs."""

    options: Options | None = None  # from the line with the command, or from ``command``
    command_line: bool = False
    banner: bool = False
    buffer: str | None = None  # as printed, in bytes
    access: str | None = None  # as in the heading
    no_control: bool = False
    goes_random: bool = False
    read_only: bool = False
    sections: dict[str, int] = field(default_factory=dict)  # maps a section to the line on which it begins
    figures: dict[tuple[str, tuple[tuple[str, str], ...]], _Figure] = field(default_factory=dict)

    @property
    def settings(self) -> Options:
        return self.options or Options()

    @property
    def suffix(self) -> str:
        """Return the suffix of this run's latency metrics."""
        untouched = self.no_control or self.goes_random or (self.settings.has("e") and self.settings.value("e") != "0")
        if self.access == "random" or (self.access is None and (self.no_control or self.goes_random)):
            return "_random"
        if self.access is None and self.settings.has("r"):
            return "_random"
        return "_prefetched" if untouched else ""

    def traffic(self) -> dict[str, str]:
        """Return the labels of figures under load, if the load differs from MLC's default."""
        labels = {}
        if (mix := self.settings.mix) and not self.read_only:
            labels["mix"] = mix
        if self.settings.has("U"):
            labels["traffic"] = "random"
        return labels

    def final(self) -> Iterator[_Figure]:
        """Return the figures under their final names, with headlines last."""
        for f in self.figures.values():
            yield replace(f, metric=f.metric + self.suffix) if f.unit == "s" else f
        local = [
            f.value
            for f in self.figures.values()
            if f.metric == "idle_latency" and f.labels.get("from", "") == f.labels.get("to")
        ]
        if local:
            yield _Figure("local_latency" + self.suffix, min(local), "s", {})
        for f in self.figures.values():
            if f.metric in _ALL_READS and f.labels["mix"] == "all_reads":
                yield _Figure(_ALL_READS[f.metric], f.value, f.unit, {})


@dataclass(slots=True)
class _Table:
    """A matrix whose first row was read."""

    metric: str
    corner: str
    columns: tuple[str, ...]
    labels: Mapping[str, str]
    rows: int = 0  # rows that were read


@dataclass(kw_only=True, slots=True)
class _Reader:
    """Read a text line by line and keep track of the current run and table."""

    command: Options | None
    runs: list[_Run] = field(default_factory=list)
    version: str | None = None
    section: str | None = None
    table: _Table | None = None
    remote: Mapping[str, str] | None = None  # labels of the cache-to-cache matrix under the last title
    pair: Mapping[str, str] | None = None  # nodes that a verbose run names before their latency
    drive: bool = False
    last: bool = False  # the text ends after this line, without a line end
    cut: bool = False  # no blank follows either, so its last figure may lack digits
    read_line: int = 0  # the last line that was read
    left_line: int = 0  # the last line with a value that was left out
    short_row: bool = False  # the last row has fewer figures than its table
    left_out: dict[tuple[str, str], list[tuple[int, str]]] = field(default_factory=dict)
    unread: list[tuple[int, str]] = field(default_factory=list)  # headings of tables that are not read
    trouble: tuple[int, str] | None = None

    def __post_init__(self) -> None:
        self._begin()

    @property
    def run(self) -> _Run:
        return self.runs[-1]

    def _begin(self) -> None:
        self.runs.append(_Run(options=self.command))
        self.section = self.command.section if self.command else None
        self.table = self.remote = self.pair = None

    def take(self, n: int, line: str, last: bool) -> None:
        if len(line) > words.LONGEST:
            return  # MLC prints no such line
        self.last, self.cut = last, last and not line[-1:].isspace()
        line = words.clean(line)
        if not line:
            return
        if banner := words.BANNER.search(line):
            self._begin()
            self.run.banner = True
            self.version = self.version or banner[1]
        elif not (self._fact(line) or self._heading(n, line) or self._alone(n, line) or self._row(n, line)):
            self.drive = line.lower().startswith("scm drive")
            if not self.trouble and words.REFUSAL.search(line):
                self.trouble = n, line

    def _fact(self, line: str) -> bool:
        """Return whether ``line`` describes how this run or the next one measures."""
        if match := words.COMMAND_LINE.search(line):
            if self.run.figures or self.run.command_line:
                self._begin()
            self.run.options, self.run.command_line = words.options(match[1].split()), True
            self.section = self.run.settings.section
        elif match := words.BUFFER.search(line):
            self._begin_again()
            self.run.buffer = words.printed_buffer(match)
        elif words.NO_CONTROL.search(line):
            self._begin_again()
            self.run.no_control = True
        elif words.GOES_RANDOM.search(line):
            self._begin_again()
            self.run.goes_random = True
        elif words.READ_ONLY.match(line):
            self.run.read_only = True
        else:
            return False
        return True

    def _begin_again(self) -> None:
        """Begin another run if there are figures already, since MLC prints such lines before it measures."""
        if self.run.figures:
            self._begin()

    def _heading(self, n: int, line: str) -> bool:
        section = words.section_of(line)
        if not section and not words.HEADING.match(line):
            return False
        repeated = section in self.run.sections and not (words.CURVE.match(line) and self.section == LOADED)
        if repeated and self.run.figures:
            self._begin()
        self.section, self.table, self.remote, self.drive = section, None, None, False
        if not section:
            if not self.last:
                self.unread.append((n, line))
            return True
        self.run.sections.setdefault(section, n)
        if section == IDLE and (access := words.ACCESS.search(line)):
            self.run.access = access[1].lower()
        return True

    def _alone(self, n: int, line: str) -> bool:
        """Return whether ``line`` itself names the quantity that it contains."""
        settings = self.run.settings
        if match := words.VERBOSE.search(line):
            self.pair = {"from": match[1], "to": match[2]}
        elif match := words.ITERATION.search(line):
            labels = dict(self.pair or words.placement(settings, _SINGLE))
            # A default buffer differs from host to host; a requested one is a label.
            buffer = settings.buffer or (None if self.run.options and not settings.has("b") else self.run.buffer)
            if buffer and not self.pair:
                labels["buffer"] = buffer
            self._clocks(n, "idle_latency", match[1], labels)
            self.pair = None
        elif match := words.LOCAL.match(line):
            self.section, self.table, self.remote = CACHES, None, None
            cells = match[3].split()
            labels = {"state": match[2].upper(), "level": match[1].upper()}
            self._add(n, "c2c_latency", cells[0] if cells else "", labels, 1 if len(cells) == 1 else 0)
        elif match := words.REMOTE.match(line):
            self.section, self.table = CACHES, None
            self.remote = {"state": match[2].upper(), "level": match[1].upper()}
            if match[3]:
                self.remote = {**self.remote, "homed": match[3].lower()}
        elif match := words.PAIR.match(line):
            labels = {"state": "HIT" if settings.has("H") else "HITM", **dict(words.placement(settings, _COUPLE))}
            self._clocks(n, "c2c_latency", match[1], labels)
        else:
            return False
        return True

    def _row(self, n: int, line: str) -> bool:
        """Return whether ``line`` belongs to the current table."""
        if self.section in (IDLE, MATRIX, CACHES):
            return self._matrix(n, line)
        if self.section == LOADED:
            return self._delay(n, line)
        return self._ratio(n, line)

    def _matrix(self, n: int, line: str) -> bool:
        if first := words.columns(line, self.drive):
            self._first_row(*first)
            return True
        row = words.row(line)
        if not row:
            return False
        node, cells = row
        title = f"row {node} of the {words.NAMES[self.section or IDLE]}"
        if not self.table:
            if any("." in cell for cell in cells):
                self._leave(n, title, line, "as its table has no heading or no row of nodes")
            return True
        self.table.rows += 1
        cells, rest = _cells(cells)
        count = len(self.table.columns)
        if len(cells) > count or (len(cells) < count and not rest and not self.last):
            self._leave(n, title, line, f"with {len(cells)} cells under {count} nodes")
            return True
        self.short_row = len(cells) < count
        if not self.short_row and cells[-1] in words.NOTHING_HERE:
            self.read_line = n
        for position, (column, cell) in enumerate(zip(self.table.columns, cells, strict=False)):
            if cell not in words.NOTHING_HERE:
                labels = {**self.table.labels, self.table.corner: node, "to": column}
                self._add(n, self.table.metric, cell, labels, 1 if position == len(cells) - 1 and not rest else 0)
        return True

    def _first_row(self, corner: str, columns: tuple[str, ...]) -> None:
        """Begin a matrix, unless it is a second one under one heading, whose meaning is unknown."""
        again = self.table is not None and self.table.rows > 0
        metric = {IDLE: "idle_latency", MATRIX: "bandwidth"}.get(self.section or "", "c2c_latency")
        labels = self.remote if self.section == CACHES else self.run.traffic() if self.section == MATRIX else {}
        self.table = None if again or labels is None else _Table(metric, corner, columns, labels)
        self.remote, self.drive = None, False

    def _ratio(self, n: int, line: str) -> bool:
        match = words.RATIO.match(line)
        if not match:
            return False
        if self.section is None:
            self._leave(n, "bandwidth", line, "because its kind is unknown: peak or maximum")
            return True
        reads, writes, triad, ratio, past_caches, rest = match.groups()
        mix = "all_reads" if reads else "nt_writes" if writes else "stream_triad" if triad else ratio
        metric, places = ("peak_bandwidth", 1) if self.section == PEAK else ("max_bandwidth", 2)
        cells = rest.split()
        ends = places if len(cells) == 1 else 0
        self._add(n, metric, cells[0] if cells else "", {"mix": f"{mix}_nt" if past_caches else mix}, ends)
        return True

    def _delay(self, n: int, line: str) -> bool:
        head, *cells = line.split()
        if not (is_whole(head) and len(head) < 10):
            return False
        cells, rest = _cells(cells)
        if not any("." in cell for cell in cells):
            if cells and len(head) >= 5:  # in the format of MLC's delays
                self._leave(n, f"loaded row {head}", cells[0], "which is not a figure of MLC")
            return len(head) >= 5
        if len(cells) != 2 and not (len(cells) < 2 and (self.last or rest)):
            self._leave(n, f"loaded row {head}", line, f"with {len(cells)} figures instead of 2")
            return True
        self.short_row = len(cells) < 2
        labels = {"delay": str(int(head)), **self.run.traffic()}
        for position, (cell, metric) in enumerate(zip(cells, ("loaded_latency", "loaded_bandwidth"), strict=False)):
            ends = (2 - position) if position == len(cells) - 1 and not rest else 0
            if not (
                metric == "loaded_latency" and self.run.settings.has("T")
            ):  # 0.00 means that no latency was requested
                self._add(n, metric, cell, labels, ends)
        return True

    def _clocks(self, n: int, metric: str, brackets: str | None, labels: Mapping[str, str]) -> None:
        word, exponent = words.timed(brackets)
        if exponent is None:
            self._leave(n, metric.replace("_", " "), word, "without its unit")
        else:
            self._add(n, metric, word, labels, exponent=exponent)

    def _add(
        self, n: int, metric: str, word: str, labels: Mapping[str, str], ends: int = 0, exponent: int = -9
    ) -> None:
        """Store the figure ``word``, or record why it is not stored.

        ``ends``: the number of decimals that it must have at the end of a line.
        """
        unit = "B/s" if metric.endswith("bandwidth") else "s"
        value = words.figure(word, 6 if unit == "B/s" else exponent)
        name = metric.replace("_", " ")
        if self.cut and ends and (value is None or decimals(word) < ends):
            self._leave(n, name, word, "where the text ends")
        elif value is None:
            self._leave(n, name, word, "which is not a figure of MLC")
        elif not 0 < value <= words.LARGEST[unit]:
            self._leave(n, name, word, "which is not plausible")
        elif (metric, key := tuple(sorted(labels.items()))) in self.run.figures:
            self._leave(n, name, word, "because the same point already has a figure")
        else:
            self.run.figures[metric, key] = _Figure(metric, value, unit, dict(labels))
            self.read_line = n

    def _leave(self, n: int, name: str, word: str, reason: str) -> None:
        self.left_line = n
        self.left_out.setdefault((name, reason), []).append((n, " ".join(word.split())[:40]))

    def end_missing(self, text: str) -> str | None:
        """Return why the text is truncated, or None if the last run is complete or this cannot be known."""
        run, last = self.run, text.count("\n") + 1
        inside = cut_in_line(text)
        if self.unread and not (inside and self.unread[-1][0] == last):
            return None  # its last table may be one that is not read
        matrix = self.table if self.table and self.table.metric != "c2c_latency" else None
        more_rows = matrix and (matrix.corner == "cpu" or matrix.rows < len(matrix.columns))
        if inside and (self.read_line < last or self.left_line == last or self.short_row or more_rows):
            return inside
        if self.pair or ((run.banner or run.command_line) and not run.figures):
            return cut("no figures of the last run")
        labels: dict[str, list[Mapping[str, str]]] = {}
        for f in run.figures.values():
            labels.setdefault(_SECTIONS.get(f.metric, LOADED), []).append(f.labels)
        nodes = max(len({f.labels.get("from") for f in r.figures.values() if "to" in f.labels}) for r in self.runs)
        full_run = not run.settings.mode and (run.banner or len(set(words.WHOLE_RUN) & run.sections.keys()) > 1)
        table = self.table
        begun = Begun(
            settings=run.settings,
            full_run=full_run,
            nodes=nodes,
            sections=list(run.sections),
            labels=labels,
            columns=len(table.columns) if table else None,
            rows=table.rows if table else 0,
        )
        missing = section_missing(begun)
        return cut(f"no {missing}") if missing else None

    def notes(self, measurements: Sequence[Measurement]) -> Iterator[str]:
        runs = [run for run in self.runs if run.figures]
        suffixes = [run.suffix for run in runs if any(f.unit == "s" for f in run.figures.values())]
        for suffix in dict.fromkeys(filter(None, suffixes)):
            some = "" if all(s == suffix for s in suffixes) else f"{suffixes.count(suffix)} of {len(suffixes)} runs: "
            yield some + _ACCESS_NOTES[suffix]
        for (name, reason), places in list(self.left_out.items())[:_MOST_NOTES]:
            n, word = places[0]
            more = f" (and {len(places) - 1} more)" if len(places) > 1 else ""
            yield f"line {n}: {name} {word!r} left out, {reason}{more}"
        if len(self.left_out) > _MOST_NOTES:
            yield f"{len(self.left_out) - _MOST_NOTES} more kinds of figures left out"
        for n, line in self.unread[:_MOST_NOTES]:
            yield f"line {n}: what comes under {line[:80]!r} is not read"
        for run in self.runs:
            yield from _missing(run)
        if self.trouble:
            yield f"line {self.trouble[0]}: {self.trouble[1][:120]}"
        repeats = max(Counter((m.metric, *sorted(m.labels.items())) for m in measurements).values())
        if repeats > 1:
            yield f"{repeats} equal runs in one text, which count as repeats"

    def nothing(self, lines: Sequence[tuple[int, str]]) -> ParseError:
        printed = [(n, line.strip()) for n, line in lines if line.strip()]
        sections = [(n, name) for run in self.runs for name, n in run.sections.items()]
        expected = "latencies or bandwidths measured by Intel Memory Latency Checker"
        if self.trouble:
            return ParseError(_TOOL, expected, line=self.trouble[0], got=self.trouble[1])
        if sections:
            n, name = sections[-1]
            got = next((line for number, line in reversed(printed) if number > n), "the end of the text")
            return ParseError(_TOOL, f"figures under the heading of {words.NAMES[name]}", line=n, got=got)
        if self.unread:
            return ParseError(
                _TOOL, f"{expected} in a mode that is read", line=self.unread[0][0], got=self.unread[0][1]
            )
        if not printed:
            return ParseError(_TOOL, expected, got="no output")
        return ParseError(_TOOL, expected, line=printed[-1][0], got=printed[-1][1])


def _cells(line: Sequence[str]) -> tuple[list[str], bool]:
    """Return the cells at the start of a row, and whether other text follows (a message that was printed into it)."""
    count = next((position for position, word in enumerate(line) if not words.is_cell(word)), len(line))
    return list(line[:count]), count < len(line)


def _missing(run: _Run) -> Iterator[str]:
    """Return notes on sections and headline figures that a run began but that have no figures."""
    sections = {_SECTIONS.get(f.metric, LOADED) for f in run.figures.values()}
    for name, n in run.sections.items():
        if name not in sections:
            yield f"line {n}: no {words.NAMES[name]} under their heading"
    for metric in _ALL_READS:
        mixes = {f.labels["mix"] for f in run.figures.values() if f.metric == metric}
        if mixes and "all_reads" not in mixes:
            yield f"{metric.replace('_', ' ')}: no figure of all reads"


def _named(runs: Sequence[_Run]) -> Iterator[Measurement]:
    """Return all figures of all runs; those of several runs at one point have labels for the options that differ."""
    final = [(run, list(run.final())) for run in runs]
    points: dict[tuple[str, tuple[tuple[str, str], ...]], set[str]] = {}
    for run, figures in final:
        for f in figures:
            points.setdefault((f.metric, tuple(sorted(f.labels.items()))), set()).add(run.settings.others)
    for run, figures in final:
        for f in figures:
            labels = dict(f.labels)
            if run.settings.others and len(points[f.metric, tuple(sorted(f.labels.items()))]) > 1:
                labels["options"] = run.settings.others
            better = Better.LOWER if f.unit == "s" else Better.HIGHER
            yield Measurement(_TOOL, _CASE, f.metric, f.value, f.unit, better=better, labels=labels)
