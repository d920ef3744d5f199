"""Read hostile files in separate processes, and report the outcome and the peak memory of each.

One process loads the reader and forks for each file, because starting Python for each file takes most of the time.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from fleetmark.base.errors import FleetmarkError

HOUSE = Path(__file__).parents[1]
MOST_ADDRESSES = 6 << 30  # bytes of address space; a failure exhausts this limit, not the machine's memory
Read = Callable[[Path], tuple[str, int]]


@contextmanager
def reader(code: str) -> Iterator[Read]:
    """Yield a function that calls ``read`` of ``code`` with a file, and returns the outcome and the peak memory in KiB.

    The outcome is ``read`` and the value, ``refused`` and the message, or ``died`` and the reason.
    """
    words = [sys.executable, "-m", "tests.bombs", code]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=HOUSE) as process:
        assert process.stdin and process.stdout
        requests, replies = process.stdin, process.stdout

        def read(file: Path) -> tuple[str, int]:
            print(file, file=requests, flush=True)
            outcome, peak_kib = json.loads(replies.readline())
            return outcome, peak_kib

        yield read
        requests.close()


def _attempt(read: Callable[[Path], Any], file: Path) -> tuple[str, int]:
    resource.setrlimit(resource.RLIMIT_AS, (MOST_ADDRESSES, MOST_ADDRESSES))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    try:
        outcome = f"read {read(file)}"
    except FleetmarkError as error:
        outcome = f"refused {error}"
    except Exception as error:  # noqa: BLE001  the test shows it
        outcome = f"died {error!r}"
    status = Path("/proc/self/status").read_text()
    return outcome, int(status.partition("VmHWM:")[2].split()[0])  # ru_maxrss would count the memory of the parent


def _serve(read: Callable[[Path], Any]) -> None:
    for line in sys.stdin:
        near, far = os.pipe()
        child = os.fork()
        if child == 0:
            os.write(far, json.dumps(_attempt(read, Path(line.rstrip("\n")))).encode())
            os._exit(0)
        os.close(far)
        with os.fdopen(near, "rb") as pipe:
            reply = pipe.read().decode()
        _, status = os.waitpid(child, 0)
        sys.stdout.write(f"{reply or json.dumps([f'died with status {status}', 0])}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    namespace: dict[str, Any] = {}
    exec(sys.argv[1], namespace)
    _serve(namespace["read"])
