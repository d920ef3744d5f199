"""Put a job into control groups that enforce its shares: a systemd scope,

or separate groups. systemd starts the job in a scope with these limits. On a host without systemd, the runner
creates groups below its current group. In both cases, the effective limits of the group and of all parent groups are
read back from the kernel before any step runs.

With ``KillUserProcesses=yes``, logind kills all processes of a session at its end. A separate scope is not part of the
session. Other jobs start without systemd, which is faster.

Standard library only, Python 3.6 and later.
"""

import os
import pwd
import re
import subprocess

import disks
import network
from disks import lines_of

PREFIX = "fleetmark-"  # prefix of the names of groups
GROUPS = "groups"  # file in the job's folder that lists the groups created by its runner
PERIOD_US = 100000
LEAST_QUOTA_US = 1000  # the minimum that the kernel accepts
UNHELD_SHARE = "its suite has shares, but %s"
NOT_HELD = UNHELD_SHARE % "%s; %s"
REMEDY = "run as root (--become), or remove `shares` from the suite"
SESSION = re.compile(r"/user-(\d+)\.slice/session-[^/]+\.scope", re.ASCII)
ASK_S = 10.0
WORDS = {"cpu": "CPU time", "memory": "memory", "disk": "disk transfers"}
CONTROLLERS = {"cpu": ("cpu",), "memory": ("memory",), "disk": ("io", "memory"), "network": ()}
BUFFERED = (
    "the kernel limits buffered writes only with cgroup v2; boot it with "
    "systemd.unified_cgroup_hierarchy=1, or remove `disk` from `shares`"
)
UNHELD = (
    "the kernel does not limit buffered writes to %s, on which %s is; use --work-dir with a folder on ext4, XFS, Btrfs "
    "or F2FS, or remove `disk` from `shares`"
)
REMOTE = (
    "the kernel does not limit transfers of %s, on which %s is; use a local folder, or remove `network` from `shares`"
)
RDMA = "its programs can bypass the kernel with RDMA, which control groups cannot limit; remove `network` from `shares`"
ENDS = (
    "logind ends this job soon after %s logs out (KillUserProcesses=yes, no lingering); to keep it, run on the "
    "host: sudo loginctl enable-linger %s"
)


class NotHeld(Exception):
    """Report why the shares cannot be enforced."""


def resolved(shares):
    """Return the limits of this host: ``cpu`` in cores, ``memory`` in bytes, ``disk`` and ``network`` in bytes/s.

    ``shares``: ``cpu``, a share of the CPU time; ``memory``, a share of the memory or, if above 1, a number of bytes;
    ``disk`` and ``network``, bytes/s of each disk and of all network interfaces, in each direction.
    """
    limits = {}
    if shares.get("cpu"):
        limits["cpu"] = shares["cpu"] * os.sysconf("SC_NPROCESSORS_ONLN")
    if shares.get("memory"):
        memory = shares["memory"]
        total = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
        limits["memory"] = int(memory if memory > 1 else memory * total)
    limits.update((kind, int(shares[kind])) for kind in ("disk", "network") if shares.get(kind))
    return limits


def enter(shares, folder, is_scoped, paths=()):
    """Move this process into groups that enforce ``shares``. Return the original groups, for ``leave``.

    ``is_scoped``: the process is already in a systemd scope. The new groups are recorded in ``folder`` for
    ``remove``. ``paths``: files and folders that the job uses. Raise NotHeld if the kernel does not enforce the
    shares.
    """
    limits = resolved(shares)
    refuse_paths(limits, paths)
    left = []
    try:
        places = hierarchies()
        if not is_scoped:
            left = make(limits, places, folder)
            places = hierarchies()
        for kind in sorted(limits):
            check(kind, limits[kind], places)
        if "network" in limits:
            hold_network(limits["network"], places, is_scoped)
    except (OSError, ValueError, NotHeld) as error:
        leave(left, folder)
        if isinstance(error, NotHeld):
            raise
        raise NotHeld(NOT_HELD % ("this user cannot make a control group there (%s)" % error, REMEDY)) from error
    return left


def refuse_paths(limits, paths, root=""):
    """Raise NotHeld if groups do not limit transfers to the file systems of ``paths`` or by RDMA."""
    kinds = disks.file_systems(paths, root)
    if "disk" in limits and disks.unheld(kinds):
        raise NotHeld(UNHELD_SHARE % (UNHELD % disks.unheld(kinds)))
    if "network" in limits and disks.remote(kinds):
        raise NotHeld(UNHELD_SHARE % (REMOTE % disks.remote(kinds)))
    if "network" in limits and network.has_rdma(root):
        raise NotHeld(UNHELD_SHARE % RDMA)


