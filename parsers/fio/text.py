"""Read fio's two line formats, normal and terse, into the figures of each job."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field

from fleetmark.base.units import is_whole
from fleetmark.parsers.kit.cut import cut, cut_in_line
from fleetmark.parsers.kit.text import number, numbered

ALL_CLIENTS = "All clients"
PERCENTILES = (50.0, 90.0, 95.0, 99.0, 99.9, 99.99, 99.999)

# fio's messages if a job fails or is stopped but still prints results.
FATAL = re.compile(
    r"fio: pid=\d+, err=[1-9]|fio: pid=\d+, got signal|fio: io_u error|fio: terminating on signal|verify failed"
    r"|verify: bad |hasn't exited in|>: exited with error [1-9]"
)
# Further messages of a run without results.
COMPLAINT = re.compile(
    r"^\s*(?:\S{1,20}: )?fio: (?!this platform)|Bad option|No jobs?\(?s?\)? defined|you need to specify size"
    r"|unrecognized option|fio: (?:command )?not found"
)

_PER_SECOND = {"nsec": 1e9, "usec": 1e6, "msec": 1e3, "sec": 1.0}
_POWERS = ("", "K", "M", "G", "T", "P", "E")

_NAME = r"^\s*(?P<name>read|write|trim|mixed)\s*: "
_RATE = r"(?P<rate>[\d.]+)\s*(?P<prefix>[kKMGTPE]?)(?P<binary>i?)(?:(?P<unit>B|bit)/s)?"  # "All clients" has no unit
_IOPS = r"\s*(?P<iops>[\d.]+)\s*(?P<k>[kKMGTPE]?)\s*"
_VERSION = re.compile(r"^\s*(?:<[^>]*> )?fio[- ](?:fio[- ])?(\d\S*)$|^hostname=.*, fio=fio-([^\s,]+)")
_JOB = re.compile(
    r"^(?:\s*<[^>]*> )?(?P<name>.*): \(groupid=(?P<group>\d{1,9}), jobs=\d{1,9}\): "
    r"err=\s*(?P<error>-?\d{1,9})(?: \((?P<what>.*)\))?: pid=(?P<pid>-?\d{1,9})\b"
)
_DIRECTION = re.compile(rf"{_NAME}IOPS={_IOPS}, BW={_RATE} \(")
_OLD_DIRECTION = re.compile(rf"{_NAME}io=[^,]*, bw=\s*{_RATE}\s*, iops={_IOPS}, runt=")
_SYNC = re.compile(r"^\s*fsync/fdatasync/sync_file_range\S*:\s*$")
_STATISTICS = re.compile(
    r"^\s*(?P<what>slat|clat|lat|sync) \((?P<unit>[num]?sec)\)\s*: min=\s*(?P<min>[\d.]+)(?P<min_k>[kKMGTPE]?)\s*,"
    r" max=\s*(?P<max>[\d.]+)(?P<max_k>[kKMGTPE]?)\s*, avg=\s*(?P<avg>[\d.]+)\s*, stdev="
)
_HEADING = re.compile(r"^\s*(?P<what>\S.*?) percentiles \((?P<unit>[num]sec)\):")
_PERCENTILE = re.compile(r"(\d+(?:\.\d+)?)th=\[\s*(\d+)\]")
_CPU = re.compile(r"^\s*cpu\s*: usr=\s*([\d.]+)%, sys=\s*([\d.]+)%")
_ISSUED = re.compile(r"^\s+issued(?: rwts)?\s*: total=")
_HEAD = "heading"  # the missing part of a group that has no status heading yet
_GROUP = re.compile(r"^\s*(?:<[^>]*> )?Run status group (\d{1,9}) \(all jobs\):")
_SUM = re.compile(rf"^\s*(?P<name>READ|WRITE|TRIM|MIXED): bw={_RATE} \(")
_OLD_SUM = re.compile(rf"^\s*(?P<name>READ|WRITE|TRIM|MIXED): io=[^,]*, aggrb=\s*{_RATE}\s*,")


@dataclass(kw_only=True, slots=True)
class Job:
    """One job's figures in base units by metric name; ``error`` is fio's reason if the job failed."""

    name: str
    subject: str = "host"
    group: int | None = None
    values: dict[str, float] = field(default_factory=dict)
    error: str | None = None
    pid: int | None = None


def new_job(name: str, subject: str = "host") -> Job:
    """Return an empty Job; fio's ``All clients`` has the subject ``all``."""
    return Job(name=name.strip() or "job", subject="all" if name == ALL_CLIENTS else subject)


def percentile_name(rank: float | None) -> str | None:
    """Return ``p99.9`` for one of the percentiles that are kept, None for other percentiles."""
    return f"p{rank:g}" if rank in PERCENTILES else None


@dataclass(frozen=True, slots=True)
class Read:
    """The contents of an output in one format: fio's version, its jobs and, if the text is truncated, the reason."""

    version: str | None
    jobs: list[Job]
    cut: str | None


