"""Which commands of facts.py have something to tell of this host that its files do not.

Standard library only, Python 3.6 and later.
"""

import glob
import os
import re

from reading import read

CONVENTIONAL = 256  # bytes of the configuration of a PCI function; one with a link, or a host bridge, has 4096
HOST_BRIDGE = "0x0600"
ACCELERATES = ("0x03", "0x0b", "0x12")  # classes of PCI: displays, processors, accelerators
X86 = ("x86_64", "i686")
MARKS = ("/run/systemd/container", "/.dockerenv", "/run/.containerenv")  # of containers; systemd reads them too


def has_links():
    """Whether a PCI function has a link, or is of a class in ACCELERATES. Where none is, as in small virtual machines,
    lspci has nothing but names to tell, and takes 30 ms of CPU."""
    for path in glob.glob("/sys/bus/pci/devices/*"):
        kind = read(path + "/class") or ""
        try:
            is_express = os.stat(path + "/config").st_size > CONVENTIONAL and not kind.startswith(HOST_BRIDGE)
        except OSError:  # gone meanwhile
            continue
        if is_express or kind[:4] in ACCELERATES or os.path.exists(path + "/current_link_speed"):
            return True
    return not os.path.isdir("/sys/bus/pci/devices")


def has_no_nodes():
    """Whether sysfs, which is read anyway, does not tell of NUMA nodes."""
    return not os.path.isdir("/sys/devices/system/node/node0")


def is_undecided():
    """Whether files leave open what this is: a machine, a virtual one or a container. A mark tells of a container; who
    sees the kernel's threads is in none, and then the flags of an x86 show a hypervisor."""
    if any(map(os.path.exists, MARKS)):
        return False
    return os.uname().machine not in X86 or read("/proc/2/comm") != "kthreadd\n"


NEEDED = {"lspci": has_links, "numactl": has_no_nodes, "systemd_detect_virt": is_undecided}


def has_caches(lscpu):
    """Whether lscpu tells how large caches are, in bytes, and how many. It has only sums, which mix those of cores that
    differ."""
    sums = re.findall(r"(\d+) \((\d+) instances?\)", lscpu["out"])
    return bool(sums) and all(int(every) % int(number) == 0 for every, number in sums)
