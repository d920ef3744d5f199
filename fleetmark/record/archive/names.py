"""Format timestamps for campaigns, and convert untrusted names to safe file names."""

from __future__ import annotations

import hashlib
from datetime import UTC, datetime
from functools import lru_cache
from urllib.parse import quote


def utc(seconds: float | None = None) -> str:
    """Return a Unix time in seconds (default: now) as ISO 8601 in UTC with milliseconds."""
    moment = datetime.now(UTC) if seconds is None else datetime.fromtimestamp(seconds, UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


@lru_cache(maxsize=4096)  # cached, because it is called for every file with few different names
def safe_name(name: str) -> str:
    """Return ``name`` as one readable path component. A long name is truncated and ends in a hash."""
    component = quote(name, safe=" >@+=,:")
    if component in (".", ".."):
        component = component.replace(".", "%2E")
    if len(component.encode()) > 150:
        component = f"{component[:130]}~{hashlib.sha256(name.encode()).hexdigest()[:12]}"
    return component
