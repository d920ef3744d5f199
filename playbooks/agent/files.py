"""What the agent's programs share: files that are written whole or not at all, room on the disk, starting a Python.

Standard library only, Python 3.6 and later.
"""

import errno
import os

FULL = (errno.ENOSPC, errno.EDQUOT)
BARE = ("-E", "-s", "-S")  # without the modules and settings of the user and the site: twice as fast to start


def write_atomic(path, data):
    """Replace the file ``path`` by ``data`` (bytes) and sync it."""
    with open(path + ".part", "wb") as out:
        out.write(data)
        out.flush()
        os.fsync(out.fileno())
    os.rename(path + ".part", path)


def hold(file, size):
    """Reserve ``size`` bytes of the disk for ``file``, without writing them if the file system allows it."""
    try:
        os.posix_fallocate(file.fileno(), 0, size)
    except OSError as error:
        if error.errno in FULL:
            raise
        file.write(b"\0" * size)
