"""Read the error counters of a host: memory, PCIe, drives, network, NVLinks, throttling, kernel log.

Standard library only, Python 3.6 and later; it needs no root and starts no program. Counters that this user cannot read
are missing. As a program, it prints JSON once, or with --output rewrites a file for node_exporter's textfile
collector every --interval seconds.
"""

import argparse
import ctypes
import errno
import fcntl
import glob
import json
import os
import re
import struct
import sys
import time

import nic_counters
import usage

MOST_DEVICES = 512  # per kind
MOST_MESSAGES = 10000  # maximum messages of the kernel log per reading
MOST_COUNT = 1 << 53
NVME_ADMIN = 0xC0484E41  # NVME_IOCTL_ADMIN_CMD, linux/nvme_ioctl.h
NVME_COUNTS = {"media_errors": 160, "error_log_entries": 176, "unsafe_shutdowns": 144}  # NVM Express 2.0, figure 207
SMART_COUNTS = {5: "reallocated_sectors", 187: "uncorrectable_errors", 199: "crc_errors"}  # ATA attributes, raw values
SMART_PENDING = 197
MOST_LOG = 4096  # bytes of the last line of a log of attributes
NVML_TOTALS = {"crc_flit": 38, "crc_data": 45, "replay": 52, "recovery": 59, "ecc_data": 160}  # NVML_FI_DEV_NVLINK_*
NVML_BY_LINK = {"crc": 163, "replay": 161, "recovery": 162}  # the same for each link, from Hopper on
NVML_SIZES = {0: 0, 1: 4, 2: 8, 3: 8}  # bytes of nvmlValueType_t; of whole numbers only
MOST_LINKS, MOST_GPUS = 18, 64
EVENTS = (
    ("xid", re.compile(r"NVRM: Xid \(PCI:([0-9a-fA-F:.]+)\): (\d+)")),
    ("nvlink", re.compile(r"NVRM:.*nvlink.*(?:error|fail)", re.I)),
    (
        "machine_check",
        re.compile(r"\[Hardware Error\]: .*(?:Machine Check|MCE|CPU:? ?\d+)|mce: .*Hardware Error", re.I),
    ),
    ("io_error", re.compile(r"(?:I/O|critical medium|critical target) error, dev (\S+?),")),
    ("nvme_timeout", re.compile(r"nvme (\S+): I/O .*timeout", re.I)),
    ("out_of_memory", re.compile(r"Out of memory: Killed process")),
    ("link_down", re.compile(r"(\S+): (?:NIC )?Link is Down", re.I)),
    ("hung_task", re.compile(r"blocked for more than \d+ seconds|soft lockup")),
)


def text(path, limit=4096):
    """Return a small file's text, or nothing if it cannot be read."""
    try:
        with open(path, errors="replace") as file:
            return file.read(limit).strip()
    except (OSError, ValueError):
        return ""


def count(words):
    """Return a counter, or None if the text is not a plausible one."""
    try:
        value = int(words, 0)
    except ValueError:
        return None
    return value if 0 <= value < MOST_COUNT else None


def paths(pattern):
    return sorted(glob.glob(pattern))[:MOST_DEVICES]


def put(counts, device, name, value):
    if value is not None:
        counts.setdefault(device, {})[name] = value


def memory(root, counts):
    """Read EDAC errors by controller, and by module if available."""
    for folder in paths(root + "/sys/devices/system/edac/mc/mc[0-9]*"):
        controller = os.path.basename(folder)
        for name, kind in (("ce_count", "corrected"), ("ue_count", "uncorrected")):
            put(counts, "memory:" + controller, kind, count(text(folder + "/" + name)))
        for module in paths(folder + "/dimm[0-9]*"):
            label = text(module + "/dimm_label") or os.path.basename(module)
            for name, kind in (("dimm_ce_count", "corrected"), ("dimm_ue_count", "uncorrected")):
                value = count(text(module + "/" + name))
                if value:
                    put(counts, "memory:{}/{}".format(controller, label), kind, value)


