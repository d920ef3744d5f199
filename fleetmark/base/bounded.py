"""Reads files from outside, with a bound on their size: a file can be larger than the memory, or have no end."""

from __future__ import annotations

import contextlib
import resource
from collections.abc import Iterator
from pathlib import Path

from fleetmark.base.errors import FleetmarkError


def read_bytes(path: Path, limit: int, advice: str) -> bytes:
    """Return the content of ``path``, at most ``limit`` bytes (whole MiB).

    Raises FleetmarkError, which ends in ``advice``, for a larger file, and OSError for one that cannot be read.
    """
    with path.open("rb") as source:
        raw = source.read(limit + 1)
    if len(raw) > limit:
        raise FleetmarkError(f"{path}: larger than {limit >> 20} MiB; {advice}")
    return raw


@contextlib.contextmanager
def memory(limit: int, name: object) -> Iterator[None]:
    """Let this process take at most ``limit`` bytes more memory than it has, while the body runs.

    It is the second line of defence: a file can lie about its sizes to the library that unpacks it. Raises
    FleetmarkError, about what is called ``name``, where the body runs out of memory.
    """
    before = resource.getrlimit(resource.RLIMIT_DATA)
    taken = int(Path("/proc/self/status").read_text().partition("VmData:")[2].split()[0]) << 10
    most = min((bound for bound in before if bound != resource.RLIM_INFINITY), default=taken + limit)
    resource.setrlimit(resource.RLIMIT_DATA, (min(taken + limit, most), before[1]))
    try:
        yield
    except MemoryError:
        raise FleetmarkError(f"{name} takes more than {limit >> 20} MiB of memory to read; split the file") from None
    finally:
        resource.setrlimit(resource.RLIMIT_DATA, before)
