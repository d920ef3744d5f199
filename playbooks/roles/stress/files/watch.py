"""Run a stressor, and count the host's errors meanwhile: watch.py [--also COMMAND] -- STRESSOR WORD...

Prints a line for each counter of the host, with its increase. Standard library only, Python 3.6 and later.
"""

import argparse
import glob
import os
import re
import signal
import subprocess
import sys

INTERVAL_S = 10
CPU = "/sys/devices/system/cpu/cpu[0-9]*/"
REASONS = ("hw_thermal_slowdown", "hw_power_brake_slowdown")
GPU = ",".join(["ecc.errors.uncorrected.volatile.total", *("clocks_throttle_reasons." + reason for reason in REASONS)])


def text(path):
    try:
        with open(path) as file:
            return file.read()
    except (OSError, UnicodeDecodeError):
        return ""


def numbers(pattern, root=""):
    """Return the numbers in all files that match a pattern. Omit files without a number."""
    contents = [text(path).strip() for path in glob.glob(root + pattern)]
    return [int(content) for content in contents if re.match(r"-?[0-9]+$", content)]


def quota(root=""):
    """Return the periods in which a quota throttled this process's control group or a parent group; None if unknown."""
    periods = []
    for line in text(root + "/proc/self/cgroup").splitlines():
        _, controllers, path = line.split(":", 2)
        if controllers and "cpu" not in controllers.split(","):
            continue
        for base in ("/sys/fs/cgroup/" + (controllers or "unified"), "/sys/fs/cgroup", "/sys/fs/cgroup/cpu"):
            parts = path.strip("/").split("/")
            for depth in range(len(parts) + 1):
                stat = text(os.path.join(root + base, *parts[:depth], "cpu.stat"))
                periods += [(base, depth, int(count)) for count in re.findall(r"^nr_throttled ([0-9]+)$", stat, re.M)]
    unique = {(os.path.realpath(root + base), depth): count for base, depth, count in periods}  # v1 links cpu
    return sum(unique.values()) if unique else None


def gpus():
    """Return the uncorrected errors of all NVIDIA GPUs, and the number of GPUs that are throttled now; None without
    GPUs.
    """
    try:
        query = ["nvidia-smi", "--query-gpu=" + GPU, "--format=csv,noheader,nounits"]
        ran = subprocess.run(query, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, timeout=30, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    rows = [line.split(", ") for line in ran.stdout.decode(errors="replace").splitlines() if line.count(", ") == 2]
    if ran.returncode or not rows:
        return None
    return sum(int(row[0]) for row in rows if row[0].isdigit()), sum("Active" in row[1:] for row in rows)


def counters(root=""):
    """Return every counter that the host has, by the name of its metric."""
    interrupts = re.search(r"^ *MCE:((?: +[0-9]+)+)", text(root + "/proc/interrupts"), re.M)
    lists = {
        "throttles": numbers(CPU + "thermal_throttle/*_throttle_count", root),
        "corrected_errors": numbers("/sys/devices/system/edac/mc/mc[0-9]*/ce_count", root),
        "uncorrected_errors": numbers("/sys/devices/system/edac/mc/mc[0-9]*/ue_count", root),
        "machine_checks": [int(word) for word in interrupts.group(1).split()] if interrupts else [],
    }
    values = {name: sum(several) for name, several in lists.items() if several}
    held = quota(root)
    return values if held is None else dict(values, quota_throttles=held)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--also", default="")
    parser.add_argument("stressor", nargs=argparse.REMAINDER)
    chosen = parser.parse_args()
    argv = chosen.stressor[1:] if chosen.stressor[:1] == ["--"] else chosen.stressor
    print("fleetmark: watching", flush=True)
    before, devices = counters(), gpus()
    slowdowns, hottest, slowest = 0, [], []
    beside = subprocess.Popen(["sh", "-c", chosen.also], start_new_session=True) if chosen.also else None
    main_load = subprocess.Popen(argv, stderr=subprocess.STDOUT)
    while True:
        try:
            main_load.wait(INTERVAL_S)
        except subprocess.TimeoutExpired:
            pass
        hottest += numbers("/sys/class/hwmon/hwmon*/temp*_input") + numbers("/sys/class/thermal/thermal_zone*/temp")
        slowest += numbers(CPU + "cpufreq/scaling_cur_freq")
        slowdowns += (gpus() or (0, 0))[1] if devices else 0
        if main_load.returncode is not None:
            break
    early = beside.poll() if beside else None
    if beside:
        try:
            os.killpg(beside.pid, signal.SIGTERM)
        except ProcessLookupError:
            pass  # it has ended
        beside.wait()
    after = counters()
    grown = {name: after[name] - count for name, count in sorted(before.items()) if name in after}
    if devices:
        grown.update(gpu_uncorrected_errors=max(0, (gpus() or devices)[0] - devices[0]), gpu_slowdowns=slowdowns)
    for name, count in grown.items():
        print("fleetmark: %s %d" % (name, count))
    if hottest:
        print("fleetmark: temperature_max %.1f" % (max(hottest) / 1e3))
    if slowest:
        print("fleetmark: clock_min %d" % (min(slowest) * 1000))
    if early:
        print("fleetmark: the command beside it ended early with exit status %d" % early)
    print("fleetmark: faults %d" % sum(grown.values()), flush=True)
    sys.exit(main_load.returncode if main_load.returncode >= 0 else 128 - main_load.returncode)


if __name__ == "__main__":
    main()
