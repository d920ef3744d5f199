"""Adapt a case that several hosts run together to fewer hosts: find its name and settings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from fleetmark.base.errors import FleetmarkError
from fleetmark.base.facts import Facts
from fleetmark.campaign.resolve import cases_of, nodes_of, resolve
from fleetmark.workloads import Choice, Manifest
from fleetmark.workloads.manifest import Case


@dataclass(frozen=True, slots=True)
class Sized:
    """The name of a case and the settings of its workload."""

    case: str
    settings: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Family:
    """A ``case`` that ``hosts`` hosts ran together, its ``settings``, and the ``facts`` of one of the hosts."""

    manifest: Manifest
    settings: Mapping[str, Any]
    facts: Facts
    case: str
    hosts: int

    def among(self, size: int) -> Sized | None:
        """Return the same case for ``size`` hosts (1 means a single host), or None if the workload has no such case.

        Raise FleetmarkError if the manifest no longer contains the case.
        """
        axes = self._axes()
        if not self.manifest.sizes:
            return None
        settings = {**self.settings, self.manifest.sizes: [str(size)]}
        alike = {
            context["case"]: sum(context.get(name) == value for name, value in axes.items())
            for case, context in self._cases(settings, size if size > 1 else self.hosts)
            if nodes_of(case, context) == size
        }
        return Sized(max(alike, key=lambda name: alike[name]), settings) if alike else None

    def _axes(self) -> dict[str, Any]:
        """Return the parameters in which the case differs from the other cases of its workload."""
        for case, context in self._cases(self.settings, self.hosts):
            if context["case"] == self.case:
                return {name: context[name] for name in case.foreach}
        raise FleetmarkError(
            f"{self.manifest.name} has no case {self.case!r} with the settings of the campaign: its manifest has "
            "changed since; run it again"
        )

    def _cases(self, settings: Mapping[str, Any], hosts: int) -> list[tuple[Case, dict[str, Any]]]:
        resolved = resolve(self.manifest, settings, self.facts, "")
        if isinstance(resolved, str):
            return []
        return cases_of(resolved, Choice(), set(), hosts=hosts)
