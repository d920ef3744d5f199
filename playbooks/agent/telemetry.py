"""Sample a host while one step runs: CPU time by kind, pressure, clocks, temperatures, power, load, lost packets.

Imported by the job runner on the host. Standard library only, Python 3.6 and later. Values that this user cannot read
are missing. Totals and a few sensors are read from files that stay open (os.pread). /proc/cpuinfo is never read, since
this interrupts every core. While the step runs, no drive and no network card is queried.

``foreign_cores`` is the number of cores that other processes use. It is the machine's CPU time (user, nice and system
in /proc/stat, see proc(5)) minus that of the step's processes and this process, divided by the wall time.
``stolen_cores`` is the number of cores that the hypervisor takes. Neither includes interrupts and waiting for I/O.
Kernel threads count as foreign even if they work for the step, and so do processes of the step that were not waited
for. /proc/stat counts in hundredths of a second, and ``foreign_error_cores`` is the resulting uncertainty.
"""

import glob
import os
import re
import threading
import time

import nic_counters
from accelerator_sources import natural

BUDGET = 0.0025  # maximum share of one core for sampling; beginning and end use the other half of the documented limit
MOST = 600  # maximum samples; beyond it, every other one is dropped and the interval doubled
PATIENCE_S = 2.0  # timeout for sensors, so that the step's result need not wait for them
SHORTEST_S = 0.5  # for shorter intervals, hundredths of a second are too coarse
TICK_S = 1.0 / os.sysconf("SC_CLK_TCK")
TICKS = ("user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal")
STEAL = 1 + TICKS.index("steal")  # position in a row, which begins with its time
SENSORS = re.compile(r"Package id \d+|Tctl|Tdie|cpu.*|CPU.*")  # labels of coretemp, k10temp, zenpower, cpu_thermal
NETWORK = {"rx_errors": 2, "rx_dropped": 3, "tx_errors": 10, "tx_dropped": 11}  # fields of /proc/net/dev


class Reader(object):
    """Read columns from one open file. ``kind``: whether a value is a gauge, or a counter that only grows."""

    def __init__(self, path, names, parse, kind, wrap=None):
        self.names, self.parse, self.kind, self.wrap = names, parse, kind, wrap
        self.fd = os.open(path, os.O_RDONLY)
        try:
            self.absent = [None] * len(names)
            if len(self.parse(os.pread(self.fd, 4096, 0))) != len(names):
                raise ValueError(path + " has changed its form")
        except (OSError, ValueError, IndexError):
            os.close(self.fd)
            raise

    def read(self):
        try:
            return self.parse(os.pread(self.fd, 4096, 0))
        except (OSError, ValueError, IndexError):  # a sensor may return an error first and a value later
            return self.absent


def ticks(data):
    """Parse the first line of /proc/stat: hundredths of a second by kind over all CPUs. ``user`` includes guests."""
    return [int(word) for word in data[: data.index(b"\n")].split()[1:9]]


def pressure(data):
    """Parse microseconds from ``some avg10=… total=N`` and from the line ``full``, if the kernel has it."""
    return [int(line.rpartition(b"total=")[2]) for line in data.splitlines()]


def load(data):
    """Parse the load average of one minute and the number of runnable tasks from ``0.08 0.03 0.00 5/100 8254``."""
    words = data.split()
    return [float(words[0]), int(words[3].partition(b"/")[0])]


def scaled(factor):
    """Return a parser for a file with one integer, which it multiplies by ``factor``."""
    return lambda data: [int(data) * factor]


def text(path):
    """Return a small file's text, or nothing if it cannot be read. Bytes of device names may be invalid text."""
    try:
        with open(path, errors="replace") as file:
            return file.read().strip()
    except OSError:
        return ""


