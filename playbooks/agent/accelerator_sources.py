"""Read the state of a host's accelerators: clocks, power, temperature, memory, load, throttling, memory errors.

Imported by ``accelerators``, which samples them. Standard library only, Python 3.6 and later; NVML's Python package is
used if the host has it. Values that a device does not report are absent, and so are impossible values.

The first source that answers is used: NVML through ``pynvml`` (nvidia-ml-py); one ``nvidia-smi`` that prints until
it is stopped; the files of AMD's driver, which rocm-smi also reads; ``npu-smi info``, which starts a process each
time and therefore runs at most every 5 s.
"""

import glob
import os
import re
import shutil
import site
import subprocess
import sys

MOST_DEVICES = 64
SLOW_SOURCE_S = 5.0  # between two calls of a command that wakes the devices
LONGEST_LINE = 4096
MORE_PATH = ":/usr/sbin:/sbin:/usr/local/sbin:/opt/rocm/bin"
# Bits of the reasons why a clock is below the requested rate (nvml.h, nvmlClocksEventReasons).
REASONS = {
    0x04: "power_cap",
    0x08: "hw_slowdown",
    0x20: "thermal",
    0x40: "hw_thermal",
    0x80: "power_brake",
}
BOUNDS = {  # bounds of plausible readings
    "power_w": (0.0, 1e5),
    "energy_j": (0.0, 1e15),
    "clock_hz": (0.0, 1e11),
    "memory_clock_hz": (0.0, 1e11),
    "temp_c": (-100.0, 300.0),
    "memory_temp_c": (-100.0, 300.0),
    "memory_used": (0.0, 1e15),
    "busy": (0.0, 1.0),
    "memory_busy": (0.0, 1.0),
    "reasons": (0, 1 << 63),
    "corrected": (0, 1 << 53),
    "uncorrected": (0, 1 << 53),
}
QUERY = (  # fields of nvidia-smi --help-query-gpu, their names here, and their units in base units
    ("power.draw", "power_w", 1.0),
    ("clocks.current.sm", "clock_hz", 1e6),
    ("clocks.current.memory", "memory_clock_hz", 1e6),
    ("temperature.gpu", "temp_c", 1.0),
    ("temperature.memory", "memory_temp_c", 1.0),
    ("memory.used", "memory_used", float(1 << 20)),
    ("utilization.gpu", "busy", 0.01),
    ("utilization.memory", "memory_busy", 0.01),
    ("clocks_throttle_reasons.active", "reasons", 1),  # newer drivers also accept this name
    ("ecc.errors.corrected.volatile.total", "corrected", 1),
    ("ecc.errors.uncorrected.volatile.total", "uncorrected", 1),
)
NPU_DEVICE = re.compile(r"\|\s*(\d{1,4})\s+(\S{1,40})\s*\|\s*(\w+)\s*\|\s*(-|NA|[\d.]+)\s+(-|NA|[\d.]+)\s")
NPU_CHIP = re.compile(r"\|\s*\d{1,4}(?:\s+(?:\d{1,4}|NA))?\s*\|\s*[0-9A-Fa-f:.]{7,16}\s*\|\s*(\d{1,3})\s+(.*?)\|")


def reading(values):
    """Return ``values`` without missing and implausible values."""
    kept = {}
    for name, value in values.items():
        if value is not None and BOUNDS[name][0] <= value <= BOUNDS[name][1]:
            kept[name] = value
    return kept


