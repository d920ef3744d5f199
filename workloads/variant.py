"""Define variants: several entries of one workload in a suite, each with different settings.

A suite names a variant ``WORKLOAD@VARIANT``, such as ``fio@large``. Its settings use that name (``--set
fio@large.size=16GiB``), and its cases include it (``read-1m-qd8@large``), so two variants never share a step, folder or
result.
"""

from __future__ import annotations

import re

_ENTRY = re.compile(r"[a-z0-9_]+(@[A-Za-z0-9][A-Za-z0-9_-]{0,31})?", re.ASCII)
# Other @ parts in cases contain a = (nccl_tests: all_reduce@NCCL_ALGO=Ring), which variants never do.
_VARIANT = re.compile(r"@([A-Za-z0-9][A-Za-z0-9_-]{0,31})(?=/|$)", re.ASCII)


def is_entry(name: str) -> bool:
    """Return whether ``name`` is a valid suite entry, such as ``fio`` or ``fio@large``."""
    return _ENTRY.fullmatch(name) is not None


def workload_of(entry: str) -> str:
    """Return the workload of a suite entry: ``fio`` for ``fio@large``."""
    return entry.partition("@")[0]


def case_of(entry: str, case: str) -> str:
    """Return the name under which a suite entry records ``case``: ``read@large`` for ``read`` of ``fio@large``."""
    _, separator, variant = entry.partition("@")
    return f"{case}{separator}{variant}"


def plain_case(case: str) -> str:
    """Return the manifest's name of a recorded case: ``read/x`` for ``read@large/x``."""
    return _VARIANT.sub("", case)


def entry_of(workload: str, case: str) -> str:
    """Return the suite entry that recorded ``case``: ``fio@large`` for ``read@large`` of ``fio``."""
    match = _VARIANT.search(case)
    return f"{workload}@{match[1]}" if match else workload
