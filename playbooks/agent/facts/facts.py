"""Print facts about this host as one JSON document: the raw text of commands and files, parsed elsewhere.

session.py runs this. Run it alone with ``python3 facts.py '{"probe": ["fio"], "work": "/var/tmp/x"}'``. Options:
``probe``: commands to look for; ``work``: the folder for jobs, which need not exist; ``seconds``: the time limit of a
command (15: nvidia-smi wakes every GPU whose persistence mode is off); ``torch``: Pythons to query for their torch;
``containers``: images to query; ``interpreter``: the text of interpreter.py, which runs these queries. Root gets more
facts: memory slots, PCIe capabilities of bridges, and whether a disk is blank.

Standard library only, Python 3.6 and later. It changes nothing on the host. Serial numbers, UUIDs and MAC addresses
are dropped here, before anything leaves the host.
"""

import errno
import glob
import json
import os
import pwd
import re
import sys
import time

import usage
from commands import LATE, Asked, answer, collect, environment, find
from link_modes import supported
from needed import MARKS, NEEDED, has_caches
from reading import first_stanza, matches, read
from trim import TRIM, only_lines

CPU = "/sys/devices/system/cpu/"
BLOCK = "NAME,KNAME,PKNAME,MAJ:MIN,TYPE,SIZE,ROTA,RO,RM,MODEL,TRAN,SCHED,FSTYPE,MOUNTPOINT"
# Argument vectors to try for each command; the first that succeeds counts. Options depend on the version
# (util-linux: lscpu -J 2.30, -B 2.34, numbers of caches 2.37, lsblk -J 2.27, PTTYPE 2.33, MOUNTPOINTS 2.37).
COMMANDS = {
    "lscpu": [["lscpu", "-J", "-B"], ["lscpu", "-J"], ["lscpu"]],
    "numactl": [["numactl", "-H"]],
    "dmidecode": [["dmidecode", "-t", "bios", "-t", "system", "-t", "processor", "-t", "memory"]],
    "lsblk": [
        ["lsblk", "-J", "-b", "-o", BLOCK + ",PTTYPE,MOUNTPOINTS"],
        ["lsblk", "-J", "-b", "-o", BLOCK],
        ["lsblk", "-P", "-b", "-o", BLOCK],
    ],
    "ip": [["ip", "-o", "addr"]],
    "lspci": [["lspci", "-D", "-vvv"]],
    "nvidia_smi": [["nvidia-smi", "-q", "-x"]],
    "rocm_smi": [
        ["rocm-smi", "--showproductname", "--showmeminfo", "vram", "--showdriverversion", "--showmaxpower", "--json"]
    ],
    "npu_smi": [["npu-smi", "info"]],
    "systemd_detect_virt": [["systemd-detect-virt"]],
    "gcc": [["gcc", "--version"]],
    "nvcc": [["nvcc", "--version"]],
    "mpirun": [["mpirun", "--version"]],
    "nvidia_topo": [["nvidia-smi", "topo", "-m"]],
    "nvlink": [["nvidia-smi", "nvlink", "-s"]],
    "nvlink_errors": [["nvidia-smi", "nvlink", "-e"]],
}
NEED_ROOT = ("dmidecode",)
UNNEEDED = "not needed"
TORCH_SECONDS = 50.0  # timeout; importing torch for the first time reads gigabytes
FILES = (
    "/etc/os-release",
    "/etc/machine-id",
    *MARKS,
    "/proc/1/cgroup",
    "/proc/cmdline",
    "/proc/meminfo",
    "/proc/loadavg",
    "/proc/uptime",
    "/proc/swaps",
    "/proc/self/mountinfo",
    "/proc/sys/kernel/numa_balancing",
    "/sys/fs/cgroup/cpu.max",
    "/sys/fs/cgroup/cpu/cpu.cfs_quota_us",
    "/sys/fs/cgroup/cpu/cpu.cfs_period_us",
    "/sys/hypervisor/type",
    "/sys/kernel/mm/transparent_hugepage/enabled",
    "/sys/devices/system/clocksource/clocksource0/current_clocksource",
    CPU + "online",
    CPU + "offline",
    CPU + "smt/control",
    CPU + "smt/active",
    CPU + "cpufreq/boost",
    CPU + "intel_pstate/no_turbo",
    CPU + "vulnerabilities/*",
    "/etc/nccl.conf",
    "/opt/rocm/.info/version",
    "/usr/local/Ascend/ascend-toolkit/latest/*-linux/ascend_toolkit_install.info",
    "/usr/local/Ascend/cann/*-linux/ascend_toolkit_install.info",
    "/sys/class/dmi/id/bios_vendor",
    "/sys/class/dmi/id/bios_version",
    "/sys/class/dmi/id/bios_date",
    "/sys/class/dmi/id/sys_vendor",
    "/sys/class/dmi/id/product_name",
    "/sys/devices/system/node/online",
    "/sys/devices/system/node/node[0-9]*/cpulist",
    "/sys/devices/system/node/node[0-9]*/distance",
    "/sys/devices/system/node/node[0-9]*/meminfo",
    "/sys/devices/system/node/node[0-9]*/numastat",
    "/sys/devices/system/edac/mc/mc[0-9]*/[cu]e_count",
    "/sys/class/net/*/speed",
    "/sys/class/net/*/mtu",
    "/sys/class/net/*/operstate",
    "/sys/class/net/*/device/numa_node",
    "/sys/class/net/*/statistics/rx_missed_errors",
    "/sys/class/net/*/ecn/roce_[nr]p/enable/[0-9]",
    "/sys/class/infiniband/*/node_type",
    "/sys/class/infiniband/*/ports/1/link_layer",
    "/sys/class/infiniband/*/ports/1/hw_counters/np_ecn_marked_roce_packets",
    "/sys/class/infiniband/*/ports/1/hw_counters/[nr]p_cnp_*",
)
MOST_CARDS = 32  # maximum network interfaces with a device that ethtool queries
# Folders of libraries for multi-node GPU work. The names of their link targets contain the version.
LIBRARIES = ("libnccl.so", "librccl.so")
LIBRARY_FOLDERS = (
    "/usr/lib/*-linux-gnu",
    "/usr/lib64",
    "/usr/local/lib",
    "/usr/local/cuda/lib64",
    "/usr/local/nccl*/lib",
    "/opt/rocm/lib",
)
# The parent of a device, for example the PCI function of a virtio interface.
LINKS = (
    "/sys/class/net/*/device",
    "/sys/class/net/*/device/..",
    "/sys/class/net/*/device/driver",
    "/sys/class/infiniband/*/device/net/*",
)
# One value per CPU or device. Most are equal, so they are stored as counts by value.
COUNTED = {
    "scaling_governor": CPU + "cpufreq/policy*/scaling_governor",
    "energy_performance_preference": CPU + "cpufreq/policy*/energy_performance_preference",
    "cpuinfo_max_freq": CPU + "cpufreq/policy*/cpuinfo_max_freq",
    "thread_siblings_list": CPU + "cpu[0-9]*/topology/thread_siblings_list",
    "physical_package_id": CPU + "cpu[0-9]*/topology/physical_package_id",
    "iommu_group_type": "/sys/kernel/iommu_groups/*/type",
}
# Parameters of the kernel that identify a host or may hold a credential; the rest of a URL with a user is dropped too.
PRIVATE = r"(?i)((?:uuid|bootif|[\w.-]*(?:token|secret|passw(?:or)?d|pwd|credential\w*|key))=|\S+?://(?=\S*@))\S+"
PCI = ("class", "vendor", "device", "current_link_speed", "max_link_speed", "current_link_width", "max_link_width")


