"""Parse nccl-tests (all_reduce_perf, ...): its text, from 2017 to version 2.19, and the file of ``-J``.

Case: the collective (``all_reduce``, ``all_gather``, ``reduce_scatter``, ``alltoall``, ``alltoallv``, ``broadcast``,
``reduce``, ``gather``, ``scatter``, ``sendrecv``, ``hypercube``). From 2.17 on, the text names it. In older output, it
comes from a command line in the text ("Running:", a shell's trace), from ``command``, or from the columns if they fit
only one collective (a note says so). Otherwise the case is ``nccl``.

Metrics: ``busbw`` and ``algbw`` (B/s, higher; 1 GB/s is 1e9 B/s), ``time`` (s, lower; printed in us, in 2017 in ms), or
``cpu_time`` (s, lower) if -C replaces the time; with -I also ``time_min``, ``time_max``, ``time_p99`` (s, lower) and
``time_cv`` (a fraction, lower). Labels: ``size`` in bytes, ``type``, ``redop`` and ``root`` if they apply, ``place``
("out", "in"). Once for each test: ``avg_busbw`` (B/s, higher), ``peak_busbw`` (B/s, higher: the highest out-of-place
busbw; with the label ``place`` if a table is in-place only). If there is a device list: ``ranks`` and ``nodes`` (1,
only descriptive). Repeated measurements get a further label: ``cycle`` ("2", ...) within a table (-N), ``run`` in a
later test of the same collective. Rows of size 0 (the size is too small for all ranks) and incomplete rows are left
out. With one rank, busbw has no meaning and is omitted, as are the average and the peak.

A test is omitted with a note if its data were wrong (#wrong, or out-of-bounds results), if it ended in an NCCL or CUDA
failure, or if several processes each ran alone as rank 0 (mpirun with a build without MPI). The same applies to tests
that stopped silently and to commands without output. If all tests of a text failed in this way, they are kept and
``invalid`` says why. A good alltoall therefore stays valid even if an all_reduce in the same text failed. A text that
ends within its last test is truncated and therefore invalid. Truncation between two tests cannot be detected.

Launchers' marks ([1,0]<stdout>:, "0: ", "host: ", timestamps) are removed from lines; they distinguish the lines of
several processes. Cross-checks become notes: busbw is compared with algbw, algbw with size and time, and the average
with the rows.

Source: NVIDIA/nccl-tests, src/*.cu and doc/PERFORMANCE.md, from its first commit to 2.19.6. The JSON contains the whole
environment of the run, which is neither read nor quoted.
"""

from __future__ import annotations

from collections.abc import Sequence

from fleetmark.base.measurement import Parsed
from fleetmark.parsers.nccl.read import read


def parse(raw: bytes, command: Sequence[str] = ()) -> Parsed:
    """Return the measurements of every test in ``raw``. ``command`` names the collective if the text does not.

    Raise ParseError if there is no row of results, with nccl-tests' or the launcher's message, or with the stage
    that was reached.
    """
    return read("nccl_tests", "nccl", raw, command)
