"""The ``fleet`` fixture: four real SSH hosts for a test session, always taken down again."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.fleet.hosts import Fleet, missing


@pytest.fixture(scope="session")
def fleet() -> Iterator[Fleet]:
    """Four hosts, shared by the session: a test leaves them as it found them. Skips where no fleet can be made."""
    if reason := missing():
        pytest.skip(reason)
    with Fleet(4) as hosts:
        yield hosts
