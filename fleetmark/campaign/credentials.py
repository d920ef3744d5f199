"""Credentials of a campaign that goes on: its record holds none, so they are given again, or the suite has them."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from typing import Any

from fleetmark.base.errors import FleetmarkError
from fleetmark.base.redact import MARK, conceal, lacks_credentials
from fleetmark.campaign.schedule import Settings, secrets_of
from workloads import load, load_suite


def credentials_again(suite: str, settings: Settings, overrides: Settings) -> dict[str, str]:
    """What ``redact.conceal`` left out of a campaign's ``settings``: from its suite, where that is a file that still
    has it, and from ``given``, the settings of --resume. Raises FleetmarkError where one of these is anything else.
    """
    typed = {workload: load(workload).check_settings(values, "--set") for workload, values in overrides.items()}
    shown, secrets = conceal(typed)
    for workload, values in shown.items():
        for name, value in values.items():
            before = settings.get(workload, {}).get(name)
            if not lacks_credentials(before):
                raise FleetmarkError(
                    f"--set {workload}.{name} with --resume: a campaign goes on as planned, and only credentials are "
                    "given again; begin a new one for changes"
                )
            if value != before:
                raise FleetmarkError(f"--set {workload}.{name} with --resume: it was {before}, and this is {value}")
    of_suite: dict[str, str] = {}
    with contextlib.suppress(FleetmarkError):  # the suite is gone or another by now: then they are asked for
        of_suite = secrets_of(load_suite(suite), {})
    return {**of_suite, **secrets}


def refuse_without(credentials: Mapping[str, str], variables: Mapping[str, Mapping[str, Any]], campaign: str) -> None:
    """Raises FleetmarkError where a host (``variables``, by its name) needs a tool that credentials are wanted for."""
    for host, host_variables in variables.items():
        for item in host_variables["fm_deploy"]:
            for name, value in item["params"].items():
                setting = f"{item['workload']}.{name}"
                incomplete = [v for v in (value if isinstance(value, list) else [value]) if lacks_credentials(v)]
                if setting not in credentials and any(v not in credentials for v in incomplete):
                    raise FleetmarkError(
                        f"{host} needs {item['workload']}, and the credentials of {setting} are not kept: "
                        f"give them again in place of {MARK}: fleetmark run --resume {campaign} --set {setting}="
                        f"'{','.join(incomplete)}'"
                    )
