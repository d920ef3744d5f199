"""Read small files in /proc and /sys, and the kernel log.

Standard library only, Python 3.6 and later.
"""

import errno
import os
import re

MOST_RECORDS = 100000


def read(path, limit=1 << 20):
    """Return the text of a file, or None if it is missing or unreadable. Reading many sysfs files gives an error."""
    try:
        with open(path, "rb") as file:
            return file.read(limit).decode("utf-8", "replace")
    except OSError:
        return None


def first_stanza(path):
    """Return the text up to the first empty line in small reads, because reading a stanza disturbs its core."""
    text = b""
    try:
        with open(path, "rb", 0) as file:
            while b"\n\n" not in text:
                more = file.read(1024)
                if not more:
                    break
                text += more
    except OSError:
        return None
    return text.split(b"\n\n")[0].decode("utf-8", "replace")


def matches(path, pattern):
    """Return the number of records of the kernel (not of users) in /dev/kmsg by the pattern's group, or None if it is
    unreadable.
    """
    counts = {}
    try:
        log = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    except OSError:
        return None
    try:
        for _ in range(MOST_RECORDS):
            try:
                data = os.read(log, 8192)
            except OSError as error:
                if error.errno == errno.EPIPE:  # overwritten while it was read
                    continue
                return counts if error.errno == errno.EAGAIN else None
            if not data:
                return counts
            for line in data.decode("utf-8", "replace").splitlines():
                priority, _, text = line.partition(",")
                match = re.search(pattern, text) if priority.isdigit() and int(priority) < 8 else None
                if match:
                    counts[match.group(1)] = counts.get(match.group(1), 0) + 1
    finally:
        os.close(log)
    return counts
