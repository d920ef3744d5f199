"""Reads a config file as SPEC's tools do, far enough to detect mistakes. It is beside the stand-in's runcpu."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterable
from pathlib import Path

MARK = "\n__HASH__\n"


class Wrong(Exception):
    """What ends runcpu before it runs anything."""


class Config:
    """Sections (who, tune, settings), and what runcpu itself has noted below __HASH__: what it built, and out of what."""

    def __init__(self, path: Path, sections: Iterable[str]) -> None:
        self.path, self.names = path, set(sections)
        self.macros: dict[str, str] = {}
        self.sections: list[tuple[set[str], str, dict[str, str]]] = [({"default"}, "default", {})]
        if not path.is_file():
            raise Wrong(f"The config file '{path}' does not exist")
        if not os.access(path, os.W_OK):
            raise Wrong(f"The config file '{path}' cannot be written: what is built is noted in it")
        self.text, _, noted = path.read_text().partition(MARK)
        self.built = dict(re.findall(r"^(\S+=\w+)=\S+:\n#.*\nopthash=(\w+)$", noted, re.MULTILINE))
        self._read()

    @property
    def label(self) -> str:
        return self.sections[0][2].get("label", "none")

    def _read(self) -> None:
        live = [True]
        for number, raw in enumerate(self.text.replace("\\\n", "").splitlines(), 1):
            if raw.startswith("%"):
                self._directive(raw[1:].split(), live, number)
            elif all(live):
                line = re.sub(r"%\{(\w+)\}", lambda m: self.macros.get(m[1], ""), raw)
                line = re.sub(r"(^|\s)#.*", "", line).strip()
                if line:
                    self._line(line, number)

    def _directive(self, words: list[str], live: list[bool], number: int) -> None:
        if words[0] in ("ifdef", "ifndef"):
            live.append((words[1].strip("%{}") in self.macros) == (words[0] == "ifdef"))
        elif words[0] == "else":
            live[-1] = not live[-1]
        elif words[0] == "endif":
            live.pop()
        elif words[0] != "define":
            raise Wrong(f"line {number} of the config file: unknown preprocessor directive '{words[0]}'")
        elif all(live):
            self.macros[words[1]] = " ".join(words[2:])

    def _line(self, line: str, number: int) -> None:
        if match := re.fullmatch(r"([\w.,-]+)(?:=(\w+))?(?:=[\w.-]+)?:", line):
            names = set(match[1].split(","))
            if unknown := names - self.names:
                raise Wrong(f"line {number} of the config file: unknown section specifier '{', '.join(unknown)}'")
            if match[2] not in (None, "default", "base", "peak"):
                raise Wrong(f"line {number} of the config file: unknown tuning level '{match[2]}'")
            self.sections.append((names, match[2] or "default", {}))
        elif match := re.fullmatch(r"(\w+)\s*\+?=\s*(.*)", line):
            self.sections[-1][2][match[1]] = match[2]
        else:
            raise Wrong(f"line {number} of the config file makes no sense: '{line}'")

    def options(self, benchmark: str, tune: str, sets: Iterable[str]) -> dict[str, str]:
        """Return the settings of a benchmark. Its section has priority over those of its sets, and these over the rest."""
        chosen: dict[str, str] = {}
        for rank in ({"default"}, set(sets), {benchmark}):
            for level in ("default", tune):
                for names, its, settings in self.sections:
                    if its == level and names & rank:
                        chosen |= settings
        return chosen

    def note(self, benchmark: str, tune: str, opthash: str) -> None:
        self.built[f"{benchmark}={tune}"] = opthash
        stamp = time.strftime("%Y-%m-%d %H:%M:%S")
        noted = [f"{key}={self.label}:\n# Last updated {stamp}\nopthash={h}\n" for key, h in self.built.items()]
        self.path.write_text(self.text + MARK + "\n".join(noted))
