"""Parse rccl-tests, ROCm's version of nccl-tests. The format is the same; see ``nccl_tests`` for cases, metrics and
labels.

These features differ from nccl-tests: the line ``rccl-tests: Version`` without a number sign, asterisks after errors
above the threshold, tables of one half (-O), cycles (-N), the columns algo, proto and nchannels (-A) and hipevt
(``hip_event_time``, s, lower is better), and the files of ``-Z json`` and ``-Z csv``, which have ranks and nodes. If
the collective of a test is unknown, its case is ``rccl``. Records have no end line, so only ``command`` can show that
sizes are missing at the end.

Source: ROCm/rccl-tests, and projects/rccl-tests in ROCm/rocm-systems, from 2019 to its sync with nccl-tests 2.18.
"""

from __future__ import annotations

from collections.abc import Sequence

from fleetmark.base.measurement import Parsed
from fleetmark.parsers.nccl.read import read


def parse(raw: bytes, command: Sequence[str] = ()) -> Parsed:
    """Return the measurements of every test in ``raw``. ``command`` names the collective if the text does not.

    Raise ParseError as ``nccl_tests`` does.
    """
    return read("rccl_tests", "rccl", raw, command)
