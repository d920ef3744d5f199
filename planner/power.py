"""What the power of a host by its sources covers."""

from __future__ import annotations

from collections.abc import Collection

_PARTIAL = "rapl"  # processors and memory


def has_devices(sources: Collection[str]) -> bool:
    """Whether the power of a host by ``sources`` holds that of its accelerators: of a server's meter and of the
    platform it does, of RAPL it does not.
    """
    return _PARTIAL not in sources