def pcie(root, counts, gauges):
    """Read AER totals and the width of links. The width of a link and its limit are gauges."""
    for folder in paths(root + "/sys/bus/pci/devices/*"):
        device = "pcie:" + os.path.basename(folder)
        for kind in ("correctable", "nonfatal", "fatal"):
            total = re.search(r"^TOTAL_ERR_\w+ (\d+)$", text(folder + "/aer_dev_" + kind), re.M)
            if total:
                put(counts, device, kind, count(total.group(1)))
        width, limit = count(text(folder + "/current_link_width")), count(text(folder + "/max_link_width"))
        if width and limit and limit < 255:
            put(gauges, device, "link_width", width)
            put(gauges, device, "link_width_limit", limit)


def drives(root, counts, gauges):
    """Read the errors of SCSI and SATA drives, the attributes that smartd logs, and the health log of NVMe drives that
    this user may open.
    """
    for path in paths(root + "/sys/block/*/device/ioerr_cnt"):
        put(counts, "drive:" + path.split("/")[-3], "io_errors", count(text(path)))
    for path in paths(root + "/var/lib/smartmontools/attrlog.*.ata.csv"):
        device = "drive:" + os.path.basename(path)[len("attrlog.") : -len(".ata.csv")]
        for number, value in smart_attributes(path):
            if number in SMART_COUNTS:
                put(counts, device, SMART_COUNTS[number], value)
            elif number == SMART_PENDING:
                put(gauges, device, "pending_sectors", value)
    for path in paths(root + "/dev/nvme[0-9]*"):
        if re.search(r"/nvme\d+$", path):
            log = nvme_log(path)
            if log:
                decode_nvme("drive:" + os.path.basename(path), log, counts, gauges)


def smart_attributes(path):
    """Return (number, raw value) of each attribute in the last line of a log that smartd keeps of a SATA drive."""
    try:
        with open(path, "rb") as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - MOST_LOG))
            lines = file.read(MOST_LOG).decode(errors="replace").splitlines()
    except OSError:
        return []
    pairs = re.findall(r"\t(\d{1,3});\d{1,3};(\d{1,16});", lines[-1] if lines else "")
    return [(int(number), count(value)) for number, value in pairs]


