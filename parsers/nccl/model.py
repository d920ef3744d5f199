"""Represent one run of a collective benchmark and check its figures, for all tools of the NCCL family.

Each collective's definitions of bandwidth are those of nccl-tests (PERFORMANCE.md and src/*.cu).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import KW_ONLY, dataclass, field

from fleetmark.base.measurement import Better

METRICS: dict[str, tuple[str, Better]] = {
    "busbw": ("B/s", Better.HIGHER),
    "algbw": ("B/s", Better.HIGHER),
    "time": ("s", Better.LOWER),
    "cpu_time": ("s", Better.LOWER),
    "hip_event_time": ("s", Better.LOWER),
    "time_min": ("s", Better.LOWER),
    "time_max": ("s", Better.LOWER),
    "time_p99": ("s", Better.LOWER),
    "time_cv": ("1", Better.LOWER),
    "avg_busbw": ("B/s", Better.HIGHER),
    "peak_busbw": ("B/s", Better.HIGHER),
    "ranks": ("1", Better.NONE),
    "nodes": ("1", Better.NONE),
}

_NAMES = {
    "allreduce": "all_reduce",
    "allreducebias": "all_reduce_bias",
    "allgather": "all_gather",
    "reducescatter": "reduce_scatter",
    "alltoall": "alltoall",
    "alltoallv": "alltoallv",
    "broadcast": "broadcast",
    "reduce": "reduce",
    "gather": "gather",
    "scatter": "scatter",
    "sendrecv": "sendrecv",
    "hypercube": "hypercube",
    "allr": "all_reduce",  # the others are nccom-test's short names
    "allg": "all_gather",
    "redsct": "reduce_scatter",
    "permute": "permute",
}
VERSION, STARTING, SETTINGS, DEVICES, HEADING = range(1, 6)  # the stage that the text of a run reached
MOST = 1e18  # maximum of any column in any unit
FAILED = "failed"  # printed by HCCL instead of a count
_WIDTHS = {"half": 2, "float": 4, "double": 8, "char": 1, "int": 4}
# The relative error that versions up to 2.12 allow for each rank but one; other types must be exact.
_ALLOWED = {"half": 1e-2, "bfloat16": 1e-2, "float": 1e-5, "double": 1e-12}
_FIGURE = re.compile(r"[0-9]{1,15}(?:\.[0-9]{0,12})?(?:[eE][+-]?[0-9]{1,3})?")


def collective(name: str) -> str | None:
    """Return the canonical name of a collective, such as ``all_reduce`` for ``AllReduce``, ``all_reduce`` and ``allr``.

    Return None for other names.
    """
    return _NAMES.get(name.lower().replace("_", "").replace("-", ""))


@dataclass(frozen=True, slots=True)
class Figure:
    """A number as printed, and half a unit of its last digit."""

    value: float
    half: float

    def times(self, factor: float) -> Figure:
        return Figure(self.value * factor, self.half * factor)


def figure(text: str) -> Figure | None:
    """Return ``text`` as a figure; None if it is not a plain decimal or exceeds anything measurable."""
    if not _FIGURE.fullmatch(text):
        return None
    mantissa, _, exponent = text.lower().partition("e")
    shift = int(exponent or 0) - len(mantissa.partition(".")[2])
    value = float(text)
    return Figure(value, 0.5 * 10.0**shift) if value <= MOST and shift <= 18 else None


@dataclass(slots=True)
class Point:
    """One way of running a size: its figures by metric, in base units, and the validation column."""

    place: str  # "out", "in", or "" for a tool without this distinction
    figures: dict[str, Figure]
    wrong: str | None = None


@dataclass(slots=True)
class Row:
    """One size of a table."""

    line: int
    size: int
    count: int | None = None
    type: str | None = None
    redop: str | None = None
    _: KW_ONLY
    root: int | None = None
    points: list[Point] = field(default_factory=list)
    more: dict[str, str] = field(default_factory=dict)  # further labels
    width: int | None = None  # bytes of an element, if the table does not name its type

    @property
    def name(self) -> dict[str, str]:
        """Return the labels of this row, without ``place``."""
        labels = {"size": str(self.size)}
        if self.type:
            labels["type"] = self.type
        if self.redop and self.redop != "none":
            labels["redop"] = self.redop
        if self.root is not None and self.root >= 0:
            labels["root"] = str(self.root)
        return labels | self.more

    @property
    def printed(self) -> tuple[object, ...]:
        """Return everything measured in this row; two rows with equal results are one row printed twice."""
        figures = tuple((p.place, tuple((m, f.value) for m, f in p.figures.items())) for p in self.points)
        return (*sorted(self.name.items()), figures)

    @property
    def share(self) -> int | None:
        """Return the factor between the counted elements and the size; None if it is not a whole number."""
        width = self.width or _width(self.type)
        if not width or not self.count or self.size % (self.count * width):
            return None
        return self.size // (self.count * width)


def _width(kind: str | None) -> int | None:
    """Return the bytes of one element of a type, by the name that these tools use."""
    if kind is None:
        return None
    if match := re.fullmatch(r"(?:u?int|fp|bf|bfloat)(8|16|32|64)(?:_?e[0-9]m[0-9]\w*)?", kind):
        return int(match[1]) // 8
    return 1 if re.match(r"f8e[0-9]", kind) else _WIDTHS.get(kind)


@dataclass(kw_only=True, slots=True, eq=False)
class Run:
    """One run of one collective."""

    line: int
    case: str | None = None
    family: str = ""  # the tool, if one parser reads several
    named: bool = False  # the test's own output names the collective
    source: str = ""  # its process, from the launcher's marks
    last: int = 0
    stage: int = 0  # VERSION to HEADING
    columns: tuple[str, ...] = ()  # columns of the table between count and the first time
    devices: list[tuple[int, int, str, str]] = field(default_factory=list)  # rank, group, process, host
    ranks_printed: int | None = None
    nodes_printed: int | None = None
    derived_ranks: bool = True  # counted by the parser, not printed
    ranks_of_command: int | None = None  # according to the command line
    gb: float = 1e9  # bytes per second in one GB/s of the tool
    headless: bool = False  # rows appear before any heading: the beginning of the text is missing
    rows: list[Row] = field(default_factory=list)
    damaged: list[str] = field(default_factory=list)  # omissions from the table, as notes
    average: Figure | None = None
    average_failed: bool = False
    summaries: set[tuple[str, ...]] = field(default_factory=set)
    validation: int | None = None
    kernel: str | None = None  # the implementation that mscclpp-test ran
    out_of_bounds: int | None = None
    relative: bool = False  # the validation column is a relative error, not a count
    ended: bool = False
    expects_average: bool = True
    cut: str | None = None  # a message printed after a test that did not end
    failure: tuple[int, str] | None = None
    mixed: int = 0  # how many processes printed their own tests into this one
    notes: list[str] = field(default_factory=list)
    versions: list[str] = field(default_factory=list)  # version of the library, as its processes print it
    version: str | None = None
    library: str | None = None

    @property
    def groups(self) -> int:
        return len({group for _, group, _, _ in self.devices}) or 1

    @property
    def ranks(self) -> int | None:
        """Return the number of ranks in a communicator; None if there is no complete list."""
        if self.ranks_printed is not None:
            return self.ranks_printed
        ranks = sorted({rank for rank, _, _, _ in self.devices})
        if not ranks or ranks != list(range(len(ranks))) or len(ranks) % self.groups:
            return None
        return len(ranks) // self.groups

    @property
    def nodes(self) -> int | None:
        if self.nodes_printed is not None or self.ranks is None:
            return self.nodes_printed
        return len({host for _, _, _, host in self.devices}) or None

    @property
    def doubled(self) -> int:
        """Return the number of processes that report rank 0, if there is more than one."""
        zeros = {(process, host) for rank, _, process, host in self.devices if rank == 0}
        return len(zeros) if len(zeros) > 1 else 0

    @property
    def progress(self) -> str:
        """Return the stage that a run without rows reached, as the end of a sentence."""
        name = f" of {self.case}" if self.case else ""
        if self.stage >= HEADING:
            return f" under the heading{name} (it failed or hung at the first size)"
        if self.devices:
            ranks = len(set(self.devices))
            return f" after the device list{name}: {ranks} ranks (it failed or hung in its set-up)"
        return f" after the settings{name}" if self.stage >= SETTINGS else ""

    def is_beside(self, other: Run) -> bool:
        """Return whether the two runs were printed side by side."""
        return self.line <= other.last and other.line <= self.last

    def points(self) -> Iterator[tuple[Row, Point]]:
        for row in self.rows:
            for point in row.points:
                yield row, point

    def unended(self) -> str | None:
        """Return what a truncated or silently stopped test lacks, as the end of a sentence."""
        if self.ended or self.failure:
            return None
        reason = f": {self.cut}" if self.cut else ""
        return f"the test did not finish{reason}" if self.rows else f"no rows of results{self.progress}{reason}"

    def wrong(self) -> str | None:
        """Return why this test's figures are invalid, if they are, as the end of a sentence."""
        first = next(((r, p) for r, p in self.points() if self._is_wrong(r, p)), None)
        if first and first[1].wrong == FAILED:
            return f"wrong data: check_result is {FAILED} at size {first[0].size}"
        if self.out_of_bounds:
            position = f", first at size {first[0].size}" if first else ""
            return f"wrong data: {self.out_of_bounds} out-of-bounds results{position}"
        if first:
            return f"wrong data: #wrong is {first[1].wrong} at size {first[0].size}"
        if self.failure:
            return f"ended with: {self.failure[1]}"
        if self.mixed:
            return f"{self.mixed} processes each ran a test of their own as rank 0 (a build without MPI?)"
        return None

    def _is_wrong(self, row: Row, point: Point) -> bool:
        text = point.wrong or ""
        if text == FAILED or text.endswith("*"):  # the asterisk is RCCL's mark
            return True
        errors = figure(text)
        if errors is None:
            return False
        if not self.relative:
            return errors.value > 0
        # Without a verdict, the error alone does not make a figure wrong, because the threshold varied.
        allowed = _ALLOWED.get(row.type or "", 1e-200) * max(1, (self.ranks or 2) - 1)
        return bool(self.out_of_bounds) and errors.value > allowed

    def infer(self) -> str | None:
        """Return the collective that fits the columns and figures, if only one does."""
        rows = [r for r in self.rows if r.share]
        pairs = [
            (p.figures["busbw"], p.figures["algbw"]) for _, p in self.points() if p.figures.keys() >= {"busbw", "algbw"}
        ]
        if not rows or not any(bus.value for bus, _ in pairs):  # with one rank, all collectives look alike
            return None
        if self.family == "nccom":  # all collectives have the same columns; only all_reduce moves more than the size
            return "all_reduce" if any(bus.value - alg.value > bus.half + alg.half for bus, alg in pairs) else None
        alike = all(abs(bus.value - alg.value) <= bus.half + alg.half for bus, alg in pairs)
        shares = {r.share == 1 for r in rows}
        if len(shares) > 1:
            return None
        return _by_columns(self.columns, rows, equal=shares == {True}, alike=alike)


