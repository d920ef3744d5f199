"""Suites: which workloads, with which settings and how often; by name (one workload's is a suite too) or by path."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field

from fleetmark.base import extensions
from fleetmark.base.errors import FleetmarkError, suggest
from workloads.manifest import HERE, _Part, load, names, read_model

SUITES = HERE / "suites"


class Choice(_Part):
    """One workload in a suite. ``cases`` are shell-style patterns over case names; none means all. ``hosts``: by the
    name of a case, which hosts run it: each one alone, or two as a pair; none means all, as parameters say.
    ``in_container``: the image in which its commands run, ``podman:IMAGE`` or ``docker:IMAGE``, or an image alone.
    """

    set: Mapping[str, Any] = {}
    cases: tuple[str, ...] = ()
    repeats: int | None = Field(default=None, ge=1)
    hosts: Mapping[str, tuple[tuple[str, ...], ...]] = {}
    in_container: Annotated[str, Field(pattern=r"^([A-Za-z0-9][A-Za-z0-9._/:@+-]{0,300})?$")] = ""

    def is_for(self, case: str, *hosts: str) -> bool:
        """Whether these hosts run the case, one alone or two together, in whatever order."""
        return not self.hosts or any(sorted(group) == sorted(hosts) for group in self.hosts.get(case, ()))


class Suite(_Part):
    """An ordered choice of workloads; ``repeats`` is the default for workloads without their own."""

    name: str
    about: str
    repeats: int = Field(default=3, ge=1)
    workloads: Mapping[str, Choice | None]

    def chosen(self) -> dict[str, Choice]:
        """Workload name to choice, in the suite's order; ``fio:`` with nothing behind it means all defaults."""
        return {name: choice or Choice() for name, choice in self.workloads.items()}


def suite_names() -> list[str]:
    """Return the names of the suites of Fleetmark and of other folders, sorted."""
    return sorted(suite_paths())


def suite_paths() -> dict[str, Path]:
    """Return the suites' names and files."""
    return extensions.gather("the suite", {p.stem: p for p in SUITES.glob("*.yml")}, "suites")


def load_suite(name: str) -> Suite:
    """The suite of that name, a suite of the one workload of that name with its defaults, or the suite in that YAML
    file; its workloads, parameters and values are checked here.

    Raises FleetmarkError naming the file and what is wrong in it.
    """
    if name in suite_names():
        path = suite_paths()[name]
    elif name.endswith((".yml", ".yaml")) or "/" in name:
        path = Path(name)
    elif name in names():
        return Suite(name=name, about=load(name).about, workloads={name: None})
    else:
        raise FleetmarkError(
            f"no suite {name!r}{suggest(name, [*suite_names(), *names()])}: there are {', '.join(suite_names())}; "
            "a workload's name (fleetmark workloads) is a suite of it alone; "
            "your own is named by its path, ending in .yml"
        )
    suite = read_model(path, Suite, name=path.stem)
    if not suite.workloads:
        raise FleetmarkError(f"{path}: workloads: names none; there is nothing to run")
    for workload, choice in suite.chosen().items():
        try:
            load(workload).check_settings(choice.set, f"{path}")
        except FleetmarkError as error:
            raise FleetmarkError(str(error) if str(path) in str(error) else f"{path}: {error}") from error
    return suite
