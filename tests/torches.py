"""A Python with torch for tests: FLEETMARK_TORCH, or the environment that ``make test`` prepares."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

_PREPARED = Path(__file__).parents[1] / ".venv-torch"
PYTHON = os.environ.get("FLEETMARK_TORCH") or (str(_PREPARED) if (_PREPARED / ".fleetmark").exists() else "")

needs_torch = pytest.mark.skipif(
    not PYTHON, reason="no Python with torch: set FLEETMARK_TORCH to one (make test prepares .venv-torch)"
)


def folders() -> list[Path]:
    """Return the folders that hosts must see to run that Python: its environment and the installation beneath it."""
    given = Path(PYTHON)
    program = given / "bin/python3" if given.is_dir() else given
    environment, base = program.parents[1], program.resolve().parents[1]
    return [folder for folder in dict.fromkeys((environment, base)) if folder != Path("/usr")]
