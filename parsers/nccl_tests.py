"""Parse nccl-tests (all_reduce_perf, all_gather_perf, ...): its text, from 2017 to version 2.19, and the file of
``-J``.

Case: the collective (``all_reduce``, ``all_gather``, ``reduce_scatter``, ``alltoall``, ``alltoallv``, ``broadcast``,
``reduce``, ``gather``, ``scatter``, ``sendrecv``, ``hypercube``). From 2.17 the text says which; before, it comes from
a command line in the text ("Running:", a shell's trace), from ``command``, or from the columns where they fit one
alone (a note says so); else it is ``nccl``.

Metrics: ``busbw`` and ``algbw`` (B/s, higher; 1 GB/s is 1e9 B/s), ``time`` (s, lower; printed in us, in 2017 in ms),
or ``cpu_time`` (s, lower) where -C put that in its column; with -I also ``time_min``, ``time_max``, ``time_p99`` (s,
lower) and ``time_cv`` (a fraction, lower). Labels: ``size`` in bytes, ``type``, ``redop`` and ``root`` where they mean
something, ``place`` ("out", "in"). Once for each test: ``avg_busbw`` (B/s, higher), ``peak_busbw`` (B/s, higher: the
highest out-of-place busbw; with the label ``place`` where a table is in-place only), and, where a device list says so,
``ranks`` and ``nodes`` (1, describe only).
What is measured again gets a further label: ``cycle`` ("2", ...) within a table (-N), ``run`` in a later test of the
same collective. Rows of size 0 (a size that does not go round all ranks) and incomplete rows are left out.
With one rank busbw means nothing and is left out, with the average and the peak.

A test whose data were wrong (#wrong, or out-of-bounds results), that ended in an NCCL or CUDA failure, or in which
several processes each ran alone as rank 0 (mpirun and a build without MPI) is left out with a note. Where all tests of
a text are such, they are kept and ``invalid`` says why: a good alltoall does not become bad because an all_reduce
beside it failed, nor the other way round. So are tests among others that stopped without a word, or of whose command
nothing followed. A text that ends within its last test is invalid: the output is cut. A cut
between two tests cannot be detected.

Launchers' marks ([1,0]<stdout>:, "0: ", "host: ", stamps) are taken off lines, and tell the lines of several processes
apart. Cross-checks become notes: busbw against algbw, algbw against size and time, the average against the rows.

Source: NVIDIA/nccl-tests, src/*.cu and doc/PERFORMANCE.md, from its first commit to 2.19.6. The JSON holds the whole
environment of the run, of which nothing is read or quoted.
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
