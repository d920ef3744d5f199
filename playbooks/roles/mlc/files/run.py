"""Runs MLC and restores the host's state: run.py MLC OPTION...

MLC switches the prefetchers off while it measures, which takes root and the kernel's msr module. Where we are root, the
module is loaded for the time of the run. If MLC ends without restoring the prefetchers (killed, crashed), that is
done here: later measurements on this host would be wrong otherwise.

Standard library only, Python 3.6 and later. The exit status is MLC's; 127 where it cannot be started.
"""

import os
import signal
import subprocess
import sys
from pathlib import Path

MODULE = Path("/sys/module/msr")  # exists while the kernel has the module, loaded or built in
CPUS = Path("/dev/cpu")
PREFETCHERS = 0x1A4  # MISC_FEATURE_CONTROL: its low bits switch prefetchers of this core off
PATIENCE_S = 1.5  # for MLC to end by itself; the runner kills this process after 3 s
AWAITED = {signal.SIGTERM, signal.SIGCHLD}  # blocked and taken one at a time


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
    if status < 0:  # printed last: a report shows the last line
        say(f"MLC was killed by signal {-status}")
        return 128 - status
    return status


def prepare():
    """In MLC's process: ignore the SIGTERM that reaches it too; MLC restores its state on SIGINT."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, AWAITED)


def follow(mlc):
    """MLC's exit status, or the negative signal that killed it; on SIGTERM, MLC is ended first."""
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
    """Whether it succeeded. Prints nothing: without the module MLC itself prints the error."""
    try:
        return subprocess.call(["modprobe", *words], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) == 0
    except OSError:
        return False


def prefetchers():
    """The register of every CPU where it can be read."""
    values = {}
    for path in CPUS.glob("[0-9]*/msr"):
        try:
            values[path] = transfer(path, os.O_RDONLY, lambda file: os.pread(file, 8, PREFETCHERS))
        except OSError:
            continue  # not root, a CPU without it, or a hypervisor that hides it
    return values


def put_back(before):
    now = prefetchers()
    left = {path: value for path, value in before.items() if now.get(path, value) != value}
    try:
        for path, value in left.items():
            transfer(path, os.O_WRONLY, lambda file, value=value: os.pwrite(file, value, PREFETCHERS))
    except OSError as error:
        say(f"MLC left prefetchers off and they cannot be put back ({error.strerror}): restart this host")
    else:
        if left:
            say(f"MLC left the prefetchers of {len(left)} CPUs changed; they are as they were before")


def transfer(path, how, action):
    file = os.open(str(path), how)
    try:
        return action(file)
    finally:
        os.close(file)


def say(text):
    sys.stderr.write(text + "\n")


if __name__ == "__main__":
    # Options come as one word or several: a manifest's parameter is one.
    sys.exit(main([sys.argv[1], *" ".join(sys.argv[2:]).split()]))
