"""Read the lines of Intel Memory Latency Checker: headings, options, the first rows of tables, and figures."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile

LONGEST = 8000  # maximum line length in characters, for a matrix of a thousand nodes
LARGEST = {"s": 1e-3, "B/s": 1e14}  # upper limits for latency and bandwidth of any memory

# Prefixes added to lines: quotation marks of mails, comments, mpirun's rank.
_PREFIX = re.compile(r"(?:\[[0-9]{1,6}(?:,[0-9]{1,6})?\]<std(?:out|err)>:)?[\s>#*|`]*")
_POINT = re.compile(r"[0-9]{1,12}\.[0-9]{1,6}")
_NOT_FINITE = re.compile(r"[-+]?(?:inf(?:inity)?|nan)", re.IGNORECASE)
NOTHING_HERE = frozenset(("-", "--", "N/A", "n/a"))

BANNER = re.compile(
    r"Intel(?:\(R\)|®)? Memory Latency Checker(?: \([^)]{0,80}\))? +(?:- *|v(?=[0-9]))v?([0-9][\w.+-]{0,40})?",
    re.IGNORECASE,
)
COMMAND_LINE = re.compile(r"Command line parameters:(.*)", re.IGNORECASE)
BUFFER = re.compile(r"Using buffer size of ([0-9]{1,9}(?:\.[0-9]{1,6})?) ?([KMG])i?B\b(?!/thread)", re.IGNORECASE)
NO_CONTROL = re.compile(r"\bunable to (?:modify|access [\w.]{1,40} to modify) (?:\w{1,10} )?prefetchers", re.IGNORECASE)
GOES_RANDOM = re.compile(r"\benabling random access for latency", re.IGNORECASE)
READ_ONLY = re.compile(r"using read-only traffic", re.IGNORECASE)
HEADING = re.compile(r"(?:Measuring\b|Running memory bandwidth scan\b).*", re.IGNORECASE)
ACCESS = re.compile(r"\bfor (sequential|random) access", re.IGNORECASE)
CURVE = re.compile(r"inject\b.{0,20}\blatency\b.{0,20}\bbandwidth", re.IGNORECASE)

IDLE, PEAK, MOST, MATRIX, LOADED, CACHES = "idle", "peak", "max", "matrix", "loaded", "c2c"
_SECTIONS = (
    (IDLE, re.compile(r"measuring idle latenc", re.IGNORECASE)),
    (PEAK, re.compile(r"measuring peak (?:injection )?(?:memory )?bandwidth", re.IGNORECASE)),
    (MOST, re.compile(r"measuring max(?:imum)? (?:memory )?bandwidth", re.IGNORECASE)),
    (MATRIX, re.compile(r"measuring (?:memory )?bandwidths? between", re.IGNORECASE)),
    (LOADED, re.compile(r"measuring loaded latenc", re.IGNORECASE)),
    (CACHES, re.compile(r"measuring cache.to.cache\b.{0,20}\blatenc", re.IGNORECASE)),
)
NAMES = {
    IDLE: "idle latencies",
    PEAK: "peak bandwidths",
    MOST: "maximum bandwidths",
    MATRIX: "bandwidths between nodes",
    LOADED: "loaded latencies",
    CACHES: "cache-to-cache latencies",
}
WHOLE_RUN = (IDLE, PEAK, MATRIX, LOADED, CACHES)  # the sections that MLC measures by default, in order
_MODES = {
    "latency_matrix": IDLE,
    "idle_latency": IDLE,
    "peak_injection_bandwidth": PEAK,
    "peak_bandwidth": PEAK,
    "max_bandwidth": MOST,
    "bandwidth_matrix": MATRIX,
    "loaded_latency": LOADED,
    "c2c_latency": CACHES,
}

ITERATION = re.compile(r"Each iteration took\b[^(]{0,80}(?:\(([^)]{0,80}))?", re.IGNORECASE)
VERBOSE = re.compile(
    r"(?:socket|numa node) +([0-9]{1,5}) \(core[^)]{0,20}\) measuring latency to memory on "
    r"(?:socket|numa node) +([0-9]{1,5})\b",
    re.IGNORECASE,
)
LOCAL = re.compile(r"Local Socket (\w{1,4})->\1 (HITM?)\s+latency\s*:?\s*(.*)", re.IGNORECASE)
REMOTE = re.compile(
    r"Remote Socket (\w{1,4})->\1 (HITM?)\s+latency(?:.{0,20}\bhomed in (writer|reader))?", re.IGNORECASE
)
PAIR = re.compile(r"Latency = [0-9.]{1,20} (?:core|base frequency) clocks(?: \(([^)]{0,80}))?", re.IGNORECASE)
_TIMED = re.compile(r"\s*(\S{1,40}?)\s*(ns|us|ms)?\s*", re.IGNORECASE)
_EXPONENTS = {"ns": -9, "us": -6, "ms": -3}
RATIO = re.compile(
    r"(?:(all reads)|(all nt writes)|(stream.triad.like)|([0-9]{1,2}:[0-9]{1,2}) reads?-(nt )?writes?)\s*:?\s*(.*)",
    re.IGNORECASE,
)
_CORNER = re.compile(r"(writer )?(numa node|socket|memory node|cpu)\b(.*)", re.IGNORECASE)
_NODE = re.compile(r"[0-9]{1,5}")

_WRITE_MIXES = {  # -W
    "2": "2:1",
    "3": "3:1",
    "4": "3:2",
    "5": "1:1",
    "6": "nt_writes",
    "7": "2:1_nt",
    "8": "1:1_nt",
    "9": "3:1_nt",
    "10": "stream_triad",
    "11": "stream_triad_rfo",
    "12": "4:1",
    "13": "5:1",
    "14": "6:1",
    "15": "7:1",
    "16": "8:1",
    "17": "9:1",
}
_SIZE = re.compile(r"([0-9]{1,12})([kKmMgG]?)")
_KIBIBYTES = {"": 1, "K": 1, "M": 1 << 10, "G": 1 << 20}
_PROGRAM = re.compile(r"(?:^|[\s/;&\\])mlc(?:_\w{1,20})?(?:\.exe)?(?=\s|$)")

# Messages of MLC or the system about why a run failed.
REFUSAL = re.compile(
    r"huge ?pages?\b.*(?:allocat|fail)|allocation failed|unable to (?:allocate|open)|"
    r"unsupported (?:processor|argument)|invalid argument|not supported by this processor|segmentation fault|"
    r"illegal instruction|permission denied|command not found|no such file|cannot execute|cannot allocate memory|"
    r"error while loading shared libraries|version `GLIBC|parameter does not accept|value missing for|\bexiting\b|"
    r"^killed\b|core dumped",
    re.IGNORECASE,
)


def clean(line: str) -> str:
    """Return ``line`` without the marks that mails, Markdown tables and mpirun add around it."""
    return _PREFIX.sub("", line, count=1).replace("|", " ").strip()


def section_of(line: str) -> str | None:
    """Return the section that the heading ``line`` begins; None for any other line or section."""
    return next((name for name, pattern in _SECTIONS if pattern.match(line)), LOADED if CURVE.match(line) else None)


@dataclass(frozen=True, slots=True)
class Options:
    """A command line of MLC: its mode, and its single-letter options with the values attached to them."""

    mode: str = ""
    letters: tuple[tuple[str, str], ...] = ()

    @property
    def section(self) -> str | None:
        return _MODES.get(self.mode)

    def has(self, letter: str) -> bool:
        return any(name == letter for name, _ in self.letters)

    def value(self, letter: str) -> str:
        """Return the value after ``-letter``; empty if there is none."""
        return next((value for name, value in reversed(self.letters) if name == letter), "")

    @property
    def buffer(self) -> str | None:
        """Return the bytes of -b (plain numbers are KiB), if it is given."""
        size = _SIZE.fullmatch(self.value("b"))
        return str(int(size[1]) * _KIBIBYTES[size[2].upper()] * 1024) if size else None

    @property
    def mix(self) -> str | None:
        """Return the shares of reads and writes that -W requests."""
        code = self.value("W")
        return _WRITE_MIXES.get(code, f"W{code}") if code and not self.has("R") else None

    @property
    def others(self) -> str:
        """Return the options that distinguish runs of the same mode: all but duration and verbosity."""
        return " ".join(sorted({f"-{name}{value}" for name, value in self.letters if name not in "tvB"}))[:200]


def options(words: Sequence[str]) -> Options:
    """Return the options in ``words``."""
    mode, letters = "", []
    for word in words[:200]:
        if word.startswith("--"):
            mode = word[2:42].lower()
        elif word.startswith("-") and len(word) > 1:
            bare = word[1:].lower()
            if bare in _MODES:  # Intel's own articles write modes with one dash
                mode = bare
            else:
                letters.append((word[1], word[2:82]))
    return Options(mode, tuple(letters))


def options_of(command: Sequence[str]) -> Options | None:
    """Return the options in an argument vector that runs MLC, through any wrapper; None if it runs another program."""
    words = " ".join(command)[:20_000]
    program = _PROGRAM.search(words)
    return (
        options(list(takewhile(lambda word: word.startswith("-"), words[program.end() :].split()))) if program else None
    )


def printed_buffer(match: re.Match[str]) -> str:
    """Return the bytes that MLC prints as BUFFER's match: the whole number of KiB with the most factors of two."""
    if match[2].upper() != "M":
        return str(round(float(match[1]) * 1024 * _KIBIBYTES[match[2].upper()]))
    near, decimals = round(float(match[1]) * 1024), len(match[1].partition(".")[2])
    candidates = [k for k in range(max(near - 1, 1), near + 2) if f"{k / 1024:.{decimals}f}" == match[1]]
    return str(max(candidates or [near], key=lambda k: k & -k) * 1024)


