"""Run MLC and restore the host's state: run.py MLC OPTION...

MLC disables the prefetchers during measurements, which requires root and the kernel's msr module. As root, this program
loads the module for the run. If MLC ends without restoring the prefetchers (killed, crashed), this program restores
them, because later measurements on this host would be wrong otherwise.

Standard library only, Python 3.6 and later. The exit status is MLC's, or 127 if MLC cannot be started.
"""

import os
import signal
import subprocess
import sys
from pathlib import Path

MODULE = Path("/sys/module/msr")  # exists while the kernel has the module, loaded or built in
CPUS = Path("/dev/cpu")
PREFETCHERS = 0x1A4  # MISC_FEATURE_CONTROL: its low bits disable prefetchers of this core
PATIENCE_S = 1.5  # timeout for MLC to end by itself; the runner kills this process after 3 s
AWAITED = {signal.SIGTERM, signal.SIGCHLD}  # blocked, and handled one at a time


def main(argv):
    signal.pthread_sigmask(signal.SIG_BLOCK, AWAITED)
    loaded = os.geteuid() == 0 and not MODULE.exists() and modprobe("msr")
    before = prefetchers()
    try:
        mlc = subprocess.Popen(argv, preexec_fn=prepare)  # noqa: PLW1509 (no threads here)
    except OSError as error:
        say(f"{argv[0]} cannot be started: {error.strerror}")
        status = 127
    else:
        status = follow(mlc)
    put_back(before)
    if loaded:
        modprobe("-r", "msr")
    if status < 0:  # print this last, because a report shows the last line
        say(f"MLC was killed by signal {-status}")
        return 128 - status
    return status


def prepare():
    """Make MLC's process ignore SIGTERM, which it gets too. MLC restores its state on SIGINT."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, AWAITED)


def follow(mlc):
    """Wait for MLC, and end it on SIGTERM. Return its exit status, or the negative signal that killed it."""
    while mlc.poll() is None:
        if signal.sigwait(AWAITED) == signal.SIGTERM:
            mlc.send_signal(signal.SIGINT)
            try:
                mlc.wait(PATIENCE_S)
            except subprocess.TimeoutExpired:
                mlc.kill()
                mlc.wait()
            return 128 + signal.SIGTERM
    return mlc.returncode


def modprobe(*words):
    """Run modprobe quietly, and return whether it succeeded. Without the module, MLC prints the error."""
    try:
        return subprocess.call(["modprobe", *words], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) == 0
    except OSError:
        return False


def prefetchers():
    """Return the register of every CPU on which it can be read."""
    values = {}
    for path in CPUS.glob("[0-9]*/msr"):
        try:
            values[path] = transfer(path, os.O_RDONLY, lambda file: os.pread(file, 8, PREFETCHERS))
        except OSError:
            continue  # no root access, a CPU without this register, or a hypervisor that hides it
    return values


def put_back(before):
    now = prefetchers()
    left = {path: value for path, value in before.items() if now.get(path, value) != value}
    try:
        for path, value in left.items():
            transfer(path, os.O_WRONLY, lambda file, value=value: os.pwrite(file, value, PREFETCHERS))
    except OSError as error:
        say(f"MLC left prefetchers off, and they cannot be restored ({error.strerror}): restart this host")
    else:
        if left:
            say(f"MLC left the prefetchers of {len(left)} CPUs changed; they are as they were before")


def transfer(path, flags, action):
    file = os.open(str(path), flags)
    try:
        return action(file)
    finally:
        os.close(file)


def say(text):
    sys.stderr.write(text + "\n")


if __name__ == "__main__":
    # Options come as one or several words, because a manifest's parameter is one word.
    sys.exit(main([sys.argv[1], *" ".join(sys.argv[2:]).split()]))