def hold_network(rate, places, is_scoped):
    """Limit the network of this process's cgroup (v2). Raise NotHeld if the process has no cgroup for itself."""
    group = next((place.group for place in places if place.version == 2), None)
    if group is None:
        raise NotHeld(NOT_HELD % ("it has no cgroup v2, which a network limit requires", REMEDY))
    others = set(lines_of(os.path.join(group, "cgroup.procs"))) - {str(os.getpid()), str(os.getppid())}
    if is_scoped and others:
        raise NotHeld(NOT_HELD % ("systemd did not create a control group for the job", REMEDY))
    try:
        network.hold(group, rate)
    except OSError as error:
        raise NotHeld(NOT_HELD % ("the kernel does not limit its network (%s)" % error, REMEDY)) from error


def check(kind, limit, places):
    """Raise NotHeld if no group of this process limits ``kind``, or if its limit is above ``limit``."""
    if kind == "network":
        return  # its program is loaded last, and is checked separately
    if kind == "disk":
        folders = [folder for place in places if place.has("disk") for folder in place.ancestors()]
        if any("blkio" in place.controllers for place in places):
            raise NotHeld(UNHELD_SHARE % BUFFERED)
        if not disks.is_held(limit, folders, disks.devices().values()):
            raise NotHeld(NOT_HELD % ("the kernel does not limit its %s" % WORDS[kind], REMEDY))
        return
    in_force = [n for n in limits_of(kind, places) if n is not None]
    if not in_force or min(in_force) > limit * 1.01 + 4096 * (kind == "memory"):  # the kernel rounds to pages
        raise NotHeld(NOT_HELD % ("the kernel does not limit its %s" % WORDS[kind], REMEDY))


class Hierarchy(object):
    """A mounted tree of groups: its ``version``, its ``controllers``, and this process's group in it."""

    def __init__(self, version, controllers, top, group):
        self.version, self.controllers, self.top, self.group = version, controllers, top, group

    def has(self, kind):
        """Return whether groups of this tree can limit ``kind``. Only version 2 can limit disks and networks."""
        is_able = self.version == 2 or kind in ("cpu", "memory")
        return is_able and self.controllers.issuperset(CONTROLLERS[kind])

    def ancestors(self):
        """Return the group and all groups above it that are mounted, the group first."""
        folders = [self.group]
        while folders[-1] != self.top and len(folders[-1]) > len(self.top):
            folders.append(os.path.dirname(folders[-1]))
        return folders


def hierarchies(root=""):
    """Return the mounted hierarchies that contain this process. ``root``: the parent folder of /proc."""
    paths = {}
    for line in lines_of(root + "/proc/self/cgroup"):
        _, names, path = line.split(":", 2)
        paths[frozenset(names.split(",")) if names else None] = path
    trees = {}
    for line in lines_of(root + "/proc/self/mountinfo"):
        before, _, after = line.partition(" - ")
        mounted, top = before.split()[3:5]
        kind, _, options = after.split()
        options = options.split(",")
        names = None if kind == "cgroup2" else next((n for n in paths if n and n <= set(options)), ())
        if kind not in ("cgroup", "cgroup2") or names not in paths or names in trees:
            continue
        path = paths[names]
        inner = os.path.relpath(path, mounted) if path.startswith(mounted) else "."
        group = os.path.normpath(os.path.join(top, inner))
        if not os.path.isdir(group):
            group = top
        controllers = names if names else controllers_of(group)
        trees[names] = Hierarchy(1 if names else 2, controllers, top, group)
    return list(trees.values())


def controllers_of(group):
    return frozenset(" ".join(lines_of(os.path.join(group, "cgroup.controllers"))).split())


def limits_of(kind, places):
    """Return the limits of the groups of this process and of those above, None for a group without one."""
    read = {("cpu", 1): cpu_of_v1, ("cpu", 2): cpu_of_v2, ("memory", 1): memory_of_v1, ("memory", 2): memory_of_v2}
    return [read[kind, place.version](folder) for place in places if place.has(kind) for folder in place.ancestors()]


def cpu_of_v1(folder):
    quota = number_in(folder, "cpu.cfs_quota_us")
    return quota / number_in(folder, "cpu.cfs_period_us") if quota and quota > 0 else None


def cpu_of_v2(folder):
    words = " ".join(lines_of(os.path.join(folder, "cpu.max"))).split()
    return int(words[0]) / int(words[1]) if len(words) == 2 and words[0] != "max" else None


def memory_of_v1(folder):
    return number_in(folder, "memory.limit_in_bytes")


def memory_of_v2(folder):
    return number_in(folder, "memory.max")


def number_in(folder, name):
    text = "".join(lines_of(os.path.join(folder, name)))
    return int(text) if text.lstrip("-").isdigit() else None


def make(limits, places, folder):
    """Move this process to a new group in each hierarchy with a controller of ``limits``. Return the groups it left."""
    left = []
    for place in places:
        kinds = [kind for kind in sorted(limits) if place.has(kind)]
        if kinds:
            group = make_group(place, kinds)
            with open(os.path.join(folder, GROUPS), "a") as record:
                record.write(group + "\n")
            for kind in kinds:
                limit(group, kind, limits[kind], place.version)
            write(group, "cgroup.procs", os.getpid())
            left.append(place.group)
    return left


