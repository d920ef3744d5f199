"""The one way to a terminal: what comes from outside is shown there, never obeyed, and no credentials."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import Any, TextIO

from rich.console import Console, ConsoleOptions, Group, RenderableType
from rich.segment import Segment
from rich.status import Status
from rich.text import Span, Text

from fleetmark.base.redact import redact
from fleetmark.base.visible import visible


class Terminal(Console):
    """A console whose text is never markup and never acts. Its own styles are the only escape sequences it writes."""

    def __init__(self, *, stderr: bool = False) -> None:
        super().__init__(
            file=_unguarded(sys.stderr if stderr else sys.stdout), markup=False, emoji=False, highlight=False
        )

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """All that is printed passes here, the cells of a table one by one: before lines are broken, and after."""
        if isinstance(renderable, str):
            renderable = shown(renderable)
        elif isinstance(renderable, Text) and shown(renderable.plain) != renderable.plain:
            renderable = _shown_in_style(renderable)
        for segment in super().render(renderable, options):
            yield segment if segment.control else Segment(visible(segment.text), segment.style)

    def status(self, status: RenderableType, **more: Any) -> Status:
        """As rich does it, but a string is no markup."""
        return super().status(Text(status) if isinstance(status, str) else status, **more)

    def print(self, *objects: Any, **more: Any) -> None:
        """As rich does it, but a line that is ``unwrapped`` is not cut at the terminal's width."""
        # Alone, since rich joins texts into one that may be broken.
        parts = [Group(o) if isinstance(o, Text) and o.no_wrap else o for o in objects]
        super().print(*parts, **{"crop": False, **more})


def unwrapped(text: str, style: str = "") -> Text:
    """A line that only the terminal breaks, so that a command in it can be copied and pasted."""
    return Text(text, style=style, no_wrap=True, overflow="ignore")


def shown(text: str) -> str:
    """``text`` as a terminal may have it."""
    return visible(redact(text))


def _shown_in_style(text: Text) -> Text:
    clean = text.blank_copy(shown(text.plain))

    def place(at: int) -> int:
        return len(shown(text.plain[:at]))

    clean.spans = [Span(place(span.start), place(span.end), span.style) for span in text.spans]
    return clean


def guard() -> None:
    """From here on all that this program writes is shown: what its libraries warn of and how it was misused, too."""
    sys.stdout, sys.stderr = _Guarded(sys.stdout), _Guarded(sys.stderr)


class _Guarded:
    """A text stream that shows what is written to it."""

    def __init__(self, stream: TextIO) -> None:
        self.rich_proxied_file = _unguarded(stream)
        # A character that the terminal's encoding lacks is no reason to end.
        self.rich_proxied_file.reconfigure(errors="backslashreplace")  # type: ignore[attr-defined]

    def write(self, text: str) -> int:
        self.rich_proxied_file.write(shown(text))
        return len(text)

    def __getattr__(self, name: str) -> Any:
        if name == "buffer":  # click would write to it past us
            raise AttributeError(name)
        return getattr(self.rich_proxied_file, name)


def _unguarded(stream: Any) -> TextIO:
    """The stream behind a guard, for a console that has shown its text already; rich names it so in its own proxies."""
    while inner := getattr(stream, "rich_proxied_file", None):
        stream = inner
    return stream  # type: ignore[no-any-return]