def spread(items, limit):
    """Return at most ``limit`` evenly spread items, including the first and the last."""
    if len(items) <= limit:
        return items
    return [items[i * (len(items) - 1) // (limit - 1)] for i in range(limit)]


def kernel_readers(root):
    """Yield readers of /proc/stat, /proc/loadavg and /proc/pressure."""
    yield root + "/proc/stat", ["cpu_" + kind for kind in TICKS], ticks, "ticks", None
    yield root + "/proc/loadavg", ["load1", "running"], load, "gauge", None
    for resource in ("cpu", "memory", "io"):
        path = root + "/proc/pressure/" + resource
        rows = [line.split()[0] for line in text(path).splitlines()]
        yield path, ["psi_{}_{}".format(resource, row) for row in rows], pressure, "counter", None


def sensor_readers(root):
    """Yield readers of clocks, CPU temperatures and power. The caller makes their names unique."""
    clocks = sorted(glob.glob(root + "/sys/devices/system/cpu/cpu[0-9]*/cpufreq/scaling_cur_freq"), key=natural)
    for path in spread(clocks, 8):
        yield path, ["clock_hz:" + path.split("/")[-3]], scaled(1e3), "gauge", None
    heat = []
    for path in sorted(glob.glob(root + "/sys/class/hwmon/hwmon*/temp*_input"), key=natural):
        label, driver = text(path[: -len("input")] + "label"), text(os.path.dirname(path) + "/name")
        if driver in ("coretemp", "k10temp", "zenpower", "cpu_thermal") and SENSORS.match(label or driver):
            heat.append((path, label or driver))
    if not heat:
        for path in sorted(glob.glob(root + "/sys/class/thermal/thermal_zone*/temp"), key=natural):
            kind = text(os.path.dirname(path) + "/type")
            if re.match(r"x86_pkg_temp|cpu|soc", kind, re.IGNORECASE):
                heat.append((path, kind))
    for path, label in spread(heat, 8):
        yield path, ["temp_c:" + label.replace(" ", "_")], scaled(1e-3), "gauge", None
    for zone in sorted(glob.glob(root + "/sys/class/powercap/intel-rapl:*"), key=natural):  # AMD uses this name too
        name, span = text(zone + "/name"), text(zone + "/max_energy_range_uj")
        # The package includes core and uncore, but not memory.
        if re.match(r"package|dram|psys", name) and span.isdigit():
            if name == "dram":
                name = text(zone.rpartition(":")[0] + "/name") + "_dram"
            yield zone + "/energy_uj", ["power_w:" + name], scaled(1e-6), "counter", int(span) * 1e-6
    for path in sorted(glob.glob(root + "/sys/class/hwmon/hwmon*/power*_average"), key=natural)[:8]:
        yield path, ["power_w:" + text(os.path.dirname(path) + "/name")], scaled(1e-6), "gauge", None


def opened(candidates, result, taken):
    """Append a Reader for each candidate that can be read now."""
    for path, names, parse, kind, wrap in candidates:
        unique = []
        for name in names:
            again = sum(1 for other in taken if other == name or other.startswith(name + "#"))
            unique.append(name if not again else "{}#{}".format(name, again))
            taken.append(unique[-1])
        try:
            result.append(Reader(path, unique, parse, kind, wrap))
        except (OSError, ValueError, IndexError):
            del taken[len(taken) - len(unique) :]


def bounded(call):
    """Run ``call`` in a thread and wait at most PATIENCE_S, because a dead device may block a read for minutes."""
    thread = threading.Thread(target=call, daemon=True)
    thread.start()
    thread.join(PATIENCE_S)


READERS = {}  # readers by root, whose files stay open between the steps of a process


def readers(root):
    if root not in READERS:
        result, taken = [], []
        opened(kernel_readers(root), result, taken)
        bounded(lambda: opened(sensor_readers(root), result, taken))
        READERS[root] = list(result)
    return READERS[root]


def edges(root, readings):
    """Fill ``readings`` with values read only before and after the step: packet counters, NVMe temperatures.

    Some need a command to the drive or the card, which must not disturb the measurement. Cards come last, so that a
    hung driver prevents no other reading.
    """
    for line in text(root + "/proc/net/dev").splitlines()[2:]:
        name, _, counts = line.strip().partition(":")
        words = counts.split()
        if name != "lo" and len(words) > 11 and "".join(words).isdigit():
            network = readings.setdefault("network", {})
            network[name] = {key: int(words[n]) for key, n in NETWORK.items()}
    for hwmon in sorted(glob.glob(root + "/sys/class/hwmon/hwmon*"), key=natural)[:256]:
        if text(hwmon + "/name") == "nvme":
            value = text(hwmon + "/temp1_input")
            name = os.path.basename(os.path.realpath(hwmon + "/device"))
            if value.isdigit():
                readings.setdefault("nvme_temp_c", {})[name] = int(value) * 1e-3
    readings["counters"] = nic_counters.counters(root)


class Sampler(object):
    """Sample the host from ``start`` to ``stop`` every ``interval`` seconds, or less often to stay within BUDGET.

    ``root``: the parent of /proc and /sys, for tests. Create a sampler before the step begins, because this searches
    for sensors.
    """

    def __init__(self, interval=1.0, root=""):
        self.interval, self.root = max(0.01, float(interval)), root
        self.rows, self.count, self.stretched = [], 0, False
        self.edging = self.sampling = 0.0  # CPU seconds spent
        self.done = threading.Event()
        self.readers = readers(root)
        self.before = {}
        self.apart(self.before)
        self.thread = threading.Thread(target=self.work, daemon=True)

    def apart(self, readings):
        def call():
            edges(self.root, readings)
            self.edging += thread_time()

        bounded(call)

    def start(self):
        self.utc, self.process = time.time(), time.process_time()
        self.thread.start()

    def work(self):
        begun, due = thread_time(), time.monotonic()
        while True:
            last = self.done.is_set()
            self.sample()
            if last:
                # Merge a short last interval into the previous one: shares of a few hundredths of a second are noise.
                if len(self.rows) > 2 and self.rows[-1][0] - self.rows[-2][0] < self.interval / 2:
                    del self.rows[-2]
                self.sampling = thread_time() - begun
                return
            if len(self.rows) > MOST:
                self.rows = self.rows[::2]
                self.interval *= 2
            self.sampling = thread_time() - begun
            afford = self.sampling / self.count / BUDGET
            if afford > self.interval:
                self.interval, self.stretched = afford, True
            due = max(due + self.interval, time.monotonic())
            self.done.wait(due - time.monotonic())

    def sample(self):
        row = [time.monotonic()]
        for reader in self.readers:
            row += reader.read()
        self.rows.append(row)
        self.count += 1

    def stop(self, step_cpu_s=None):
        """End, and return all results as one dict for JSON.

        ``step_cpu_s``: CPU seconds of the step's processes, from wait4(2). ``samples`` are columns. An entry covers the
        time from the previous entry to ``t`` (seconds since the start). ``cpu_*`` are shares of the whole machine, and
        ``psi_*`` are shares of time. The means of shares and of power cover the whole step.
        """
        self.done.set()
        self.thread.join(PATIENCE_S)
        process = time.process_time() - self.process
        after = {}
        self.apart(after)
        result = {"interval_s": round(self.interval, 3), "started": self.utc, "cpus": os.sysconf("SC_NPROCESSORS_ONLN")}
        if self.thread.is_alive():
            result["note"] = "a sensor did not answer: the last samples are missing"
        rows = list(self.rows)
        result["samples"], result["summary"] = columns(self.readers, rows)
        result["cost_s"] = round(self.edging + self.sampling, 6)
        result["stretched"] = self.stretched
        result.update(between(self.before, after))
        result.update(foreign(self.readers, rows, step_cpu_s, process, result["cpus"]))
        return result


def thread_time():
    """Return the CPU time of the calling thread in seconds, user and kernel."""
    return time.clock_gettime(time.CLOCK_THREAD_CPUTIME_ID)


def change(old, new, wrap):
    """Return the growth of a counter that wraps at ``wrap``. None if a value is missing, or if it fell unexpectedly."""
    if old is None or new is None:
        return None
    if new < old:
        return new - old + wrap if wrap else None
    return new - old


def columns(sources, rows):
    """Return the columns of the sampled rows by name, and their {name: min, mean, max}."""
    samples = {"t": [tidy(row[0] - rows[0][0]) for row in rows[1:]]}
    overall = {}
    start = 1
    for source in sources:
        width = len(source.names)
        inner = [[row[0], *row[start : start + width]] for row in rows]
        start += width
        pairs = [inner[i : i + 2] for i in range(len(inner) - 1)]
        if source.kind == "ticks":
            shares_by_row = [shares(old, new) for old, new in pairs]
            for name in ("cpu_busy", "cpu_user", "cpu_system", "cpu_irq", "cpu_iowait", "cpu_steal"):
                samples[name] = [one.get(name) for one in shares_by_row]
            overall.update(shares(inner[0], inner[-1]) if len(inner) > 1 else {})
            continue
        for n, name in enumerate(source.names, 1):
            if source.kind == "gauge":
                samples[name] = [row[n] for row in inner[1:]]
                continue
            factor = 1e-6 if name.startswith("psi_") else 1.0
            samples[name] = [rate(old, new, n, source.wrap, factor) for old, new in pairs]
            if len(inner) > 1 and not source.wrap:
                overall[name] = rate(inner[0], inner[-1], n, None, factor)
    reduce_group(samples, "clock_hz", min)
    reduce_group(samples, "temp_c", max)
    summary = {}
    for name, values in samples.items():
        present = [value for value in values if value is not None]
        if present and name != "t":
            mean = overall.get(name)
            mean = sum(present) / len(present) if mean is None else mean
            summary[name] = {"min": tidy(min(present)), "mean": tidy(mean), "max": tidy(max(present))}
    return {name: [tidy(v) for v in values] for name, values in samples.items()}, summary


def shares(old, new):
    """Return the shares of the machine's CPU time between two readings; empty if no tick passed."""
    # Idle and I/O wait may fall by a tick (proc(5)). A kind that fell counts as zero.
    parts = {kind: change(old[n], new[n], None) or 0 for n, kind in enumerate(TICKS, 1)}
    total = sum(parts.values())
    if not total:
        return {}
    grouped = {
        "cpu_busy": ("user", "nice", "system"),
        "cpu_user": ("user", "nice"),
        "cpu_system": ("system",),
        "cpu_irq": ("irq", "softirq"),
        "cpu_iowait": ("iowait",),
        "cpu_steal": ("steal",),
    }
    return {name: sum(parts[kind] for kind in kinds) / total for name, kinds in grouped.items()}


def rate(old, new, n, wrap, factor):
    grown = change(old[n], new[n], wrap)
    span = new[0] - old[0]
    return grown * factor / span if grown is not None and span > 0 else None


def reduce_group(samples, group, extreme):
    """Add the mean and extreme over a group such as ``clock_hz:cpu0`` and so on. Drop single clocks."""
    members = [values for name, values in samples.items() if name.startswith(group + ":")]
    if not members:
        return
    rows = [[values[i] for values in members] for i in range(len(members[0]))]
    present = [[value for value in row if value is not None] for row in rows]
    samples[group + "_" + extreme.__name__] = [extreme(values) if values else None for values in present]
    if group == "clock_hz":
        samples["clock_hz_mean"] = [sum(values) / len(values) if values else None for values in present]
        for name in [name for name in samples if name.startswith("clock_hz:")]:
            del samples[name]


def between(before, after):
    """Return the changes over the step: the watched NICs and their lost packets, congestion, NVMe temperatures.

    NICs without lost packets have no entry for them.
    """
    result = {}
    old, new = before.get("network", {}), after.get("network", {})
    nics = sorted(set(old) & set(new), key=natural)
    if nics:
        result["nics"] = nics
        grown = {nic: {n: v - old[nic][n] for n, v in new[nic].items() if v > old[nic][n]} for nic in nics}
        result["lost"] = {nic: counts for nic, counts in grown.items() if counts}
    counters = nic_counters.grown(before.get("counters", {}), after.get("counters", {}))
    if counters:
        result["counters"] = counters
    for drive, value in after.get("nvme_temp_c", {}).items():
        if drive in before.get("nvme_temp_c", {}):
            ends = [before["nvme_temp_c"][drive], value]
            result.setdefault("nvme_temp_c", {})[drive] = [tidy(end) for end in ends]
    return result


def foreign(sources, rows, step_cpu_s, process, cpus):
    """Return the cores used by other processes, its uncertainty, and the cores stolen by a hypervisor.

    Values are None if unknown.
    """
    result = {"wall_s": tidy(rows[-1][0] - rows[0][0]) if rows else None, "foreign_cores": None}
    if step_cpu_s is None or len(rows) < 2 or rows[-1][0] - rows[0][0] < SHORTEST_S:
        return result
    if not sources or sources[0].kind != "ticks" or rows[0][1] is None or rows[-1][1] is None:
        return result
    wall = rows[-1][0] - rows[0][0]
    busy = sum(change(rows[0][n], rows[-1][n], None) or 0 for n in (1, 2, 3)) * TICK_S
    result["foreign_cores"] = tidy(max(0.0, busy - step_cpu_s - process) / wall)
    # Each of the three sums is truncated to whole ticks, and each CPU may be off by one tick.
    result["foreign_error_cores"] = tidy((3 + cpus**0.5) * TICK_S / wall)
    result["stolen_cores"] = tidy((change(rows[0][STEAL], rows[-1][STEAL], None) or 0) * TICK_S / wall)
    return result


def tidy(value):
    """Round to five significant digits, because a step's samples are sent over the network and stored."""
    return value if value is None or isinstance(value, int) else float("{:.5g}".format(value))