def placement(settings: Options, names: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Yield the labels that ``settings`` gives a figure, by the ``names`` of the options."""
    for letter, name in names.items():
        if value := settings.value(letter):
            yield name, value


def columns(line: str, drive: bool) -> tuple[str, tuple[str, ...]] | None:
    """Return the label of a matrix's rows (``from`` or ``cpu``), and the labels of its columns.

    ``drive``: whether the previous line said that the only column is a path to persistent memory.
    """
    corner = _CORNER.match(line)
    if not corner or not corner[3].strip():
        return None
    names = tuple(corner[3].split())
    if drive:
        names = (corner[3].strip()[:200],)
    elif not all(_NODE.fullmatch(name) for name in names) or len(set(names)) < len(names):
        return None
    return ("cpu" if corner[2].lower() == "cpu" else "from"), names


def row(line: str) -> tuple[str, list[str]] | None:
    """Return the node and the cells of a matrix's row."""
    head, *cells = line.split()
    return (str(int(head)), cells) if _NODE.fullmatch(head) and cells else None


def is_cell(word: str) -> bool:
    """Return whether ``word`` fills one column, even if it is not a number."""
    return word in NOTHING_HERE or bool(_NOT_FINITE.fullmatch(word) or re.fullmatch(r"-?[0-9][0-9.,]*", word))


def figure(word: str, exponent: int) -> float | None:
    """Return ``word`` times ten to the ``exponent``; None if it lacks the decimal point of all MLC figures."""
    return float(f"{word}e{exponent}") if _POINT.fullmatch(word) else None


def timed(words: str | None) -> tuple[str, int | None]:
    """Return the figure in brackets after a clock count, and the power of ten of its unit if it has one."""
    match = _TIMED.fullmatch(words or "")
    return (match[1], _EXPONENTS.get((match[2] or "").lower())) if match else (words or "", None)
