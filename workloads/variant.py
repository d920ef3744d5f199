"""Names of variants: one workload several times in a suite, each time with other settings.

A suite calls a variant ``WORKLOAD@VARIANT``: ``fio@large``. Its settings go by that name (``--set
fio@large.size=16GiB``), and its cases carry it: ``read-1m-qd8@large``. So steps, folders and figures of two variants
never share a name.
"""

from __future__ import annotations

import re

_ENTRY = re.compile(r"[a-z0-9_]+(@[A-Za-z0-9][A-Za-z0-9_-]{0,31})?", re.ASCII)
# Cases have other @ parts with a = in them (nccl_tests: all_reduce@NCCL_ALGO=Ring), which no variant has.
_VARIANT = re.compile(r"@([A-Za-z0-9][A-Za-z0-9_-]{0,31})(?=/|$)", re.ASCII)


def is_entry(name: str) -> bool:
    """Return whether ``name`` may stand in a suite: ``fio`` or ``fio@large``."""
    return _ENTRY.fullmatch(name) is not None


def workload_of(entry: str) -> str:
    """Return the workload that a suite's entry runs: ``fio`` for ``fio@large``."""
    return entry.partition("@")[0]


def case_of(entry: str, case: str) -> str:
    """Return the name under which a suite's entry records ``case``: ``read@large`` for ``read`` of ``fio@large``."""
    _, at, variant = entry.partition("@")
    return f"{case}{at}{variant}"


def plain_case(case: str) -> str:
    """Return the name that the manifest gives a recorded case: ``read/x`` for ``read@large/x``."""
    return _VARIANT.sub("", case)


def entry_of(workload: str, case: str) -> str:
    """Return the suite's entry that recorded ``case``: ``fio@large`` for ``read@large`` of ``fio``."""
    match = _VARIANT.search(case)
    return f"{workload}@{match[1]}" if match else workload