def read_files():
    """Return the text of every readable file in FILES by path. Reduce long files to the relevant lines."""
    texts = {}
    for pattern in FILES:
        for path in glob.glob(pattern) if "*" in pattern else [pattern]:
            text = read(path)
            if text is not None:
                texts[path] = text
    mounts = texts.get("/proc/self/mountinfo")
    if mounts is not None:  # keep only mounts that may be on a disk, since a container host has thousands of others
        texts["/proc/self/mountinfo"] = only_lines(r" - \S+ /dev/| - (zfs|btrfs|bcachefs) ")(mounts)
    if "/proc/cmdline" in texts:
        texts["/proc/cmdline"] = re.sub(PRIVATE, r"\1(dropped)", texts["/proc/cmdline"])
    stanza = first_stanza("/proc/cpuinfo")
    if stanza is not None:
        texts["/proc/cpuinfo"] = stanza
    return texts


def counted():
    """Return the number of files with each value, for every name in COUNTED."""
    result = {}
    for name, pattern in COUNTED.items():
        values = result[name] = {}
        for path in glob.glob(pattern):
            text = read(path)
            if text is not None:
                values[text.strip()] = values.get(text.strip(), 0) + 1
    return result


def idle_states():
    """Return the idle states of CPUs with their name and wake-up time (µs).

    Each also has the total time of all CPUs in it (µs since boot), the number of CPUs that have it, and the number of
    CPUs on which it is disabled.
    """
    states = {}
    for path in glob.glob(CPU + "cpu[0-9]*/cpuidle/state[0-9]*"):
        number = os.path.basename(path)[len("state") :]
        values = [(read(path + "/" + name) or "").strip() for name in ("name", "latency", "time", "disable")]
        if not all(value.isdigit() for value in (number, *values[1:])):
            continue
        state = states.setdefault(
            number, {"name": values[0], "latency_us": int(values[1]), "us": 0, "cpus": 0, "disabled": 0}
        )
        state["us"] += int(values[2])
        state["cpus"] += 1
        state["disabled"] += values[3] != "0"
    return states


