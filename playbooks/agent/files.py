"""Functions shared by the agent's programs: write files atomically, reserve disk space, and start Python.

Standard library only, Python 3.6 and later.
"""

import errno
import os

FULL = (errno.ENOSPC, errno.EDQUOT)
BARE = ("-E", "-s", "-S")  # ignore user and site modules and settings, which halves the start time


def write_atomic(path, data):
    """Replace the content of the file ``path`` with ``data`` (bytes) atomically, and sync it to disk."""
    with open(path + ".part", "wb") as out:
        out.write(data)
        out.flush()
        os.fsync(out.fileno())
    os.rename(path + ".part", path)


def hold(file, size):
    """Reserve ``size`` bytes of disk space for ``file``, without writing them if the file system allows it."""
    try:
        os.posix_fallocate(file.fileno(), 0, size)
    except OSError as error:
        if error.errno in FULL:
            raise
        file.write(b"\0" * size)
