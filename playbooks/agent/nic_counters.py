"""Read a host's network counters of congestion and loss: pause frames, ECN marks, CNPs, discards, retries.

Imported by the host's sampler, which reads the counters before and after a step, because drivers may query their card.
Standard library only, Python 3.6 and later.
"""

import array
import ctypes
import fcntl
import glob
import os
import re
import socket
import struct

SIOCETHTOOL, GSTRINGS, GSTATS, GSSET_INFO, STATS, WORD = 0x8946, 0x1B, 0x1D, 0x37, 1, 32  # linux/ethtool.h
MOST_DEVICES = 16
MOST_COUNTERS = 128  # of a device
MOST = 1 << 53  # larger counts are invalid, because the archive stores only exact floats
SLACK = 8192  # maximum number of statistics; the kernel copies all of them, regardless of the requested number
KEPT = re.compile(r"pause|pfc|xoff|ecn|cnp|discard|drop|out_of_(?:buffer|sequence)|seq_err|retrans|ack_timeout", re.I)
# Counters of one ring, which the port's counters include.
RING = re.compile(r"\[[0-9]|ring|queue|xdp|(?:^|_)(?:[rt]xq?|ch)_?[0-9]", re.I)
NAME = re.compile(r"[A-Za-z0-9_.:-]{1,63}$")


def statistics(nic):
    """Return the counters that "ethtool -S" prints for a network device, by name; {} if there are none."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:

        def ask(data):
            pointer = ctypes.c_void_p(data.buffer_info()[0]).value
            fcntl.ioctl(sock, SIOCETHTOOL, struct.pack("16sP16x", os.fsencode(nic), pointer))
            return data.tobytes()

        try:
            info = ask(array.array("B", struct.pack("=IIQI", GSSET_INFO, 0, 1 << STATS, 0)))
            number = struct.unpack("=I", info[16:20])[0]
            if not struct.unpack("=Q", info[8:16])[0] or not 0 < number < 1 << 16:
                return {}
            room = number + SLACK
            names = ask(array.array("B", struct.pack("=III", GSTRINGS, STATS, number) + bytes(room * WORD)))
            values = ask(array.array("B", struct.pack("=II", GSTATS, number) + bytes(room * 8)))
        except OSError:
            return {}
    if struct.unpack("=I", names[8:12])[0] != number or struct.unpack("=I", values[4:8])[0] != number:
        return {}  # their number has just changed, so names and values may not match
    names, values = names[12:], values[8 : 8 + number * 8]
    words = [names[n * WORD : (n + 1) * WORD].partition(b"\0")[0] for n in range(number)]
    numbers = struct.unpack("=%dQ" % number, values)
    return {words[n].decode(errors="replace").strip(): numbers[n] for n in range(number)}


def kept(counts):
    """Return the counters of a device that show congestion or loss on its port."""
    names = sorted(n for n in counts if NAME.match(n) and KEPT.search(n) and not RING.search(n))
    return {name: counts[name] for name in names[:MOST_COUNTERS]}


def port(folder):
    """Return the counters of one port of an RDMA device."""
    counts = {}
    for path in [*glob.glob(folder + "/hw_counters/*"), folder + "/counters/port_xmit_discards"]:
        try:
            with open(path) as file:
                value = file.read(64).strip()
        except (OSError, UnicodeDecodeError):
            continue
        if value.isdigit():
            counts[os.path.basename(path)] = int(value)
    return kept(counts)


def counters(root=""):
    """Return the current counters by device: "net:eth0", "rdma:mlx5_0/1"."""
    devices = {}
    for path in sorted(glob.glob(root + "/sys/class/net/*/device"))[:MOST_DEVICES]:
        nic = path.split("/")[-2]
        devices["net:" + os.fsencode(nic).decode("utf-8", "replace")] = kept(statistics(nic))
    for path in sorted(glob.glob(root + "/sys/class/infiniband/*/ports/[0-9]*"))[:MOST_DEVICES]:
        parts = path.split("/")
        devices["rdma:%s/%s" % (parts[-3], parts[-1])] = port(path)
    return {device: counts for device, counts in devices.items() if counts}


def grown(before, after):
    """Return the growth of each counter. Omit counters that fell, because they were reset, and values too large to be
    counts.
    """
    return {
        device: {
            n: value - before[device][n]
            for n, value in counts.items()
            if n in before[device] and before[device][n] <= value < MOST
        }
        for device, counts in after.items()
        if device in before
    }
