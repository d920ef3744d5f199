"""Define suites: which workloads run, with which settings and how often.

A suite has a name or a path; the name of a workload is a suite too. Comma-separated names form one suite.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, ClassVar

from pydantic import Field, ValidationError

from fleetmark.base import extensions
from fleetmark.base.errors import FleetmarkError, suggest
from fleetmark.workloads import condition
from fleetmark.workloads.manifest import HERE, _Part, load, names, read_model
from fleetmark.workloads.misfit import misfit
from fleetmark.workloads.shares import Shares
from fleetmark.workloads.variant import is_entry, workload_of

SUITES = HERE / "suites"
_MOST_NAMED = 3  # maximum suites in a comma-separated name


class Choice(_Part):
    """Configure one workload in a suite.

    - ``cases``: shell-style patterns for case names; empty selects all cases
    - ``hosts``: by case name, the hosts that run it, each alone or two as a pair; empty follows the parameters
    - ``in_container``: the image for its commands, as ``podman:IMAGE``, ``docker:IMAGE`` or just the image
    - ``where``: the condition that a host must meet (``workloads.condition``)
    """

    set: Mapping[str, Any] = {}
    cases: tuple[str, ...] = ()
    repeats: int | None = Field(default=None, ge=1)
    hosts: Mapping[str, tuple[tuple[str, ...], ...]] = {}
    in_container: Annotated[str, Field(pattern=r"^([A-Za-z0-9][A-Za-z0-9._/:@+-]{0,300})?$")] = ""
    where: str = ""

    def is_for(self, case: str, *hosts: str) -> bool:
        """Return whether this host, or this pair in either order, runs the case."""
        return not self.hosts or any(sorted(group) == sorted(hosts) for group in self.hosts.get(case, ()))


class Suite(_Part):
    """An ordered selection of workloads.

    ``repeats`` is the default for workloads without their own value. Each key of ``workloads`` is a workload or a
    variant of one (``fio@large``). ``shares`` limits what the tools may take of a host.

    ``include`` (other suites, which run first) and ``where`` (a condition for all workloads) are used in files only:
    ``load_suite`` resolves them, so they are empty in a loaded suite.
    """

    RENAMED: ClassVar = {"about": "description"}

    name: str
    description: str
    repeats: int = Field(default=3, ge=1)
    include: tuple[str, ...] = ()
    where: str = ""
    shares: Shares | None = None
    workloads: Mapping[str, Choice | None] = {}

    def chosen(self) -> dict[str, Choice]:
        """Return the choice for each workload or variant in suite order; ``fio:`` alone uses the defaults."""
        return {name: choice or Choice() for name, choice in self.workloads.items()}


def suite_names() -> list[str]:
    """Return the sorted names of all suites, including those from other folders."""
    return sorted(suite_paths())


def suite_paths() -> dict[str, Path]:
    """Return the path of each suite by name."""
    return extensions.gather("the suite", {p.stem: p for p in SUITES.glob("*.yml")}, "suites")


def load_suite(name: str) -> Suite:
    """Return the suite ``name``: a known suite, a single workload with its defaults, or a suite in a YAML file.

    Comma-separated names are merged into one suite that includes them. Included suites are merged, and all workloads,
    parameters, values and conditions are checked.

    Raise FleetmarkError naming the file and the problem.
    """
    if "," not in name:
        return _load(name, Path(), ())
    parts = list(dict.fromkeys(part.strip() for part in name.split(",")))
    if "" in parts:
        raise FleetmarkError(f"suite {name!r}: a name is missing next to a comma")
    suites = [_load(part, Path(), ()) for part in parts]
    words = [suite.name for suite in suites[:_MOST_NAMED]]
    if len(suites) > _MOST_NAMED:
        words.append(f"{len(suites) - _MOST_NAMED}-more")
    together = Suite(name="-".join(words), description=", ".join(suite.name for suite in suites))
    return together.model_copy(update={"workloads": _merged(together, suites), "shares": _shares(together, suites)})


def suite_from(document: Mapping[str, Any], name: str) -> Suite:
    """Return the suite that ``document`` describes, like a file of that name. Raise the same errors."""
    try:
        suite = Suite.model_validate({"name": name, **document})
    except ValidationError as error:
        raise FleetmarkError(f"{name}: {misfit(error, Suite)}") from error
    _check(suite, Path(name))
    return suite


def _load(name: str, folder: Path, within: tuple[Path, ...], repeats: int | None = None) -> Suite:
    """Load the suite ``name`` relative to ``folder``.

    ``within`` lists the including files, outermost first. ``repeats`` is the number that an including suite sets; it
    overrides the suite's own number.
    """
    path = _path(name, folder)
    if path is None:
        return Suite(name=name, description=load(name).description, workloads={name: None})
    if path in within:
        circle = " > ".join(p.name for p in (*within[within.index(path) :], path))
        raise FleetmarkError(f"{path}: include: the suites form a cycle ({circle}); remove one include")
    suite = read_model(path, Suite, name=path.stem)
    _check(suite, path)
    if repeats:
        suite = suite.model_copy(update={"repeats": repeats})
    fixed = suite.repeats if "repeats" in suite.model_fields_set else None
    included = [_load(other, path.parent, (*within, path), fixed) for other in suite.include]
    workloads = _merged(suite, included)
    if not workloads:
        raise FleetmarkError(f"{path}: workloads: the list is empty; add at least one workload")
    shares = _shares(suite, included)
    return Suite(
        name=suite.name, description=suite.description, repeats=suite.repeats, shares=shares, workloads=workloads
    )


def _path(name: str, folder: Path) -> Path | None:
    """Return the path of the suite ``name``, or None if ``name`` is a workload."""
    if name in suite_names():
        return suite_paths()[name]
    if name.endswith((".yml", ".yaml")) or "/" in name:
        return folder / name
    if name in names():
        return None
    raise FleetmarkError(
        f"no suite {name!r}{suggest(name, [*suite_names(), *names()])}: there are {', '.join(suite_names())}; "
        "to run a single workload, use its name (fleetmark workloads); "
        "to run your own suite, use its path, ending in .yml"
    )


def _check(suite: Suite, path: Path) -> None:
    """Raise FleetmarkError for an unknown workload, an invalid setting or an invalid condition."""
    condition.check(suite.where, f"{path}")
    for entry, choice in suite.chosen().items():
        if not is_entry(entry):
            raise FleetmarkError(
                f"{path}: workloads: {entry!r} is not a valid name; use WORKLOAD or WORKLOAD@VARIANT, where "
                "VARIANT has at most 32 letters, digits, - and _"
            )
        try:
            load(workload_of(entry)).check_settings(choice.set, f"{path}")
            condition.check(choice.where, f"{path}: {entry}")
        except FleetmarkError as error:
            raise FleetmarkError(str(error) if str(path) in str(error) else f"{path}: {error}") from error


def _merged(suite: Suite, included: Sequence[Suite]) -> dict[str, Choice]:
    """Return the workloads of a suite after those of its included suites.

    If two included suites share a workload, the later settings apply, on hosts that meet either condition. The suite's
    own entry overrides the settings that it contains.
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


def _shares(suite: Suite, included: Sequence[Suite]) -> Shares | None:
    """Return the shares of a suite, or else those of its included suites. Raise FleetmarkError if these differ."""
    if suite.shares:
        return suite.shares
    each = {other.shares for other in included}
    if len(each) > 1:
        raise FleetmarkError(f"suite {suite.name}: shares: its included suites differ; set shares in this suite")
    return next(iter(each), None)


def _either(base: Choice, choice: Choice) -> Choice:
    """Return ``base`` updated with ``choice``, for hosts that meet either condition."""
    return _over(base, choice).model_copy(update={"where": _joined("or", base.where, choice.where)})


def _over(base: Choice, choice: Choice) -> Choice:
    """Return ``base`` updated with ``choice``; parameters are merged, other keys are replaced."""
    update = {name: getattr(choice, name) for name in choice.model_fields_set}
    return base.model_copy(update=update | {"set": {**base.set, **choice.set}})


def _joined(word: str, one: str, other: str) -> str:
    """Return two conditions combined with ``word``; an empty condition is always met."""
    if not (one and other) or one == other:
        return (one and other) if word == "or" else (one or other)
    return f"({one}) {word} ({other})"
