"""Restore the credentials of a resumed campaign from the command line or the suite, because the record has none."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from typing import Any

from fleetmark.base.errors import FleetmarkError
from fleetmark.base.redact import MARK, conceal, lacks_credentials
from fleetmark.campaign.schedule import Settings, secrets_of
from fleetmark.workloads import load, load_suite, workload_of


def credentials_again(suite: str, settings: Settings, overrides: Settings) -> dict[str, str]:
    """Return the credentials that ``redact.conceal`` removed from a campaign's ``settings``.

    They come from the suite file, if it still has them, and from ``overrides``, the settings of --resume. Raise
    FleetmarkError for any other override.
    """
    typed = {entry: load(workload_of(entry)).check_settings(values, "--set") for entry, values in overrides.items()}
    shown, secrets = conceal(typed)
    for entry, values in shown.items():
        for name, value in values.items():
            before = settings.get(entry, {}).get(name)
            if not lacks_credentials(before):
                raise FleetmarkError(
                    f"--set {entry}.{name} with --resume: a resumed campaign keeps its settings, and accepts only "
                    "credentials again; start a new campaign for other settings"
                )
            if value != before:
                raise FleetmarkError(f"--set {entry}.{name} with --resume: the campaign has {before}, not {value}")
    of_suite: dict[str, str] = {}
    with contextlib.suppress(FleetmarkError):  # if the suite is missing or has changed, the user must provide them
        of_suite = secrets_of(load_suite(suite), {})
    return {**of_suite, **secrets}


def refuse_without(credentials: Mapping[str, str], variables: Mapping[str, Mapping[str, Any]], campaign: str) -> None:
    """Raise FleetmarkError if a host needs a tool but its credentials are missing.

    ``variables`` has the variables by host.
    """
    for host, host_variables in variables.items():
        for item in host_variables["fm_deploy"]:
            for name, value in item["params"].items():
                setting = f"{item['workload']}.{name}"
                incomplete = [v for v in (value if isinstance(value, list) else [value]) if lacks_credentials(v)]
                if setting not in credentials and any(v not in credentials for v in incomplete):
                    raise FleetmarkError(
                        f"{host} needs {item['workload']}, and the credentials of {setting} are not "
                        f"stored: pass them again in place of {MARK}: fleetmark run --resume {campaign} --set "
                        f"{setting}="
                        f"'{','.join(incomplete)}'"
                    )