def make_group(place, kinds):
    """Return a new group below this process's own, or, in version 2, below one that may have such groups.

    In version 2, only the root group may have both processes and child groups with limits.
    """
    if place.version == 1:
        return make_folder(place.group)
    needed = sorted({name for kind in kinds for name in CONTROLLERS[kind]})
    for parent in place.ancestors():
        try:
            if needed:
                write(parent, "cgroup.subtree_control", " ".join("+" + name for name in needed))
            return make_folder(parent)
        except OSError as error:
            last = error
    raise last


def make_folder(parent):
    group = os.path.join(parent, "%s%d-%d" % (PREFIX, os.geteuid(), os.getpid()))
    os.mkdir(group)
    return group


def limit(group, kind, value, version):
    if kind == "disk":
        disks.write_limits(group, value, disks.devices().values())
    if kind in ("disk", "network"):
        return  # a network is limited once this process is in the group
    if kind == "cpu":
        quota = max(LEAST_QUOTA_US, int(value * PERIOD_US))
        if version == 1:
            write(group, "cpu.cfs_period_us", PERIOD_US)
            write(group, "cpu.cfs_quota_us", quota)
        else:
            write(group, "cpu.max", "%d %d" % (quota, PERIOD_US))
        return
    names = ("memory.limit_in_bytes", "memory.memsw.limit_in_bytes") if version == 1 else ("memory.max",)
    for name in names:
        if os.path.exists(os.path.join(group, name)):  # a kernel may not count swap
            write(group, name, value)
    if version == 2 and os.path.exists(os.path.join(group, "memory.swap.max")):
        write(group, "memory.swap.max", 0)


def write(group, name, value):
    with open(os.path.join(group, name), "w") as out:
        out.write("%s" % value)


def leave(left, folder):
    """Move this process back to the groups that it ``left``, and remove those of the job."""
    for group in left:
        try:
            write(group, "cgroup.procs", os.getpid())
        except OSError:
            pass  # the job's group stays until the next job, or until the host is cleaned
    remove(folder)


def remove(folder):
    """Remove the groups that a runner of the job in ``folder`` created. A group with processes stays."""
    for group in lines_of(os.path.join(folder, GROUPS)):
        if not os.path.basename(group).startswith(PREFIX):
            continue  # not a name that ``make_folder`` gives
        try:
            os.rmdir(group)
        except OSError:
            pass  # it no longer exists, or contains a process


def has_systemd(root=""):
    """Return whether systemd runs this host, sd_booted(3). ``root``: the parent folder of /run."""
    return os.path.isdir(root + "/run/systemd/system")


def command(shares, root=""):
    """Return the words before a job's command that put it into a scope (empty: no scope is needed), and a warning.

    ``root``: the parent folder of /proc and /run.
    """
    user = ended_user(root) if has_systemd(root) else None
    if not has_systemd(root) or (user is None and not shares):
        return [], ""
    limits = resolved(shares or {})
    words = ["systemd-run", "--scope", "--quiet"]
    if os.geteuid() != 0:
        words.append("--user")
    if limits:
        words += [
            "-p",
            "Delegate=yes",
        ]  # otherwise, systemd ends the whole job if the kernel kills one tool for its memory use
    if "cpu" in limits:
        words += ["-p", "CPUQuota=%.2f%%" % (100 * limits["cpu"])]
    if "memory" in limits:
        words += ["-p", "MemoryMax=%d" % limits["memory"], "-p", "MemorySwapMax=0"]
    if "disk" in limits:
        words += ["-p", "MemoryAccounting=yes"]  # otherwise, buffered writes count for the parent group
        for path in disks.devices():
            words += ["-p", "IOReadBandwidthMax=%s %d" % (path, limits["disk"])]
            words += ["-p", "IOWriteBandwidthMax=%s %d" % (path, limits["disk"])]
    is_mortal = user is not None and os.geteuid() != 0 and property_of("show-user", user, "Linger") != "yes"
    return [*words, "--"], ENDS % (user, user) if is_mortal else ""


def environment():
    """Return the environment in which systemd-run reaches this user's own manager."""
    folder = "/run/user/%d" % os.geteuid()
    return dict({"XDG_RUNTIME_DIR": folder} if os.path.isdir(folder) else {}, **os.environ)


def ended_user(root=""):
    """Return the user whose session has this process and whose processes logind ends with the session; else None."""
    try:
        with open(root + "/proc/self/cgroup") as source:
            match = SESSION.search(source.read())
        name = pwd.getpwuid(int(match.group(1))).pw_name if match else None
    except (OSError, KeyError):
        return None
    if name is None or property_of("show-session", "", "KillUserProcesses") != "yes":
        return None
    only, excluded = (property_of("show-session", "", kind).split() for kind in ("KillOnlyUsers", "KillExcludeUsers"))
    return name if name not in excluded and (not only or name in only) else None


def property_of(verb, name, key):
    """Return a property that logind reports of a user, or of itself; empty if it does not answer."""
    words = ["loginctl", verb] + ([name] if name else []) + ["-p", key]
    try:
        done = subprocess.run(
            words,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            timeout=ASK_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.decode(errors="replace").strip().partition("=")[2]
