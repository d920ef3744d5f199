"""Write all terminal output without control sequences from outside, and with credentials redacted."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import Any, TextIO

from rich.console import Console, ConsoleOptions, Group, RenderableType
from rich.segment import Segment
from rich.status import Status
from rich.text import Span, Text

from fleetmark.base.lines import breaks, spaceless
from fleetmark.base.redact import redact
from fleetmark.base.visible import visible


class Terminal(Console):
    """Print text without interpreting markup or escape sequences. Only the console's own styles use such sequences."""

    def __init__(self, *, stderr: bool = False) -> None:
        super().__init__(
            file=_unguarded(sys.stderr if stderr else sys.stdout), markup=False, emoji=False, highlight=False
        )

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """Clean every renderable, including each table cell, before and after line breaking."""
        if isinstance(renderable, str):
            renderable = shown(renderable)
        elif isinstance(renderable, Text) and shown(renderable.plain) != renderable.plain:
            renderable = _shown_in_style(renderable)
        if isinstance(renderable, Text) and not renderable.no_wrap and spaceless(renderable.plain):
            renderable = _broken(renderable, (options or self.options).max_width)
        for segment in super().render(renderable, options):
            yield segment if segment.control else Segment(visible(segment.text), segment.style)

    def status(self, status: RenderableType, **options: Any) -> Status:
        """Show a status as rich does, but without markup in strings, and without a thread if there is no terminal."""
        if not self.is_terminal:
            return _Unseen(Text(""), console=self)
        return super().status(Text(status) if isinstance(status, str) else status, **options)

    def print(self, *objects: Any, **options: Any) -> None:
        """Print as rich does, but do not cut ``unwrapped`` lines at the terminal's width."""
        # Put each line into its own group, since rich would join texts and wrap the result.
        parts = [Group(o) if isinstance(o, Text) and o.no_wrap else o for o in objects]
        super().print(*parts, **{"crop": False, **options})


class _Unseen(Status):
    """Replace a status without showing it."""

    def start(self) -> None:
        pass

    def stop(self) -> None:
        pass


def unwrapped(text: str, style: str = "") -> Text:
    """Return a line that is never wrapped, so that users can copy the command in it."""
    return Text(text, style=style, no_wrap=True, overflow="ignore")


def shown(text: str) -> str:
    """Return ``text`` without credentials and control characters."""
    return visible(redact(text))


def _shown_in_style(text: Text) -> Text:
    clean = text.blank_copy(shown(text.plain))

    def place(offset: int) -> int:
        return len(shown(text.plain[:offset]))

    clean.spans = [Span(place(span.start), place(span.end), span.style) for span in text.spans]
    return clean


def _broken(text: Text, width: int) -> Text:
    """Break lines of a script without spaces, because rich breaks lines only at spaces."""
    lines = []
    for line in text.split(allow_blank=True):
        for part in line.divide(breaks(line.plain, width)):
            part.rstrip()
            lines.append(part)
    return text.blank_copy("\n").join(lines)


def guard() -> None:
    """Clean all further output of this process, including warnings of libraries and usage errors."""
    sys.stdout, sys.stderr = _Guarded(sys.stdout), _Guarded(sys.stderr)


class _Guarded:
    """Clean all text that is written to a stream."""

    def __init__(self, stream: TextIO) -> None:
        self.rich_proxied_file = _unguarded(stream)
        # A character missing in the terminal's encoding must not end the program.
        self.rich_proxied_file.reconfigure(errors="backslashreplace")  # type: ignore[attr-defined]

    def write(self, text: str) -> int:
        self.rich_proxied_file.write(shown(text))
        return len(text)

    def __getattr__(self, name: str) -> Any:
        if name == "buffer":  # click would write to it directly
            raise AttributeError(name)
        return getattr(self.rich_proxied_file, name)


def _unguarded(stream: Any) -> TextIO:
    """Return the stream behind a guard, for a console that cleans its own text. Rich defines the attribute's name."""
    while inner := getattr(stream, "rich_proxied_file", None):
        stream = inner
    return stream  # type: ignore[no-any-return]