def read_normal(text: str, notes: list[str]) -> Read:
    """Return the contents of fio's normal output; there are no jobs if ``text`` is something else.

    For a group of several jobs, the result includes fio's own sum of their bandwidths, as subject ``all``.
    """
    reader = _Normal()
    for _, line in numbered(text):
        reader.read(line)
    jobs = _last_snapshots(reader.jobs, notes)
    for job in jobs:
        if job.subject == "all":  # the hosts may run different versions
            job.values = {m: v for m, v in job.values.items() if not m.startswith("cpu_")}
    return Read(reader.version, jobs + _group_sums(jobs, reader.sums), reader.end_missing())


class _Normal:
    """Read normal output line by line: jobs contain directions, which contain blocks of percentiles."""

    def __init__(self) -> None:
        self.version: str | None = None
        self.jobs: list[Job] = []
        self.sums: dict[tuple[int, str], float] = {}
        self._values: dict[str, float] = {}
        self._direction = ""
        self._block: tuple[str, float] | None = None  # prefix of the metric, and units per second
        self._group: int | None = None
        self._servers = 0
        self._owed: dict[int, set[str]] = {}  # by group, the directions whose sum over the group is still missing
        self._owing: set[str] = set()  # the group of the current job
        self._all_clients: bool | None = None  # whether that section was read to its end

    def end_missing(self) -> str | None:
        """Return why the text is truncated: groups follow their jobs, and all clients follow several servers."""
        if self._owed:
            return cut(f"no status of group {min(self._owed)}")
        if self._all_clients is False or (self._all_clients is None and self._servers > 1):
            return cut("no section of all clients to its end")
        return None

    def read(self, line: str) -> None:
        if self._block and line.lstrip().startswith("|"):
            self._percentiles(line, *self._block)
            return
        self._block = None
        if not (self._frame(line) or self._rates(line)) and self._direction:
            self._latencies(line)

    def _frame(self, line: str) -> bool:
        """Read the lines between sections, and the line of CPU time."""
        if match := _VERSION.match(line):
            self.version = match[1] or match[2]
            self._servers += match[2] is not None
        elif match := _JOB.match(line):
            job = new_job(match["name"])
            job.group, job.pid = int(match["group"]), int(match["pid"])
            if int(match["error"]):
                job.error = f"error {match['error']}" + (f" ({match['what']})" if match["what"] else "")
            self.jobs.append(job)
            self._values, self._direction, self._group = job.values, "", None
            if job.subject == "all":
                self._all_clients, self._owing = False, set()
            else:
                self._owing = self._owed.setdefault(job.group, {_HEAD})
        elif match := _GROUP.match(line):
            self._values, self._direction, self._group = {}, "", int(match[1])
            self._settle(int(match[1]), _HEAD)
        elif match := _ISSUED.match(line):
            self._all_clients = True if self._all_clients is False else self._all_clients
        elif match := _CPU.match(line):
            for name, figure in (("cpu_usr", match[1]), ("cpu_sys", match[2])):
                if self._values:
                    put(self._values, name, number(figure), 100)
        return bool(match)

    def _settle(self, group: int, latency: str) -> None:
        """Remove ``latency`` from the parts that ``group`` still lacks."""
        owed = self._owed.get(group, set())
        owed.discard(latency)
        if not owed:
            self._owed.pop(group, None)

    def _rates(self, line: str) -> bool:
        if match := _DIRECTION.match(line) or _OLD_DIRECTION.match(line):
            self._direction = match["name"]
            self._owing.add(self._direction)
            put(self._values, f"{self._direction}_bw", _rate(match))
            put(self._values, f"{self._direction}_iops", _scaled(match["iops"], match["k"]))
        elif match := _SYNC.match(line):
            self._direction = "sync"
        elif self._group is not None and (match := _SUM.match(line) or _OLD_SUM.match(line)):
            self.sums[self._group, f"{match['name'].lower()}_bw"] = _rate(match) or 0.0
            self._settle(self._group, match["name"].lower())
        return bool(match)

    def _latencies(self, line: str) -> None:
        if match := _STATISTICS.match(line):
            latency = "lat" if match["what"] == "sync" else match["what"]
            kinds = {"mean": number(match["avg"])}
            if latency != "slat":
                kinds |= {"min": _scaled(match["min"], match["min_k"]), "max": _scaled(match["max"], match["max_k"])}
            for kind, figure in kinds.items():
                put(self._values, f"{self._direction}_{latency}_{kind}", figure, _PER_SECOND[match["unit"]])
        elif match := _HEADING.match(line):
            latency = "lat" if match["what"] == "sync" else match["what"]
            if latency in ("slat", "clat", "lat"):  # skip the latencies of a single priority class
                self._block = f"{self._direction}_{latency}", _PER_SECOND[match["unit"]]

    def _percentiles(self, line: str, prefix: str, per_second: float) -> None:
        for rank, figure in _PERCENTILE.findall(line):
            if name := percentile_name(number(rank)):
                put(self._values, f"{prefix}_{name}", number(figure), per_second)