def cards():
    """Return at most MOST_CARDS network interfaces with their own device (no bridges, no tunnels)."""
    paths = sorted(glob.glob("/sys/class/net/*/device"))
    return [path.split("/")[4] for path in paths][:MOST_CARDS]


def interrupts(names):
    """Return the interrupts of each interface, with the CPUs that may handle them."""
    result = {}
    for name in names:
        for path in glob.glob("/sys/class/net/" + name + "/device/msi_irqs/[0-9]*"):
            number = os.path.basename(path)
            cpus = read("/proc/irq/" + number + "/effective_affinity_list") or read(
                "/proc/irq/" + number + "/smp_affinity_list"
            )
            if cpus is not None:
                result.setdefault(name, {})[number] = cpus.strip()
    return result


def ethtool(names, seconds):
    """Return ethtool's report on the rings (-g) and pauses (-S) of each interface."""
    path = find("ethtool")
    deadline = time.time() + seconds
    result = {}
    for name in names if path else ():
        rings, counters = (answer([path, flag, name], deadline - time.time()) for flag in ("-g", "-S"))
        counters["out"] = only_lines(r"pause")(counters["out"])
        result[name] = {"rings": rings, "counters": counters}
    return result


def caches():
    """Return every cache once as [level, type, size, CPUs that share it], for an lscpu that does not count caches."""
    rows = set()
    for index in glob.glob(CPU + "cpu[0-9]*/cache/index[0-9]*"):
        values = [read(index + "/" + name) for name in ("level", "type", "size", "shared_cpu_list")]
        if None not in values:
            rows.add(tuple(value.strip() for value in values))
    return sorted(rows)


def libraries():
    """Return the names of the files to which the links of each name in LIBRARIES resolve."""
    files = {name: set() for name in LIBRARIES}
    for folder in {path for pattern in LIBRARY_FOLDERS for path in glob.glob(pattern)}:
        try:
            entries = os.listdir(folder)
        except OSError:
            continue  # missing, or not accessible
        for name in LIBRARIES:
            links = [entry for entry in entries if entry.startswith(name + ".")]
            files[name].update(os.path.basename(os.path.realpath(os.path.join(folder, link))) for link in links)
    return {name: sorted(values) for name, values in files.items()}


def xids(root=""):
    """Return the number of NVIDIA's Xid messages in the kernel log by code, or None if the log is unreadable.

    Without NVIDIA's driver there are none.
    """
    if not os.path.isdir(root + "/proc/driver/nvidia"):
        return {}
    return matches(root + "/dev/kmsg", r"NVRM: Xid \(PCI:[0-9a-fA-F:.]+\): (\d{1,5})\b")


def linked(root=""):
    """Return the last name of each link target in LINKS by path. ``root``: the parent folder of /sys."""
    paths = [path for pattern in LINKS for path in glob.glob(root + pattern)]
    return {path[len(root) :]: os.path.basename(os.path.realpath(path)) for path in paths}