class Nvml(object):
    """NVIDIA's management library in this process."""

    name = "nvml"

    def __init__(self):
        if sys.flags.no_site:  # the runner starts without the site's packages, which include pynvml
            site.main()
        import pynvml

        self.nvml = pynvml
        pynvml.nvmlInit()
        count = min(MOST_DEVICES, pynvml.nvmlDeviceGetCount())
        self.handles = [pynvml.nvmlDeviceGetHandleByIndex(n) for n in range(count)]
        names = [self.ask("nvmlDeviceGetName", handle) for handle in self.handles]
        self.names = [raw.decode("utf-8", "replace") if isinstance(raw, bytes) else raw for raw in names]

    def ask(self, function, handle, *more):
        try:
            return getattr(self.nvml, function)(handle, *more)
        except (self.nvml.NVMLError, AttributeError):
            return None  # this device or this version of the library does not support it

    def read(self):
        return [self.one(handle) for handle in self.handles]

    def one(self, handle):
        def scaled(factor, function, *more):
            value = self.ask(function, handle, *more)
            return None if value is None else value * factor

        nvml = self.nvml
        rates = self.ask("nvmlDeviceGetUtilizationRates", handle)
        memory = self.ask("nvmlDeviceGetMemoryInfo", handle)
        return reading(
            {
                "power_w": scaled(1e-3, "nvmlDeviceGetPowerUsage"),
                "energy_j": scaled(1e-3, "nvmlDeviceGetTotalEnergyConsumption"),
                "clock_hz": scaled(1e6, "nvmlDeviceGetClockInfo", nvml.NVML_CLOCK_SM),
                "memory_clock_hz": scaled(1e6, "nvmlDeviceGetClockInfo", nvml.NVML_CLOCK_MEM),
                "temp_c": scaled(1.0, "nvmlDeviceGetTemperature", nvml.NVML_TEMPERATURE_GPU),
                "memory_used": None if memory is None else float(memory.used),
                "busy": None if rates is None else rates.gpu * 0.01,
                "memory_busy": None if rates is None else rates.memory * 0.01,
                "reasons": self.ask("nvmlDeviceGetCurrentClocksThrottleReasons", handle),
                "corrected": self.errors(handle, "CORRECTED"),
                "uncorrected": self.errors(handle, "UNCORRECTED"),
            }
        )

    def errors(self, handle, name):
        kind = getattr(self.nvml, "NVML_MEMORY_ERROR_TYPE_" + name)
        return self.ask("nvmlDeviceGetTotalEccErrors", handle, kind, self.nvml.NVML_VOLATILE_ECC)

    def close(self):
        try:
            self.nvml.nvmlShutdown()
        except self.nvml.NVMLError:
            pass  # the driver was unloaded


class NvidiaSmi(object):
    """One nvidia-smi that prints a line for each GPU every interval."""

    name = "nvidia-smi"
    paces = True  # read() returns when the next sample is there

    def __init__(self, path, interval):
        fields = ",".join(["index", "name", "count"] + [field for field, _, _ in QUERY])
        words = [path, "--query-gpu=" + fields, "--format=csv,noheader,nounits", "-lms", str(int(interval * 1000))]
        self.child = subprocess.Popen(
            words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, start_new_session=True
        )
        self.names = []

    def read(self):
        """Return a reading for each GPU; None at the end of the tool's output."""
        readings, count = [], 1
        while len(readings) < min(count, MOST_DEVICES):
            line = self.child.stdout.readline(LONGEST_LINE)
            cells = [cell.strip() for cell in line.decode("utf-8", "replace").split(",")]
            if not line:
                return None
            if len(cells) != len(QUERY) + 3 or not cells[0].isdigit() or not cells[2].isdigit():
                if readings:
                    return None
                continue  # messages of the driver before the first row
            if int(cells[0]) != len(readings):  # a device was lost in the middle: the next sample begins with the first
                readings = []
                continue
            count = int(cells[2])
            if len(self.names) < count:
                self.names.append(cells[1])
            values = {name: number(cells[3 + n], factor) for n, (_, name, factor) in enumerate(QUERY)}
            readings.append(reading(values))
        return readings

    def close(self):
        try:
            self.child.kill()
        except OSError:
            pass  # it has ended
        self.child.stdout.close()
        self.child.wait()


def number(cell, factor):
    """Return a cell of nvidia-smi's CSV in base units; None for [N/A], [Not Supported], [Unknown Error]."""
    try:
        return int(cell, 16) if cell.startswith("0x") else float(cell) * factor
    except ValueError:
        return None


