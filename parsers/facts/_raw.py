"""Access a document of facts. Each missing source adds a note with advice."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from fleetmark.base.errors import ParseError
from fleetmark.parsers.facts._document import damaged
from fleetmark.parsers.kit.text import dig

_Fact = TypeVar("_Fact", bound=BaseModel)

# For each command, the facts that are unknown without it, and the package that contains it.
_SOURCES = {
    "lscpu": ("Some CPU details are", "util-linux"),
    "dmidecode": ("DIMMs are", "dmidecode"),
    "lsblk": ("Disks are", "util-linux"),
    "lspci": ("Names of PCI devices are", "pciutils"),
    "ip": ("Addresses are", "iproute2"),
}


@dataclass(frozen=True)
class Raw:
    """One host's checked document; ``notes`` collects a sentence for each unreadable source."""

    doc: Mapping[str, Any]
    notes: list[str] = field(default_factory=list)

    def fact(
        self, model: type[_Fact], subject: str, values: Mapping[str, Any], must: Sequence[str] = ()
    ) -> _Fact | None:
        """Return ``model`` of ``values``.

        Impossible values are removed with a note. Return None if a required one is impossible.

        ``must``: fields that decide which cases run. Raise FleetmarkError if one of them is impossible.
        """
        try:
            return model(**values)
        except ValidationError as error:
            wrong = dict.fromkeys(str(e["loc"][0]) for e in error.errors(include_url=False))
            if wrong.keys() & {*must}:
                raise damaged(error, subject) from None
        self.notes.append(f"{subject[:80]}: the host's values of {', '.join(wrong)} are impossible and left out.")
        if any(model.model_fields[name].is_required() for name in wrong):
            return None
        return model(**{name: value for name, value in values.items() if name not in wrong})

    def file(self, path: str) -> str | None:
        """Return the text of a file without surrounding space, or None if the host does not have it."""
        text = dig(self.doc, "files", path)
        return text.strip() if isinstance(text, str) else None

    def files(self) -> dict[str, str]:
        """Return the text of every file by path."""
        return {k: v for k, v in self.table("files").items() if isinstance(v, str)}

    def table(self, *path: str) -> dict[str, Any]:
        """Return the object at ``path``, or an empty one if there is none."""
        value = dig(self.doc, *path)
        return value if isinstance(value, dict) else {}

    def shares(self, name: str) -> dict[str, int]:
        """Return the number of CPUs or devices by their value."""
        return {k: v for k, v in self.table("counted", name).items() if isinstance(v, int)}

    def out(self, command: str) -> str | None:
        """Return a command's output, or None if the command was absent or gave no answer."""
        return dig(self.doc, "commands", command, "out") if self.error(command) is None else None

    def error(self, command: str) -> str | None:
        """Return why a command gave no answer: ``not found``, ``needs root``, or the error; None if it succeeded."""
        answer = self.table("commands", command)
        if isinstance(answer.get("rc"), int) and isinstance(answer.get("out"), str):
            return None
        return str(answer.get("err") or "not found")

    def parsed(self, command: str, parse: Callable[[bytes], dict[str, Any]]) -> dict[str, Any] | None:
        """Return the command's parsed answer, or None and add a note if it cannot be read."""
        subject, package = _SOURCES.get(command, (f"The output of {command} is", command))
        error = self.error(command)
        if error == "not found":
            self.notes.append(f"{subject} unknown: {command} is not installed; install the package {package}.")
            return None
        if error == "needs root":
            self.notes.append(f"{subject} unknown: {command} needs root; gather facts as root (--become).")
            return None
        if error is not None:
            self.notes.append(f"{subject} unknown: {command} gave {error}; run it on the host by hand to see why.")
            return None
        try:
            return parse((self.out(command) or "").encode("utf-8", "replace"))
        except ParseError as problem:
            errors = str(dig(self.doc, "commands", command, "err") or "").strip().splitlines()
            reason = errors[0] if errors else f"got {problem.got!r}"
            self.notes.append(
                f"{subject} unknown: {command} did not print {problem.expected} ({reason}); run it on the host."
            )
            return None