def pci():
    """Return the sysfs values of each PCI function with a link, in case lspci is missing or lacks access to them."""
    functions = {}
    for path in glob.glob("/sys/bus/pci/devices/*"):
        if os.path.exists(path + "/current_link_speed"):
            values = {name: read(path + "/" + name) for name in PCI}
            functions[os.path.basename(path)] = {n: v.strip() for n, v in values.items() if v is not None}
    return functions


def holders():
    """Return the devices (md, dm, bcache) that hold each disk and partition."""
    result = {}
    for disk in glob.glob("/sys/block/*"):
        name = os.path.basename(disk)
        try:
            parts = {part: os.path.join(disk, part) for part in os.listdir(disk) if part.startswith(name)}
            for part, folder in dict(parts, **{name: disk}).items():
                names = sorted(os.listdir(os.path.join(folder, "holders")))
                if names:
                    result[part] = names
        except OSError:
            continue  # it disappeared meanwhile
    return result


def claimed():
    """Return the result of an exclusive open of each disk for reading: ``free``, or an errno name.

    EBUSY means that a mount (in any namespace), swap, md, dm, ZFS or a program has claimed the disk or one of its
    partitions (open(2), O_EXCL). Nothing is read from the device. Only root does this, and never for removable media.
    """
    answers = {}
    for path in glob.glob("/sys/block/*"):
        name = os.path.basename(path)
        if read(path + "/removable") != "0\n" or read(path + "/size") in (None, "0\n"):
            continue
        try:
            os.close(os.open("/dev/" + name.replace("!", "/"), os.O_RDONLY | os.O_EXCL | os.O_NONBLOCK))
            answers[name] = "free"
        except OSError as error:
            answers[name] = errno.errorcode.get(error.errno, str(error.errno))
    return answers


def probed(names, seconds):
    """Return blkid's probe of each disk: rc 0 and its output, or rc 2 for a disk without any signature.

    lsblk only repeats udev's database, which is empty if udev does not run (containers, small systems).
    """
    deadline = time.time() + seconds
    path = find("blkid")
    return {
        name: answer(
            [path, "-p", "-s", "TYPE", "-s", "PTTYPE", "/dev/" + name.replace("!", "/")], deadline - time.time()
        )
        for name in names
        if path
    }


def space(work):
    """Return the free and total bytes of the file system of ``work``, using its nearest existing parent."""
    path = os.path.abspath(work)
    while not os.path.exists(path):
        path = os.path.dirname(path)
    try:
        stat = os.statvfs(path)
    except OSError as error:
        return {"work_dir": work, "checked": path, "error": str(error)}
    real, best, kind = os.path.realpath(path), "", None
    for line in (read("/proc/mounts") or "").splitlines():
        fields = line.split()
        if len(fields) < 3:
            continue
        point = re.sub(r"\\([0-7]{3})", lambda match: chr(int(match.group(1), 8)), fields[1])
        inside = point in ("/", real) or real.startswith(point + "/")
        if inside and len(point) >= len(best):  # a later mount at the same point hides an earlier one
            best, kind = point, fields[2]
    return {
        "work_dir": work,
        "checked": path,
        "bavail_bytes": stat.f_bavail * stat.f_frsize,
        "total_bytes": stat.f_blocks * stat.f_frsize,
        "fstype": kind,
    }


def listed(root, depth=4):
    """Return the files below ``root`` as relative paths, at most ``depth`` names deep."""
    paths = []
    for folder, folders, names in os.walk(root):
        inner = os.path.relpath(folder, root)
        level = 0 if inner == "." else inner.count(os.sep) + 1
        if level >= depth - 1:
            folders[:] = []
        paths += [os.path.normpath(os.path.join(inner, name)) for name in names]
    return sorted(paths)


def why_not(name, command):
    """Return why an entry of COMMANDS is not run; empty if it is run."""
    if find(command) is None:
        return "not found"
    if name in NEEDED and not NEEDED[name]():
        return UNNEEDED
    return "needs root" if name in NEED_ROOT and os.geteuid() != 0 else ""


