"""Suites: which workloads, with which settings and how often; by name (one workload's is a suite too) or by path."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field, ValidationError

from fleetmark.base import extensions
from fleetmark.base.errors import FleetmarkError, suggest
from workloads import condition
from workloads.manifest import HERE, _Part, load, names, read_model
from workloads.misfit import misfit
from workloads.variant import is_entry, workload_of

SUITES = HERE / "suites"


class Choice(_Part):
    """One workload in a suite. ``cases`` are shell-style patterns over case names; none means all. ``hosts``: by the
    name of a case, which hosts run it: each one alone, or two as a pair; none means all, as parameters say.
    ``in_container``: the image in which its commands run, ``podman:IMAGE`` or ``docker:IMAGE``, or an image alone.
    ``where``: the condition that a host must meet (``workloads.condition``).
    """

    set: Mapping[str, Any] = {}
    cases: tuple[str, ...] = ()
    repeats: int | None = Field(default=None, ge=1)
    hosts: Mapping[str, tuple[tuple[str, ...], ...]] = {}
    in_container: Annotated[str, Field(pattern=r"^([A-Za-z0-9][A-Za-z0-9._/:@+-]{0,300})?$")] = ""
    where: str = ""

    def is_for(self, case: str, *hosts: str) -> bool:
        """Whether these hosts run the case, one alone or two together, in whatever order."""
        return not self.hosts or any(sorted(group) == sorted(hosts) for group in self.hosts.get(case, ()))


class Suite(_Part):
    """An ordered choice of workloads; ``repeats`` is the default for workloads without their own. A key of
    ``workloads`` is a workload, or a variant of one (``fio@large``).

    ``include`` (other suites, which run first) and ``where`` (a condition for all workloads) are for files:
    ``load_suite`` resolves them, so a loaded suite has neither.
    """

    name: str
    about: str
    repeats: int = Field(default=3, ge=1)
    include: tuple[str, ...] = ()
    where: str = ""
    workloads: Mapping[str, Choice | None] = {}

    def chosen(self) -> dict[str, Choice]:
        """Workload or variant to choice, in the suite's order; ``fio:`` with nothing behind it means all defaults."""
        return {name: choice or Choice() for name, choice in self.workloads.items()}


def suite_names() -> list[str]:
    """Return the names of the suites of Fleetmark and of other folders, sorted."""
    return sorted(suite_paths())


def suite_paths() -> dict[str, Path]:
    """Return the suites' names and files."""
    return extensions.gather("the suite", {p.stem: p for p in SUITES.glob("*.yml")}, "suites")


def load_suite(name: str) -> Suite:
    """The suite of that name, a suite of the one workload of that name with its defaults, or the suite in that YAML
    file, with all that it includes; its workloads, parameters, values and conditions are checked here.

    Raises FleetmarkError naming the file and what is wrong in it.
    """
    return _load(name, Path(), ())


def suite_from(document: Mapping[str, Any], name: str) -> Suite:
    """Return the suite that ``document`` describes, as a file of that name would. Raises FleetmarkError as one does."""
    try:
        suite = Suite.model_validate({"name": name, **document})
    except ValidationError as error:
        raise FleetmarkError(f"{name}: {misfit(error, Suite)}") from error
    _check(suite, Path(name))
    return suite


def _load(name: str, folder: Path, within: tuple[Path, ...]) -> Suite:
    """The suite ``name``, as it is called from ``folder`` and included by the files ``within``, outermost first."""
    path = _path(name, folder)
    if path is None:
        return Suite(name=name, about=load(name).about, workloads={name: None})
    if path in within:
        circle = " > ".join(p.name for p in (*within[within.index(path) :], path))
        raise FleetmarkError(f"{path}: include: the suites include each other ({circle}); remove one include")
    suite = read_model(path, Suite, name=path.stem)
    _check(suite, path)
    included = [_load(other, path.parent, (*within, path)) for other in suite.include]
    workloads = _merged(suite, included)
    if not workloads:
        raise FleetmarkError(f"{path}: workloads: names none; there is nothing to run")
    return Suite(name=suite.name, about=suite.about, repeats=suite.repeats, workloads=workloads)


def _path(name: str, folder: Path) -> Path | None:
    """The file of the suite ``name``; None for a workload's name."""
    if name in suite_names():
        return suite_paths()[name]
    if name.endswith((".yml", ".yaml")) or "/" in name:
        return folder / name
    if name in names():
        return None
    raise FleetmarkError(
        f"no suite {name!r}{suggest(name, [*suite_names(), *names()])}: there are {', '.join(suite_names())}; "
        "a workload's name (fleetmark workloads) is a suite of it alone; "
        "your own is named by its path, ending in .yml"
    )


def _check(suite: Suite, path: Path) -> None:
    """Raise FleetmarkError for an unknown workload, a bad setting or a bad condition."""
    condition.check(suite.where, f"{path}")
    for entry, choice in suite.chosen().items():
        if not is_entry(entry):
            raise FleetmarkError(
                f"{path}: workloads: {entry!r} is no name; write a workload, or WORKLOAD@VARIANT with a variant of "
                "at most 32 letters, digits, - and _"
            )
        try:
            load(workload_of(entry)).check_settings(choice.set, f"{path}")
            condition.check(choice.where, f"{path}: {entry}")
        except FleetmarkError as error:
            raise FleetmarkError(str(error) if str(path) in str(error) else f"{path}: {error}") from error


def _merged(suite: Suite, included: Sequence[Suite]) -> dict[str, Choice]:
    """The workloads of a suite behind those that it includes. Two includes with one workload: the later settings count,
    on hosts that meet either condition. The suite's own entry overrides what it sets.
    """
    workloads: dict[str, Choice] = {}
    for other in included:
        pinned = other.repeats if "repeats" not in suite.model_fields_set else None
        for entry, choice in other.chosen().items():
            fixed = choice.model_copy(update={"repeats": pinned}) if pinned and not choice.repeats else choice
            workloads[entry] = _either(workloads[entry], fixed) if entry in workloads else fixed
    for entry, choice in suite.chosen().items():
        workloads[entry] = _over(workloads[entry], choice) if entry in workloads else choice
    if not suite.where:
        return workloads
    return {e: c.model_copy(update={"where": _joined("and", suite.where, c.where)}) for e, c in workloads.items()}


def _either(base: Choice, choice: Choice) -> Choice:
    """``base`` with what ``choice`` sets, on hosts that meet the condition of one of them."""
    return _over(base, choice).model_copy(update={"where": _joined("or", base.where, choice.where)})


def _over(base: Choice, choice: Choice) -> Choice:
    """``base`` with what ``choice`` sets: parameter by parameter, other keys whole."""
    update = {name: getattr(choice, name) for name in choice.model_fields_set}
    return base.model_copy(update=update | {"set": {**base.set, **choice.set}})


def _joined(word: str, one: str, other: str) -> str:
    """Two conditions as one; an empty condition holds everywhere."""
    if not (one and other) or one == other:
        return (one and other) if word == "or" else (one or other)
    return f"({one}) {word} ({other})"
