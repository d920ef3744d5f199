"""Configure pytest: show values in assertions of helper modules, and fix the random examples of hypothesis.

Each test uses the same examples every time, so that a change cannot fail because of an unrelated random example.
``make explore`` uses other examples.
"""

from __future__ import annotations

import functools
import gc
import os
import pkgutil
from pathlib import Path
from typing import Any

import pytest
import typer.testing
from hypothesis import HealthCheck, settings

# Tests run side by side: threads that wait for one another must leave the cores to others (torch takes 4 times as long).
os.environ.setdefault("OMP_WAIT_POLICY", "passive")

# A verb that runs in a test's process has the commands that were built for the first one.
typer.testing._get_command = functools.cache(typer.testing._get_command)

helpers = pkgutil.iter_modules([str(Path(__file__).parent)], "tests.")
pytest.register_assert_rewrite(*(module.name for module in helpers))

CALM = [HealthCheck.too_slow, HealthCheck.data_too_large]  # these can fail on a busy machine
settings.register_profile("same", derandomize=True, deadline=None, suppress_health_check=CALM)
settings.register_profile("explore", deadline=None, suppress_health_check=CALM, print_blob=True)
settings.load_profile("same")


@pytest.fixture(scope="session", autouse=True)
def _own_key(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Sign campaigns with a key made for the tests, not with the user's key; subprocesses inherit it."""
    os.environ["XDG_STATE_HOME"] = str(tmp_path_factory.mktemp("state"))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    from tests.longest import arrange

    arrange(items)


def pytest_collection_finish() -> None:
    """Look for garbage less often, and never among what was imported; the program itself does not look at all."""
    gc.freeze()
    gc.set_threshold(100_000, 20, 20)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Keep a file's tests in one process, and all files that take the machine's job in one."""
    from tests.longest import scheduler

    return scheduler(config, log) if config.getvalue("dist") == "loadfile" else None
