"""Define the parts of a host that each source of power readings covers."""

from __future__ import annotations

from collections.abc import Collection

_PARTIAL = "rapl"  # covers processors and memory only


def has_devices(sources: Collection[str]) -> bool:
    """Return whether a host's power, as measured by ``sources``, includes its accelerators.

    A server's meter and the platform's sensor include them; RAPL does not.
    """
    return _PARTIAL not in sources