def nvme_log(path):
    """Return the SMART log page of an NVMe drive (512 bytes), or nothing if this user may not read it."""
    buffer = ctypes.create_string_buffer(512)
    words = (512 // 4 - 1) << 16 | 0x02
    head = (2, 0, 0, 0xFFFFFFFF, 0, 0, 0, ctypes.addressof(buffer), 0, 512)  # Get Log Page of the whole drive
    command = struct.pack("=BBHIIIQQIIIIIIIIII", *(*head, words, 0, 0, 0, 0, 0, 2000, 0))
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    except OSError:
        return b""
    try:
        fcntl.ioctl(fd, NVME_ADMIN, command)
        return buffer.raw
    except OSError:
        return b""
    finally:
        os.close(fd)


def decode_nvme(device, log, counts, gauges):
    """Store the counters of a SMART / Health Information log page."""
    for name, offset in NVME_COUNTS.items():
        value = int.from_bytes(log[offset : offset + 16], "little")
        put(counts, device, name, value if value < MOST_COUNT else None)
    put(gauges, device, "critical_warning", log[0])
    put(gauges, device, "spare_percent", log[3])
    put(gauges, device, "used_percent", log[5])


def network(root, counts):
    """Read errors of network ports, and their counters of congestion and loss."""
    for path in paths(root + "/sys/class/net/*/device"):
        folder = os.path.dirname(path)
        device = "net:" + os.path.basename(folder)
        for name in ("rx_errors", "tx_errors", "rx_crc_errors", "rx_missed_errors", "tx_carrier_errors"):
            put(counts, device, name, count(text(folder + "/statistics/" + name)))
        put(counts, device, "carrier_changes", count(text(folder + "/carrier_changes")))
    for folder in paths(root + "/sys/class/infiniband/*/ports/[0-9]*"):
        parts = folder.split("/")
        for name in ("symbol_error", "link_error_recovery", "link_downed", "port_rcv_errors"):
            put(counts, "rdma:{}/{}".format(parts[-3], parts[-1]), name, count(text(folder + "/counters/" + name)))
    for device, more in nic_counters.counters(root).items():
        for name, value in more.items():
            put(counts, device, name, value)


def throttling(root, counts):
    """Read how often CPUs were slowed by heat or by a power limit: cores in total, packages one by one."""
    packages = set()
    for folder in sorted(glob.glob(root + "/sys/devices/system/cpu/cpu[0-9]*/thermal_throttle")):
        package = text(os.path.dirname(folder) + "/topology/physical_package_id") or "0"
        device = "cpu:package" + package
        for reason, name in (("throttle", "heat"), ("power_limit", "power_limit")):
            value = count(text("{}/core_{}_count".format(folder, reason)))
            if value is not None:
                put(counts, device, "core_" + name, counts.get(device, {}).get("core_" + name, 0) + value)
            if package not in packages:
                put(counts, device, "package_" + name, count(text("{}/package_{}_count".format(folder, reason))))
        packages.add(package)


def accelerators(root, counts):
    """Read the RAS counters of AMD GPUs, and the NVLink errors of NVIDIA's."""
    if not root and os.path.exists("/dev/nvidiactl"):
        nvlinks("libnvidia-ml.so.1", counts)
    for path in paths(root + "/sys/class/drm/card[0-9]*/device/ras/*_err_count"):
        parts = path.split("/")
        for kind, value in re.findall(r"^(ue|ce): (\d+)$", text(path), re.M):
            name = "{}_{}".format(parts[-1][: -len("_err_count")], {"ue": "uncorrected", "ce": "corrected"}[kind])
            put(counts, "gpu:" + parts[-4], name, count(value))


class NvmlField(ctypes.Structure):
    """nvmlFieldValue_t of nvml.h. ``bits``: the union of values, as a whole number."""

    _fields_ = [
        ("field", ctypes.c_uint),
        ("scope", ctypes.c_uint),
        ("time", ctypes.c_longlong),
        ("latency", ctypes.c_longlong),
        ("type", ctypes.c_uint),
        ("error", ctypes.c_uint),
        ("bits", ctypes.c_ulonglong),
    ]

    def value(self):
        """Return the counter, or None if this GPU does not have it."""
        size = NVML_SIZES.get(self.type, 0)
        return None if self.error or not size else self.bits & ((1 << 8 * size) - 1)


def nvlinks(library, counts):
    """Read the error counters of NVLinks from NVML, summed over the links of each GPU. Without NVML there are none."""
    try:
        nvml = ctypes.CDLL(library)
        if nvml.nvmlInit_v2():
            return
    except (OSError, AttributeError):
        return
    try:
        number = ctypes.c_uint()
        if nvml.nvmlDeviceGetCount_v2(ctypes.byref(number)):
            return
        for index in range(min(number.value, MOST_GPUS)):
            gpu = ctypes.c_void_p()
            if not nvml.nvmlDeviceGetHandleByIndex_v2(index, ctypes.byref(gpu)):
                for name, value in nvlink_errors(nvml, gpu).items():
                    put(counts, "nvlink:gpu{}".format(index), name, value if value < MOST_COUNT else None)
    except AttributeError:  # an NVML without one of these functions
        return
    finally:
        nvml.nvmlShutdown()


def nvlink_errors(nvml, gpu):
    """Return the errors of a GPU's links by kind: the driver's total, or the sum over links, whichever is known."""
    queries = [(name, field, 0) for name, field in NVML_TOTALS.items()]
    queries += [(name, field, link) for name, field in NVML_BY_LINK.items() for link in range(MOST_LINKS)]
    fields = (NvmlField * len(queries))(*(NvmlField(field=field, scope=link) for _, field, link in queries))
    if nvml.nvmlDeviceGetFieldValues(gpu, len(queries), fields):
        return {}
    sums = {}
    for place, (name, number, _) in enumerate(queries):
        value = fields[place].value()
        if value is not None:
            sums[name, number] = sums.get((name, number), 0) + value
    errors = {}
    for (name, _), value in sums.items():
        errors[name + "_errors"] = max(value, errors.get(name + "_errors", 0))
    return errors


def kernel_log(path, after):
    """Return {event: {device: count}} of messages later than sequence number ``after``, and the last number."""
    events, last = {}, after
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    except OSError:
        return events, last
    try:
        for record in records(fd):
            head, _, message = record.partition(";")
            fields = head.split(",")
            if len(fields) < 3 or not fields[0].isdigit() or not fields[1].isdigit():
                continue
            number = int(fields[1])
            if number <= after or int(fields[0]) >> 3:  # facility 0 is the kernel; users may write others
                continue
            last = max(last, number)
            for name, pattern in EVENTS:
                match = pattern.search(message)
                if match:
                    groups = match.groups()
                    kind = name + "_" + groups[1] if name == "xid" else name
                    devices = events.setdefault(kind, {})
                    device = groups[0] if groups else ""
                    devices[device] = devices.get(device, 0) + 1
                    break
    finally:
        os.close(fd)
    return events, last


def records(fd):
    """Yield at most MOST_MESSAGES records of /dev/kmsg, or lines of a file with the same form."""
    for _ in range(MOST_MESSAGES):
        try:
            data = os.read(fd, 8192)
        except OSError as error:
            if error.errno == errno.EPIPE:  # overwritten while it was read
                continue
            return
        if not data:
            return
        for line in data.decode(errors="replace").splitlines():
            if not line.startswith(" "):  # a record's fields
                yield line


def collect(root="", after=-1):
    """Return counters and gauges by device, new kernel events, and how busy the host is."""
    counts, gauges = {}, {}
    memory(root, counts)
    pcie(root, counts, gauges)
    drives(root, counts, gauges)
    network(root, counts)
    throttling(root, counts)
    accelerators(root, counts)
    events, last = kernel_log(root + "/dev/kmsg", after)
    load = re.match(r"\d+\.\d+", text(root + "/proc/loadavg"))
    return {
        "boot": text(root + "/proc/sys/kernel/random/boot_id"),
        "counters": counts,
        "gauges": gauges,
        "events": events,
        "last": last,
        "load": float(load.group()) if load else None,
        "cpus": os.sysconf("SC_NPROCESSORS_ONLN"),
        "sessions": len(usage.users(root)),
    }


def exposition(state, totals):
    """Return the Prometheus text of a reading. ``totals``: kernel events since this program started."""
    lines = ["# TYPE fleetmark_host_errors_total counter"]
    for device, counts in sorted(state["counters"].items()):
        lines += [sample("fleetmark_host_errors_total", device, n, v) for n, v in sorted(counts.items())]
    for name, devices in sorted(totals.items()):
        lines += [sample("fleetmark_host_errors_total", "kernel:" + d, name, v) for d, v in sorted(devices.items())]
    lines.append("# TYPE fleetmark_host_state gauge")
    for device, values in sorted(state["gauges"].items()):
        lines += [sample("fleetmark_host_state", device, n, v) for n, v in sorted(values.items())]
    return "\n".join(lines) + "\n"


def sample(family, device, name, value):
    clean = re.sub(r'["\\\n]', "_", device)
    return '{}{{device="{}",name="{}"}} {}'.format(family, clean, name, value)


def follow(output, interval, root=""):
    """Rewrite ``output`` every ``interval`` seconds until the process is ended."""
    totals, last = {}, -1
    while True:
        state = collect(root, last)
        last = state["last"]
        for name, devices in state["events"].items():
            for device, value in devices.items():
                known = totals.setdefault(name, {})
                known[device] = known.get(device, 0) + value
        fd = os.open(output + ".new", os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o644)
        with os.fdopen(fd, "w") as file:
            file.write(exposition(state, totals))
        os.replace(output + ".new", output)
        time.sleep(interval)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--after", type=int, default=-1, help="only kernel messages after this sequence number")
    parser.add_argument("--output", help="the file to rewrite, such as /var/lib/node_exporter/fleetmark.prom")
    parser.add_argument("--interval", type=float, default=60.0, help="seconds between readings")
    options = parser.parse_args()
    if options.output:
        follow(options.output, max(1.0, options.interval))
    json.dump(collect(after=options.after), sys.stdout)


if __name__ == "__main__":
    main()
