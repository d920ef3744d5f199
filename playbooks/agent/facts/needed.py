"""Decide which commands of facts.py report more about this host than its files do.

Standard library only, Python 3.6 and later.
"""

import glob
import os
import re

from reading import read

CONVENTIONAL = 256  # configuration bytes of a conventional PCI function; with a link, or for a host bridge, it has 4096
HOST_BRIDGE = "0x0600"
ACCELERATES = ("0x03", "0x0b", "0x12")  # PCI classes: displays, processors, accelerators
X86 = ("x86_64", "i686")
MARKS = ("/run/systemd/container", "/.dockerenv", "/run/.containerenv")  # in containers only


def has_links():
    """Return whether a PCI function has a link or a class in ACCELERATES.

    Otherwise, as in small virtual machines, lspci reports only names, and takes 30 ms of CPU time.
    """
    for path in glob.glob("/sys/bus/pci/devices/*"):
        kind = read(path + "/class") or ""
        try:
            is_express = os.stat(path + "/config").st_size > CONVENTIONAL and not kind.startswith(HOST_BRIDGE)
        except OSError:  # it disappeared meanwhile
            continue
        if is_express or kind[:4] in ACCELERATES or os.path.exists(path + "/current_link_speed"):
            return True
    return not os.path.isdir("/sys/bus/pci/devices")


def has_no_nodes():
    """Return whether sysfs, which is read anyway, lacks NUMA nodes."""
    return not os.path.isdir("/sys/devices/system/node/node0")


def is_undecided():
    """Return whether files do not show if this is a physical machine, a virtual machine or a container.

    A mark shows a container. Visible kernel threads exclude a container, and then the flags of an x86 CPU show a
    hypervisor.
    """
    if any(map(os.path.exists, MARKS)):
        return False
    return os.uname().machine not in X86 or read("/proc/2/comm") != "kthreadd\n"


NEEDED = {"lspci": has_links, "numactl": has_no_nodes, "systemd_detect_virt": is_undecided}


def has_caches(lscpu):
    """Return whether lscpu reports the size of caches in bytes, and their number.

    It has only totals, which mix the caches of different cores.
    """
    sums = re.findall(r"(\d+) \((\d+) instances?\)", lscpu["out"])
    return bool(sums) and all(int(every) % int(number) == 0 for every, number in sums)
