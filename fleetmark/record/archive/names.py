"""How a campaign writes moments, and names from outside as file names."""

from __future__ import annotations

import hashlib
from datetime import UTC, datetime
from functools import lru_cache
from urllib.parse import quote


def utc(seconds: float | None = None) -> str:
    """A moment (now, if none is given) as ISO 8601 in UTC, to the millisecond."""
    moment = datetime.now(UTC) if seconds is None else datetime.fromtimestamp(seconds, UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


@lru_cache(maxsize=4096)  # asked for every file, of the same names
def safe_name(name: str) -> str:
    """``name`` as one path component, which people can read back; a long one is cut, with a hash at its end."""
    component = quote(name, safe=" >@+=,:")
    if component in (".", ".."):
        component = component.replace(".", "%2E")
    if len(component.encode()) > 150:
        component = f"{component[:130]}~{hashlib.sha256(name.encode()).hexdigest()[:12]}"
    return component
