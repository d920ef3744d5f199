"""Parse rccl-tests, ROCm's version of nccl-tests, with the same text; see ``nccl_tests`` for cases, metrics and labels.

Its own: the line ``rccl-tests: Version`` without a number sign, asterisks behind errors that exceed the threshold,
tables of one half (-O), cycles (-N), the columns algo, proto and nchannels (-A) and hipevt (``hip_event_time``, s,
lower), and the files of ``-Z json`` and ``-Z csv``, which print ranks and nodes. The case of a test whose collective
is not known is ``rccl``. Records have no last line: that sizes are missing at their end shows by ``command`` alone.

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
