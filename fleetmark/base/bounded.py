"""Read untrusted files with limits on size and memory."""

from __future__ import annotations

import contextlib
import resource
from collections.abc import Iterator
from pathlib import Path

from fleetmark.base.errors import FleetmarkError


def read_bytes(path: Path, limit: int, advice: str) -> bytes:
    """Return the content of ``path``, at most ``limit`` bytes (a whole number of MiB).

    Raise FleetmarkError, with ``advice`` at the end, if the file is larger, and OSError if it cannot be read.
    """
    with path.open("rb") as source:
        raw = source.read(limit + 1)
    if len(raw) > limit:
        raise FleetmarkError(f"{path}: larger than {limit >> 20} MiB; {advice}")
    return raw


@contextlib.contextmanager
def memory(limit: int, name: object) -> Iterator[None]:
    """Limit how much additional memory this process can allocate inside the block to ``limit`` bytes.

    This is the second line of defence: a file can declare false sizes to the library that decompresses it.
    Raise FleetmarkError, with ``name`` as its subject, if the block runs out of memory.
    """
    before = resource.getrlimit(resource.RLIMIT_DATA)
    taken = int(Path("/proc/self/status").read_text().partition("VmData:")[2].split()[0]) << 10
    ceiling = min((bound for bound in before if bound != resource.RLIM_INFINITY), default=taken + limit)
    resource.setrlimit(resource.RLIMIT_DATA, (min(taken + limit, ceiling), before[1]))
    try:
        yield
    except MemoryError:
        raise FleetmarkError(f"{name} needs more than {limit >> 20} MiB of memory to read; split the file") from None
    finally:
        resource.setrlimit(resource.RLIMIT_DATA, before)
