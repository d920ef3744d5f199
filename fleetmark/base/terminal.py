"""All output to a terminal passes here: text from outside is shown and never acts, and credentials are redacted."""

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
    """A console whose text is never markup and never acts. Its own styles are the only escape sequences it writes."""

    def __init__(self, *, stderr: bool = False) -> None:
        super().__init__(
            file=_unguarded(sys.stderr if stderr else sys.stdout), markup=False, emoji=False, highlight=False
        )

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """Clean every renderable, each cell of a table included, before lines are broken and after."""
        if isinstance(renderable, str):
            renderable = shown(renderable)
        elif isinstance(renderable, Text) and shown(renderable.plain) != renderable.plain:
            renderable = _shown_in_style(renderable)
        if isinstance(renderable, Text) and not renderable.no_wrap and spaceless(renderable.plain):
            renderable = _broken(renderable, (options or self.options).max_width)
        for segment in super().render(renderable, options):
            yield segment if segment.control else Segment(visible(segment.text), segment.style)

    def status(self, status: RenderableType, **more: Any) -> Status:
        """As in rich, but a string is no markup, and where nobody sees it no thread draws it."""
        if not self.is_terminal:
            return _Unseen(Text(""), console=self)
        return super().status(Text(status) if isinstance(status, str) else status, **more)

    def print(self, *objects: Any, **more: Any) -> None:
        """As in rich, but an ``unwrapped`` line is not cut at the terminal's width."""
        # Each in a group of its own, since rich joins texts into one that it may wrap.
        parts = [Group(o) if isinstance(o, Text) and o.no_wrap else o for o in objects]
        super().print(*parts, **{"crop": False, **more})


class _Unseen(Status):
    """A status that is never shown."""

    def start(self) -> None:
        pass

    def stop(self) -> None:
        pass


def unwrapped(text: str, style: str = "") -> Text:
    """A line that Fleetmark never wraps, so that a command in it can be copied and pasted."""
    return Text(text, style=style, no_wrap=True, overflow="ignore")


def shown(text: str) -> str:
    """``text`` without credentials and acting characters."""
    return visible(redact(text))


def _shown_in_style(text: Text) -> Text:
    clean = text.blank_copy(shown(text.plain))

    def place(offset: int) -> int:
        return len(shown(text.plain[:offset]))

    clean.spans = [Span(place(span.start), place(span.end), span.style) for span in text.spans]
    return clean


def _broken(text: Text, width: int) -> Text:
    """Lines of a script without spaces, which rich breaks at spaces only."""
    lines = []
    for line in text.split(allow_blank=True):
        for part in line.divide(breaks(line.plain, width)):
            part.rstrip()
            lines.append(part)
    return text.blank_copy("\n").join(lines)


def guard() -> None:
    """Clean all that this process writes from now on, warnings of libraries and usage errors included."""
    sys.stdout, sys.stderr = _Guarded(sys.stdout), _Guarded(sys.stderr)


class _Guarded:
    """A text stream that cleans what is written to it."""

    def __init__(self, stream: TextIO) -> None:
        self.rich_proxied_file = _unguarded(stream)
        # A character that the terminal's encoding lacks must not end the program.
        self.rich_proxied_file.reconfigure(errors="backslashreplace")  # type: ignore[attr-defined]

    def write(self, text: str) -> int:
        self.rich_proxied_file.write(shown(text))
        return len(text)

    def __getattr__(self, name: str) -> Any:
        if name == "buffer":  # click would write to it directly
            raise AttributeError(name)
        return getattr(self.rich_proxied_file, name)


def _unguarded(stream: Any) -> TextIO:
    """The stream behind a guard, for a console that cleans its text itself. The attribute's name is that of rich."""
    while inner := getattr(stream, "rich_proxied_file", None):
        stream = inner
    return stream  # type: ignore[no-any-return]
