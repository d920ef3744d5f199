"""Step the clock that a controller or a host sees, with a small library: this machine's own clock stays as it is."""

from __future__ import annotations

import subprocess
from pathlib import Path

from tests.fleet.hosts import Fleet

STEPS = (-31_536_000, -3600, -30, 30, 3600, 31_536_000)  # seconds
SOURCE = r"""
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static long offset(void) {
    char text[32] = "";
    int file = open(getenv("STEPPED_CLOCK") ?: "", O_RDONLY | O_CLOEXEC);
    if (file < 0) return 0;
    if (read(file, text, sizeof text - 1) < 0) text[0] = 0;
    close(file);
    return atol(text);
}
int clock_gettime(clockid_t clock, struct timespec *now) {
    int failed = syscall(SYS_clock_gettime, clock, now);
    if (!failed && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)) now->tv_sec += offset();
    return failed;
}
int gettimeofday(struct timeval *restrict now, void *restrict zone) {
    struct timespec precise;
    clock_gettime(CLOCK_REALTIME, &precise);
    now->tv_sec = precise.tv_sec;
    now->tv_usec = precise.tv_nsec / 1000;
    return 0;
}
time_t time(time_t *where) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (where) *where = now.tv_sec;
    return now.tv_sec;
}
"""
COMPILE = ["cc", "-shared", "-fPIC", "-O2", "-w", "-x", "c", "-", "-o"]
CLOCK, LIBRARY = Path("/srv/clock"), Path("/srv/clock.so")  # on hosts
SESSIONS = (
    "sed -i 's|^SetEnv .*|SetEnv OMP_WAIT_POLICY=passive {}|' /etc/ssh/sshd_config; kill -HUP $(cat /run/sshd.pid)"
)


def stepped(clock: Path) -> dict[str, str]:
    """Start a clock, a file that holds the seconds from the true time. Return the environment of programs that read it."""
    library = clock.with_suffix(".so")
    clock.write_text("0")
    subprocess.run([*COMPILE, str(library)], input=SOURCE, text=True, check=True)
    return {"LD_PRELOAD": str(library), "STEPPED_CLOCK": str(clock)}


def lend(fleet: Fleet, host: str) -> None:
    """Let all SSH sessions of a host read the clock /srv/clock."""
    fleet.exec(host, [*COMPILE, str(LIBRARY)], input=SOURCE)
    words = SESSIONS.format(f"LD_PRELOAD={LIBRARY} STEPPED_CLOCK={CLOCK}")
    fleet.exec(host, ["sh", "-c", f"echo 0 >{CLOCK}; {words}"])


def take_back(fleet: Fleet, host: str) -> None:
    """Give a host's sessions this machine's clock again."""
    fleet.exec(host, ["sh", "-c", f"rm -f {CLOCK}; {SESSIONS.format('')}"])
