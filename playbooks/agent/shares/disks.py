"""Limit the bytes per second that a control group reads from, and writes to, each disk of this host.

Only cgroup v2 limits writes through the page cache: version 1 attributes these to the kernel and not to the
process. The kernel assigns them to a group on the file systems of ``WRITEBACK``, if the group counts memory, too.

Standard library only, Python 3.6 and later.
"""

import os
import re

WRITEBACK = ("btrfs", "ext2", "ext3", "ext4", "f2fs", "xfs")  # the kernel's file systems with SB_I_CGROUPWB
IN_MEMORY = ("bpf", "cgroup", "cgroup2", "configfs", "debugfs", "devpts", "devtmpfs", "efivarfs", "hugetlbfs", "mqueue")
IN_MEMORY += ("proc", "pstore", "ramfs", "securityfs", "sysfs", "tmpfs", "tracefs")
REMOTE = ("9p", "afs", "beegfs", "ceph", "cifs", "gfs2", "gpfs", "lustre", "ncpfs", "nfs", "nfs4", "ocfs2", "orangefs")
REMOTE += ("pvfs2", "smb3", "smbfs", "virtiofs")
PATH = re.compile(r"(?<![\w./-])/[\w./@+-]+")
ESCAPE = re.compile(r"\\([0-7]{3})", re.ASCII)


def lines_of(path):
    try:
        with open(path) as source:
            return source.read().splitlines()
    except OSError:
        return []


def devices(root=""):
    """Return the numbers of all disks with content by path: ``{"/dev/sda": "8:0"}``. Partitions are not listed.

    ``root``: the parent folder of /sys.
    """
    numbers = {}
    block = root + "/sys/block"
    for name in sorted(os.listdir(block)) if os.path.isdir(block) else ():
        number, size = ("".join(lines_of(os.path.join(block, name, key))) for key in ("dev", "size"))
        if number and size not in ("", "0"):
            numbers["/dev/" + name.replace("!", "/")] = number
    return numbers


def write_limits(group, rate, numbers):
    """Limit the reads and the writes of a cgroup v2 to ``rate`` bytes/s each, on each disk of ``numbers``."""
    for number in numbers:
        with open(os.path.join(group, "io.max"), "w") as out:
            out.write("%s rbps=%d wbps=%d" % (number, rate, rate))


def limits_in(group):
    """Return the highest rate that a group allows by disk, in bytes/s; nothing for a disk without limits of both.

    A group that does not count memory cannot limit buffered writes, so it counts as unlimited.
    """
    limits = {}
    if not os.path.exists(os.path.join(group, "memory.max")):
        return limits
    for line in lines_of(os.path.join(group, "io.max")):
        number, *pairs = line.split()
        values = dict(pair.split("=", 1) for pair in pairs if "=" in pair)
        rates = [values.get(key, "max") for key in ("rbps", "wbps")]
        if all(rate.isdigit() for rate in rates):
            limits[number] = max(map(int, rates))
    return limits


def is_held(rate, groups, numbers):
    """Return whether one of ``groups`` limits each disk to at most ``rate`` bytes/s, also for buffered writes."""
    tables = [limits_in(group) for group in groups]
    return all(any(number in table and table[number] <= rate * 1.01 for table in tables) for number in numbers)


def file_systems(paths, root=""):
    """Return one of ``paths`` for each type of file system that they are on and that can be written.

    ``root``: the parent folder of /proc.
    """
    mounts = {}
    for line in lines_of(root + "/proc/self/mountinfo"):
        before, _, after = line.partition(" - ")
        words = before.split()
        mounts[ESCAPE.sub(lambda match: chr(int(match.group(1), 8)), words[4])] = (
            after.split()[0],
            words[5].split(","),
        )
    paths_by_kind = {}
    for path in paths:
        place = os.path.realpath(path)
        while place not in mounts and place != "/":
            place = os.path.dirname(place)
        kind, options = mounts.get(place, ("unknown", ()))
        if "ro" not in options:
            paths_by_kind.setdefault(kind, path)
    return paths_by_kind


def paths_of(steps):
    """Return the existing files and folders that the arguments and the environment of steps name."""
    words = set()
    for step in steps:
        words.update(step["argv"][1:], step.get("env", {}).values(), (step.get("serve") or {}).get("argv", ())[1:])
    named = {path for word in words if isinstance(word, str) for path in PATH.findall(word[:10000])}
    return sorted(path for path in named if os.path.exists(path))


def unheld(kinds):
    """Return a file system on which the kernel assigns no buffered writes to a group: its type and a path, or None."""
    return next(((k, p) for k, p in sorted(kinds.items()) if k not in WRITEBACK + IN_MEMORY), None)


def remote(kinds):
    """Return a network file system: its type and a path, or None. Other processes do its transfers."""
    return next(((k, p) for k, p in sorted(kinds.items()) if k in REMOTE or k.startswith("fuse.")), None)