def put(values: dict[str, float], name: str, figure: float | None, per_unit: float = 1.0) -> None:
    """Store ``figure`` unless it is missing or not above 0 (no rate, or a latency below the clock's resolution)."""
    if figure and 0 < figure < math.inf:
        values[name] = figure / per_unit


def _scaled(figure: str, prefix: str) -> float | None:
    plain = number(figure)
    return None if plain is None else plain * 1000 ** _POWERS.index(prefix.upper())


def _rate(match: re.Match[str]) -> float | None:
    """Return B/s; before fio 2.17, every prefix of a byte or bit rate is a power of 1024."""
    plain = number(match["rate"])
    if plain is None:
        return None
    base = 1024 if match["binary"] or match.re in (_OLD_DIRECTION, _OLD_SUM) else 1000
    rate: float = plain * base ** _POWERS.index(match["prefix"].upper())
    return rate / 8 if match["unit"] == "bit" else rate


def _last_snapshots(jobs: list[Job], notes: list[str]) -> list[Job]:
    """Return each job's last figures, since ``--status-interval`` prints a job repeatedly under one pid."""
    last = {(j.name, j.group, j.pid) if j.pid else id(j): j for j in jobs}
    if len(last) < len(jobs):
        notes.append(f"{len(jobs) - len(last)} interim reports of running jobs left out")
    return list(last.values())


def _group_sums(jobs: list[Job], sums: dict[tuple[int, str], float]) -> list[Job]:
    """Return fio's sum over each group of several jobs; none with clients, because their groups share numbers."""
    totals: dict[int, Job] = {}
    for (group, metric), rate in sums.items():
        is_single = sum(j.group == group and bool(j.values) for j in jobs) < 2
        if rate and not is_single and not any(j.name == ALL_CLIENTS for j in jobs):
            totals.setdefault(group, Job(name=f"group {group}", subject="all", group=group)).values[metric] = rate
    return list(totals.values())


def read_terse(text: str, notes: list[str]) -> Read:
    """Return the contents of fio's terse output (``--minimal``), versions 2 to 5 of that format."""
    version: str | None = None
    jobs: list[Job] = []
    for n, line in numbered(text):
        fields = line.strip().split(";")
        if fields[0] not in ("2", "3", "4", "5") or len(fields) < 60:
            continue
        head = 4 if fields[0] == "2" else 5
        name, error = (fields[1], fields[3]) if head == 4 else (fields[2], fields[4])
        version = fields[1].removeprefix("fio-") if head == 5 else version
        stride = 47 if fields[0] == "5" else 41
        directions = _terse_directions(fields, head, stride)
        if not directions:
            notes.append(f"line {n} begins like terse output but is cut or of an unknown version; not read")
            continue
        job = new_job(name)
        job.error = f"error {error}" if error not in ("0", "") else None
        for k, direction in enumerate(directions):
            job.values.update(_terse_direction(fields[head + k * stride :][:stride], direction))
        cpu = fields[head + len(directions) * stride :][:2]
        for metric, figure in zip(("cpu_usr", "cpu_sys"), cpu, strict=True):
            if job.values:
                put(job.values, metric, number(figure.rstrip("%")), 100)
        jobs.append(job)
    return Read(version, jobs, cut_in_line(text))


def _terse_directions(fields: list[str], head: int, stride: int) -> tuple[str, ...]:
    """Return the directions in the line, located by the two CPU percentages; empty if these are not found."""
    for directions in (("read", "write", "trim"), ("read", "write"), ("mixed",)):
        cpu = fields[head + len(directions) * stride :][:3]
        if len(cpu) == 3 and cpu[0].endswith("%") and cpu[1].endswith("%") and is_whole(cpu[2]):
            return directions
    return ()


def _terse_direction(fields: list[str], direction: str) -> dict[str, float]:
    """Return the figures of one direction; all versions of fio use KiB/s and microseconds.

    The percentiles are named after clat. With ``lat_percentiles=1``, they are percentiles of lat, but the line does not
    show this.
    """
    figures = [number(f) for f in fields]
    values: dict[str, float] = {}
    put(values, f"{direction}_bw", figures[1], 1 / 1024)
    put(values, f"{direction}_iops", figures[2])
    put(values, f"{direction}_slat_mean", figures[6], 1e6)
    for family, start in (("clat", 8), ("lat", 32)):
        for kind, figure in zip(("min", "max", "mean"), figures[start:], strict=False):
            put(values, f"{direction}_{family}_{kind}", figure, 1e6)
    for pair in fields[12:32]:
        rank, _, latency = pair.partition("%=")
        if name := percentile_name(number(rank)):
            put(values, f"{direction}_clat_{name}", number(latency), 1e6)
    return values
