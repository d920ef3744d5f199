#!/usr/bin/env python3
"""Plays Intel MLC on a test's host: prints what MLC prints in the mode asked for, out of our parser's fixtures.

Where it may write to /dev/cpu/0/msr it "switches the prefetchers off" there and back on at the end; elsewhere it says
that it cannot, and its figures are those of random access. /etc/mlc_standin makes it break: crash, cut, hang, stubborn.
"""
# ruff: noqa: T201

import os
import signal
import sys
import time
from pathlib import Path

OUTPUTS = {}  # whether prefetchers are controlled -> mode -> text; tarball.py fills it in
REGISTER, OFFSET = "/dev/cpu/0/msr", 0x1A4
BUFFERS = "Using buffer size of 100.000MiB/thread for reads and an additional 100.000MiB/thread for writes"
NO_CONTROL = (
    "*** Unable to modify prefetchers (try executing 'modprobe msr')\n"
    "*** So, enabling random access for latency measurements\n"
)


def main():
    options = sys.argv[1:]
    if options == ["--help"]:
        print("Intel(R) Memory Latency Checker - v3.11b\nuse one of: --" + " --".join(OUTPUTS["sequential"]))
        return 0
    try:
        ill = Path("/etc/mlc_standin").read_text().strip()
    except OSError:
        ill = ""
    mode = options[0][2:]
    print("Intel(R) Memory Latency Checker - v3.11b\nCommand line parameters: " + " ".join(options) + " \n")
    if mode not in OUTPUTS["sequential"]:
        print("Unsupported argument " + options[0] + "\nExiting...")
        return 22
    print(BUFFERS if "bandwidth" in mode or "loaded" in mode else "Using buffer size of 2000.000MiB")
    if "-L" in options:
        print("mmap: Cannot allocate memory\nLikely insufficient large pages in the system, mmap error")
        return 13
    before = set_register(b"\x0f" + bytes(7))
    if before is None:
        print(NO_CONTROL, end="")
    text = OUTPUTS["random" if before is None else "sequential"][mode]
    if ill:
        print(text[: len(text) * 2 // 3 if ill == "cut" else text.index("\n") + 1], end="", flush=True)
        if ill == "crash":
            os.kill(os.getpid(), signal.SIGSEGV)
        signal.signal(signal.SIGINT, signal.SIG_IGN if ill == "stubborn" else signal.SIG_DFL)
        while ill in ("hang", "stubborn"):
            time.sleep(60)
    else:
        print(text, end="")
    if before is not None:
        set_register(before)
    return 0


def set_register(value):
    """What stood there before; None where we may not."""
    try:
        file = os.open(REGISTER, os.O_RDWR)
    except OSError:
        return None
    before = os.pread(file, 8, OFFSET)
    os.pwrite(file, value, OFFSET)
    os.close(file)
    return before


if __name__ == "__main__":
    sys.exit(main())
