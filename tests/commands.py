"""``fleetmark`` in this process, over the campaigns in a folder: its output, and the sentence of its error."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from fleetmark.base.errors import FleetmarkError
from fleetmark.cli.app import app


def run(root: Path, *words: str, status: int = 0) -> str:
    done = CliRunner().invoke(app, [*words, "--results", str(root)], catch_exceptions=False)
    assert done.exit_code == status, done.output
    return done.stdout


def refused(root: Path, *words: str) -> str:
    with pytest.raises(FleetmarkError) as error:
        CliRunner().invoke(app, [*words, "--results", str(root)], catch_exceptions=False)
    assert "\n" not in str(error.value)
    return str(error.value)
