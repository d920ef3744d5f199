"""Limit the work of a server by its resources: memory, disk, IOPS, network and other named resources.

A unit of demand uses some amount of each resource. A resource serves has / need units of demand. The speed of a server
is its worth. The smallest of the limits applies.
"""

from __future__ import annotations

import math
from collections.abc import Mapping


def bound(has: Mapping[str, float], needs: Mapping[str, float]) -> tuple[float, str]:
    """Return the units of demand that a server's resources can serve, and the name of the scarcest resource.

    ``has`` and ``needs`` are by resource, in the same base units. Return infinity and an empty name if nothing is
    needed.
    """
    bounds = [(has.get(name, 0.0) / need, name) for name, need in needs.items() if need > 0]
    return min(bounds, default=(math.inf, ""))
