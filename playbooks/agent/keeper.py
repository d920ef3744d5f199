"""Watch the runner of a trial, and restore its setting when the runner ends for any reason.

``python3 keeper.py DIR`` starts the runner of the job in DIR, which restores the setting at its own end. If both
processes are killed, the setting stays until the next job or reboot. The runner sends the old values through a pipe
before it changes anything, so that they can be restored without the folder. Standard library only, Python 3.6 and
later.
"""

import json
import os
import signal
import subprocess
import sys
import time

import setting
from files import BARE
from lock import lock_holder
from steps import work_of


def main():
    folder = sys.argv[1]
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    lines, handed = os.pipe()
    runner = subprocess.Popen(
        [sys.executable, *BARE, os.path.join(folder, "runner.py"), folder, str(handed)],
        start_new_session=True,
        pass_fds=[handed],
    )
    os.close(handed)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # the launcher waits only for the runner's line
    with open(lines, "rb") as source:
        documents = [json.loads(line.decode()) for line in source if line.endswith(b"\n")]
    runner.wait()
    # Otherwise, the runner changed nothing, or restored the setting itself.
    if len(documents) == 1 and is_mine(folder, documents[0]):
        left = setting.restore(folder, documents[0])
        if left:
            tell_left(folder, left)


def is_mine(folder, state):
    """Return whether this trial must still restore the setting. The start of another job may have restored it first, or
    another runner of the same job may have started.
    """
    holder = lock_holder(work_of(folder))
    if holder and holder.get("dir") == folder:
        return False
    try:
        return setting.load(folder) == state
    except FileNotFoundError:
        return not (holder and os.path.isdir(folder))
    except setting.UNREADABLE:
        return True


def tell_left(folder, left):
    """Inform the follower in the same way as the runner."""
    event = {"e": "finish", "state": ("left: " + "; ".join(left))[:1000], "t": time.time()}
    try:
        with open(os.path.join(folder, "events.jsonl"), "a") as out:
            out.write(json.dumps(event) + "\n")
    except OSError:
        sys.stderr.write(event["state"] + "\n")


if __name__ == "__main__":
    main()