class Amd(object):
    """The files of AMD's driver (amdgpu): one folder for each card that computes."""

    name = "amdgpu"

    def __init__(self, root):
        self.cards = []
        for path in sorted(glob.glob(root + "/sys/class/drm/card[0-9]*/device"), key=natural)[:MOST_DEVICES]:
            folders = glob.glob(path + "/hwmon/hwmon*")
            if folders and content(folders[0] + "/name") == "amdgpu" and number_in(path + "/mem_info_vram_total"):
                self.cards.append((path, folders[0], self.sensors(folders[0])))
        self.names = [content(path + "/product_name") or "AMD GPU" for path, _, _ in self.cards]

    def sensors(self, folder):
        """Return the file of each temperature sensor by its label."""
        return {content(p[: -len("input")] + "label"): p for p in glob.glob(folder + "/temp*_input")}

    def read(self):
        return [self.one(*card) for card in self.cards]

    def one(self, path, folder, sensors):
        def first(factor, *files):
            values = [number_in(file) for file in files if file]
            present = [value for value in values if value is not None]
            return present[0] * factor if present else None

        return reading(
            {
                "power_w": first(1e-6, folder + "/power1_average", folder + "/power1_input"),
                "clock_hz": first(1.0, folder + "/freq1_input"),
                "memory_clock_hz": first(1.0, folder + "/freq2_input"),
                "temp_c": first(1e-3, sensors.get("junction"), sensors.get("edge"), folder + "/temp1_input"),
                "memory_temp_c": first(1e-3, sensors.get("mem")),
                "memory_used": first(1.0, path + "/mem_info_vram_used"),
                "busy": first(0.01, path + "/gpu_busy_percent"),
                "memory_busy": first(0.01, path + "/mem_busy_percent"),
                "corrected": errors_in(path + "/ras/umc_err_count", "ce"),
                "uncorrected": errors_in(path + "/ras/umc_err_count", "ue"),
            }
        )

    def close(self):
        pass


class NpuSmi(object):
    """Huawei's npu-smi, which prints one table of all devices per call."""

    name = "npu-smi"

    def __init__(self, path):
        self.path, self.names = path, []
        if not self.read():
            raise OSError("npu-smi shows no device")

    def read(self):
        out = subprocess.Popen(
            [self.path, "info"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )
        try:
            text = out.communicate(timeout=SLOW_SOURCE_S)[0]
        except subprocess.TimeoutExpired:
            out.kill()
            out.communicate()
            return None
        return self.table(text[: 1 << 20].decode("utf-8", "replace"))

    def table(self, text):
        readings, names, cards, device = [], [], [], None
        for line in text.splitlines():
            row = NPU_DEVICE.match(line[:400])
            if row:
                device = row
                continue
            chip = NPU_CHIP.match(line[:400])
            if chip and device and len(readings) < MOST_DEVICES:
                used = re.findall(r"(\d{1,9})\s*/\s*(\d{1,9})", chip.group(2))
                names.append(device.group(2))
                cards.append(device.group(1))
                readings.append(
                    reading(
                        {
                            "power_w": number(device.group(4), 1.0),
                            "temp_c": number(device.group(5), 1.0),
                            "busy": number(chip.group(1), 0.01),
                            "memory_used": float(used[-1][0]) * (1 << 20) if used else None,
                        }
                    )
                )
        self.names = names
        share_power(cards, readings)
        return readings

    def close(self):
        pass


def share_power(cards, readings):
    """Distribute the power of a card over its chips if only the first chip reports it. ``cards``: the card of each
    reading.
    """
    for card in set(cards):
        chips = [readings[n] for n in range(len(cards)) if cards[n] == card]
        if "power_w" in chips[0] and not any("power_w" in chip for chip in chips[1:]):
            power = chips[0]["power_w"] / len(chips)
            for chip in chips:
                chip["power_w"] = power


def content(path):
    """Return the text of a small file; empty if it cannot be read."""
    try:
        with open(path) as file:
            return file.read(4096).strip()
    except (OSError, UnicodeDecodeError):
        return ""


def number_in(path):
    value = content(path)
    return int(value) if re.match(r"-?\d{1,18}$", value) else None


def errors_in(path, kind):
    """Parse ``ue: 0`` and ``ce: 0``, the driver's counts of uncorrected and corrected ECC errors."""
    match = re.search(r"\b%s: (\d{1,15})" % kind, content(path))
    return int(match.group(1)) if match else None


def natural(name):
    """Return a sort key that puts card10 after card9."""
    return [int(part) if part.isdigit() else part for part in re.split(r"(\d+)", name)]


def find(command):
    return shutil.which(command, path=os.environ.get("PATH", os.defpath) + MORE_PATH)


def source_of(root, interval):
    """Return the reader for this host's accelerators; None if none answers. ``root`` is for tests."""
    if not root:
        try:
            source = Nvml()
            if source.handles:
                return source
        except Exception:  # noqa: BLE001
            pass  # no package, no library, no driver, or a library of another version
        path = find("nvidia-smi")
        if path:
            return NvidiaSmi(path, interval)
    amd = Amd(root)
    if amd.cards:
        return amd
    path = None if root else find("npu-smi")
    return NpuSmi(path) if path else None