def ask(options):
    """Start the commands. Return the running commands by name, and the results of commands that do not run."""
    to_run = dict(COMMANDS)
    if os.geteuid() != 0:
        to_run["sudo"] = [["sudo", "-n", "true"]]
    running_commands, refused, env = {}, {}, environment()
    for name, variants in to_run.items():
        reason = why_not(name, variants[0][0])
        if reason:
            refused[name] = {"argv": variants[0], "rc": None, "out": "", "err": reason}
        else:
            path = find(variants[0][0])
            running_commands[name] = Asked([[path, *argv[1:]] for argv in variants], options["seconds"], env)
    return running_commands, refused


def ask_programs(option, names, program):
    """Return the queries to ``program`` (interpreter.py) by name: about the torch of a Python, or an image."""
    return {name: Asked([[sys.executable, "-c", program, option, name]], TORCH_SECONDS) for name in names}


def user():
    try:
        return pwd.getpwuid(os.geteuid()).pw_name
    except KeyError:  # in a container, the user id may have no name
        return str(os.geteuid())


def gather(arguments):
    """Return all facts about this host as one document."""
    options = {"probe": [], "work": "/var/tmp", "seconds": 15.0, "torch": [], "containers": [], "interpreter": ""}
    options.update(arguments)
    options["work"] = options["work"].replace("{uid}", str(os.geteuid()))
    running, users = usage.running(), usage.users()  # before this program starts others
    running_commands, refused = ask(options)
    wait_commands = collect(running_commands)
    wait_torch = collect(ask_programs("--check", options["torch"], options["interpreter"]))
    wait_containers = collect(ask_programs("--image", options["containers"], options["interpreter"]))
    uname, root = os.uname(), os.geteuid() == 0
    doc = {
        "schema": 1,
        "hostname": uname.nodename,
        "slurm_node": os.environ.get("SLURMD_NODENAME"),
        "user": user(),
        "euid": os.geteuid(),
        "python": sys.executable,
        "python_version": "{}.{}.{}".format(*sys.version_info[:3]),
        "uname": {
            "system": uname.sysname,
            "release": uname.release,
            "version": uname.version,
            "machine": uname.machine,
        },
        "affinity": len(os.sched_getaffinity(0)),
        "files": read_files(),
        "links": linked(),
        "nics": sorted(n for n in os.listdir("/sys/class/net") if os.path.isdir("/sys/class/net/" + n))
        if os.path.isdir("/sys/class/net")
        else [],
        "counted": counted(),
        "idle_states": idle_states(),
        "interrupts": interrupts(cards()),
        "link_modes": {name: modes for name in cards() for modes in [supported(name)] if modes},
        "libraries": libraries(),
        "xids": xids(),
        "running": running,
        "sessions": len(users),
        "users": users,
        "ports": usage.ports(),
        "holders": holders(),
        "claimed": claimed() if root else {},
        "work": options["work"],
        "statvfs": space(options["work"]),
        "cached": listed(os.path.join(options["work"], "tools")),
        "which": {name: find(name) for name in options["probe"]},
    }
    doc["ethtool"] = ethtool(cards(), options["seconds"])
    # Read only unclaimed disks. The others are known to be in use.
    doc["probed"] = probed([n for n, state in doc["claimed"].items() if state == "free"], options["seconds"])
    commands = dict(wait_commands(), **refused)
    for name, trim in TRIM.items():
        commands[name]["out"] = trim(commands[name]["out"])
    if not has_caches(commands["lscpu"]):
        doc["caches"] = caches()
    if "LnkCap:" not in commands["lspci"]["out"]:
        doc["pci"] = pci()
    doc["torch"], doc["containers"] = wait_torch(), wait_containers()
    sudo = commands.pop("sudo", None)
    doc["sudo"] = None if sudo is None or sudo["err"] == LATE else sudo["rc"] == 0
    doc["commands"] = commands
    doc["time"] = time.time()
    return doc


def main():
    sys.stdout.write(json.dumps(gather(json.loads(sys.argv[1]) if len(sys.argv) > 1 else {})) + "\n")
    sys.stdout.flush()
    os._exit(0)  # do not wait for commands that do not answer


if __name__ == "__main__":
    main()
