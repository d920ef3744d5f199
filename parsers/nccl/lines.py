"""Read lines that passed through a launcher: which process printed each line, and the launcher's own messages."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from fleetmark.parsers.kit.text import numbered

_MOST_MARKS = 64
_LONGEST = 2000  # maximum characters of a line; mpirun pads some lines to 400
_STAMP = re.compile(
    r"\s{0,8}(?:"
    r"\[?[0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9]{2}:[0-9]{2}:[0-9]{2}(?:[.,][0-9]{1,9})?(?:Z|[+-][0-9]{2}:?[0-9]{2})?\]?\s"
    r"|[A-Z][a-z]{2} [A-Z][a-z]{2} [ 0-9][0-9] [0-9]{2}:[0-9]{2}:[0-9]{2} [0-9]{4}(?:(?=\[)|<std(?:out|err)>:))"
)
_RANK = re.compile(
    r"\s{0,8}(?:"
    r"\[[^\]\s]{0,80}?,(?P<tagged>[0-9]{1,7})\](?:<std(?:out|err|diag)>)?:?"  # mpirun --tag-output
    r"|(?P<labelled>[0-9]{1,7}):(?=\s|$|#)"  # srun -l
    r"|\[(?P<prepended>[0-9]{1,7})\](?=\s)"  # mpiexec -prepend-rank
    r") ?"
)
# Benchmark lines with a number sign. A prefix before it on several lines is a launcher's mark.
_MARKED = re.compile(
    r"(?!#)(?P<mark>\S.{0,120}?)\s{0,8}#\s+(?:nThread|Using devices|size\s+count|[nr]ccl-tests version|Collective test"
    r"|Rank\s+[0-9]|Out of bounds|Avg bus)"
)
# Error words of launchers, loaders, shells and schedulers.
_LAUNCHER = re.compile(
    r"\b(?:error|fail(?:ed|ure)|unable to|not found|no such file|permission denied|cannot|could not|refused|invalid"
    r"|abort(?:ed|ing)?|killed|cancell?ed|not enough|timed? ?out|segmentation fault|out of memory|oom.kill|bus error"
    r"|signal [0-9]{1,2}|unrecognized|not recogni[sz]ed|requested (?:but|more)|exit(?:ed)? (?:code|status|with)"
    r"|core dumped)\b|^Abort\(",
    re.IGNORECASE,
)
# Fragments of JSON. The files of -J contain the environment, so similar text is neither read nor quoted.
_JSON = re.compile(r'"\s{0,8}:\s{0,8}[\["{0-9tfn-]|^\s{0,80}"[^"]{0,1990}"?,?$|","[A-Za-z_]\w{0,80}=')
_LOG = re.compile(r"\bNCCL (?:INFO|TRACE|VERSION)\b")


@dataclass(frozen=True, slots=True)
class Line:
    """One line: its number, its process ("" without a mark), the text without the mark, and the raw line."""

    n: int
    source: str
    text: str
    raw: str


def lines(text: str) -> list[Line]:
    """Return the lines of ``text`` without launchers' prefixes.

    Lines too long for any tool and fragments of JSON are omitted.
    """
    raw_lines = [(n, raw.rstrip()) for n, raw in numbered(text)]
    raw_lines = [(n, raw) for n, raw in raw_lines if len(raw) <= _LONGEST and not _JSON.search(raw)]
    split = [(n, *_split(raw), raw) for n, raw in raw_lines]
    marks = Counter(m["mark"].strip() for _, _, rest, _ in split if (m := _MARKED.match(rest.lstrip())))
    known_marks = sorted((mark for mark, times in marks.most_common(_MOST_MARKS) if times > 1), key=len, reverse=True)
    return [_take_off(n, source, rest, raw, known_marks) for n, source, rest, raw in split]


def _split(raw: str) -> tuple[str, str]:
    rest = raw
    if stamp := _STAMP.match(rest):
        rest = rest[stamp.end() :]
    source = ""
    while (rank := _RANK.match(rest)) and rank.end():
        source = source or rank["tagged"] or rank["labelled"] or rank["prepended"]
        rest = rest[rank.end() :]
    return source, rest


def _take_off(n: int, source: str, rest: str, raw: str, marks: list[str]) -> Line:
    bare = rest.lstrip()
    for mark in marks:
        if bare.startswith(mark):
            inner, rest = _split(bare[len(mark) :])
            return Line(n, inner or source or mark, rest, raw)
    return Line(n, source, rest, raw)


def complaint(output: list[Line], after: int = 0) -> Line | None:
    """Return the first line after line ``after`` in which a launcher, loader or shell reports an error."""
    return next(complaints(output, after), None)


def complaints(output: list[Line], after: int = 0) -> Iterator[Line]:
    for line in output:
        if line.n > after and _LAUNCHER.search(line.text) and not _LOG.search(line.text) and line.text[:1] != "#":
            yield line