def _by_columns(columns: tuple[str, ...], rows: list[Row], *, equal: bool, alike: bool) -> str | None:
    """Return the collective that fits the columns, since versions up to 2.12 omitted columns.

    ``equal``: the counted elements are the size. ``alike``: busbw is algbw.
    """
    reduces = all(r.redop not in (None, "none") for r in rows)
    rooted = all(r.root is not None and r.root >= 0 for r in rows)
    collective: str | None
    match columns:
        case ():  # mscclpp-test: sendrecv and alltoall never run in place
            inside = all(p.place == "in" for r in rows for p in r.points)
            collective = (
                ("all_reduce" if inside or not alike else None) if equal else "all_gather" if inside else "alltoall"
            )
        case ("type",):
            collective = "sendrecv" if equal and alike else "all_gather" if not (equal or alike) else None
        case ("type", "redop"):
            collective = ("all_reduce" if equal else "reduce_scatter") if reduces else "alltoall"
        case ("type", "root"):
            collective = "broadcast" if equal else None
        case _ if rooted:
            collective = "reduce" if reduces else "broadcast" if equal and alike else None
        case _ if reduces:
            collective = "reduce_scatter" if not equal else None if alike else "all_reduce"
        case _:
            collective = None if equal else _checked_in_place(rows)
    return collective


def _checked_in_place(rows: list[Row]) -> str | None:
    """Return all_gather or alltoall: both have the same columns, but only all_gather can be checked in place."""
    checked = {p.place: p.wrong not in (None, "N/A") for r in rows for p in r.points}
    if not checked.get("out") or "in" not in checked or any(r.redop is None for r in rows):
        return None
    return "all_gather" if checked["in"] else "alltoall"
