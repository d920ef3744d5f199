"""Define help texts: commands in groups with complete sentences, and one example per line."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, get_args, get_origin, get_type_hints

import typer
from typer.core import TyperCommand, TyperGroup
from typer.models import ArgumentInfo, OptionInfo

from fleetmark.base.errors import FleetmarkError

_EXAMPLES = re.compile(r"Examples?: (.*)", re.DOTALL)
_VALUES = {str: "TEXT", int: "N", float: "NUMBER", Path: "PATH"}
FIRST_DAY = """\
Fleetmark measures and compares servers. Start with these three commands:

  {program} run                           measure this machine (about six minutes)
  {program} hosts -i hosts.yml            see which hosts answer, and what would run on them
  {program} run -i hosts.yml -s standard  measure a fleet

All verbs: {program} --help
"""


# Former names of verbs and options, which may still be used in scripts.
_RENAMED_VERBS = {"tuning": "tune --campaign CAMPAIGN", "baseline": "reference"}
_RENAMED_OPTIONS = {
    ("diagnose", "--against"): "--reference",
    ("gate", "--hosts"): "--limit",
    ("history", "--host"): "--limit",
    ("import", "--machine"): "--name",
    ("profile", "--select"): "--limit",
    ("run", "--plan"): "-o",
}


class Verb(TyperCommand):
    """Show each example of a docstring that ends with ``Examples: a; b`` on its own line of the help."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the arguments. Raise FleetmarkError for an option that was renamed."""
        for word in args:
            name = word.partition("=")[0]
            if word == "--":
                break
            if (now := _RENAMED_OPTIONS.get((str(self.name), name))) and not self._has(name):
                raise FleetmarkError(f"{self.name} {name} is called {now} now; see fleetmark {self.name} --help")
        return super().parse_args(ctx, args)

    def _has(self, option: str) -> bool:
        return any(option in parameter.opts for parameter in self.params)

    def format_help_text(self, ctx: typer.Context, formatter: Any) -> None:  # type: ignore[override]
        """Write the description and the examples."""
        match = _EXAMPLES.search(self.help or "")
        for paragraph in (self.help or "")[: match.start() if match else None].strip().split("\n\n"):
            formatter.write_paragraph()
            with formatter.indentation():
                formatter.write_text(" ".join(paragraph.split()))
        if match:
            with formatter.section("Examples"):
                for example in examples(match[1]):
                    formatter.write(f"{'':>{formatter.current_indent}}{example}\n")


def examples(text: str) -> list[str]:
    """Return the commands of a text such as ``fleetmark run; fleetmark hosts``."""
    return [" ".join(part.split()) for part in re.split(r";\s+(?=fleetmark )", text.strip())]


class Verbs(TyperGroup):
    """A group of commands.

    Its help lists the commands under headings, each with the first sentence of its docstring. ``default`` is the
    command to run if the first argument is not a command, such as ``plan solve`` for ``plan FILE``.
    """

    default = ""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Insert the default command before arguments that do not begin with a command."""
        named = bool(args) and args[0] in (*self.commands, *ctx.help_option_names)
        if self.default and not named and (args or not self.no_args_is_help):
            args = [self.default, *args]
        return super().parse_args(ctx, args)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Return the command that the arguments name. Raise FleetmarkError for a verb that was renamed."""
        if args and args[0] not in self.commands and (now := _RENAMED_VERBS.get(args[0])):
            raise FleetmarkError(f"{args[0]} is called `fleetmark {now}` now; see fleetmark {now.split()[0]} --help")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: typer.Context, formatter: Any) -> None:  # type: ignore[override]
        """Write the commands under the heading of their group (``rich_help_panel``), in order of definition."""
        groups: dict[str, list[tuple[str, str]]] = {}
        for name, command in self.commands.items():
            sentence = re.split(r"(?<=\.)\s", " ".join((command.help or "").split()), maxsplit=1)[0]
            panel = getattr(command, "rich_help_panel", None)
            groups.setdefault(panel if isinstance(panel, str) else "Commands", []).append((name, sentence))
        for heading, rows in groups.items():
            with formatter.section(heading):
                formatter.write_dl(rows)


class App(typer.Typer):
    """A Typer application of Verbs. ``default`` is as in ``Verbs``."""

    def __init__(self, default: str = "", **options: Any) -> None:
        group = type("Verbs", (Verbs,), {"default": default}) if default else Verbs
        super().__init__(cls=group, rich_markup_mode=None, **options)

    def command(self, name: str | None = None, **options: Any) -> Callable[[Any], Any]:
        """Define a command of class Verb. ``rich_help_panel`` is its heading in the help of the group."""
        register = super().command(name, cls=Verb, **options)

        def named(function: Any) -> Any:
            _name_values(function)
            return register(function)

        return named


def _name_values(function: Any) -> None:
    """Give each option of a command a placeholder for its value, such as ``PATH``, and each argument its name."""
    hints = get_type_hints(function, include_extras=True)
    for name, hint in hints.items():
        type_, *details = get_args(hint) if get_origin(hint) is Annotated else (hint,)
        for detail in details:
            if isinstance(detail, ArgumentInfo) and detail.metavar is None:
                detail.metavar = name.rstrip("_").upper()
            elif isinstance(detail, OptionInfo) and detail.metavar is None:
                words = (word for kind, word in _VALUES.items() if kind in {type_, *get_args(type_), *_items(type_)})
                detail.metavar = next(words, None)
    function.__annotations__ = hints  # the options now have placeholders


def _items(type_: Any) -> set[Any]:
    """Return the types of the items if ``type_`` is a list, or the union of a list and None."""
    return {item for part in get_args(type_) for item in get_args(part)}
