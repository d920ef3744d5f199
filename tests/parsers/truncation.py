"""Output cut off at any byte: which figures a parser then loses or changes without saying that its text is cut."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from fleetmark import parsers
from fleetmark.base.errors import ParseError
from fleetmark.base.measurement import Parsed


@dataclass(frozen=True, slots=True)
class Loss:
    """A cut that stays valid, though the figures are not those of the uncut text."""

    size: int  # bytes kept
    line: int  # the line that the cut falls into, or the last whole one before it
    at_line_end: bool  # nothing but blanks follows the last whole line
    difference: str

    def __str__(self) -> str:
        place = "after" if self.at_line_end else "inside"
        return f"cut {place} line {self.line} (byte {self.size}): {self.difference}"


def cuts(raw: bytes, *, inside: int = 100, tail: int = 400) -> list[int]:
    """Where to cut ``raw``: after every line, at each of the last ``tail`` bytes, at ``inside`` places spread evenly."""
    size = len(raw)
    line_ends = [n for n, byte in enumerate(raw[:-1], 1) if byte == 0x0A]
    spread = [size * n // (inside + 1) for n in range(1, inside + 1)]
    return sorted({*line_ends, *range(max(size - tail, 0), size), *spread})


def lost_figures(tool: str, raw: bytes, command: Sequence[str] = (), sizes: Iterable[int] | None = None) -> list[Loss]:
    """The cuts of ``raw`` after which ``tool``'s parser calls other figures valid than those of the whole.

    A cut is in order when it gives a ParseError, or is ``invalid``, or has exactly the figures of the uncut text and
    that is valid too. ``sizes`` are the numbers of bytes to keep, by default ``cuts(raw)``.
    """
    uncut = _parsed(tool, raw, command)
    losses = []
    for size in cuts(raw) if sizes is None else sizes:
        cut = _parsed(tool, raw[:size], command)
        if cut is None or cut.invalid or (uncut and not uncut.invalid and _figures(cut) == _figures(uncut)):
            continue
        at_line_end = raw[:size].rstrip(b" \t").endswith(b"\n")
        line = raw.count(b"\n", 0, size) + (not at_line_end)
        losses.append(Loss(size, line, at_line_end, _difference(uncut, cut)))
    return losses


def _parsed(tool: str, raw: bytes, command: Sequence[str]) -> Parsed | None:
    try:
        return parsers.parse(tool, raw, command)
    except ParseError:
        return None


def _figures(parsed: Parsed) -> Counter[tuple[object, ...]]:
    """Every figure with its full identity; a measurement may occur several times, as a repeat."""
    return Counter(
        (m.workload, m.case, m.metric, m.subject, *sorted(m.labels.items()), m.unit, m.better, m.value)
        for m in parsed.measurements
    )


def _difference(uncut: Parsed | None, cut: Parsed) -> str:
    if uncut is None:
        return f"{len(cut.measurements)} figures, where the whole text has none"
    lost, gained = _figures(uncut) - _figures(cut), _figures(cut) - _figures(uncut)
    if not lost and not gained:
        return f"valid, where the whole text is not: {uncut.invalid}"
    example = next(iter(lost or gained))
    return f"{lost.total()} of {len(uncut.measurements)} figures lost, {gained.total()} new or changed ({example[1:]})"
