"""Watch the runner of a trial, and restore its setting when the runner is gone, for whatever reason.

``python3 keeper.py DIR`` starts the runner of the job in DIR, which does the same at its own end: so only a host that
loses both keeps the setting, until its next job is started or it boots. The runner hands over the old values by a pipe
before it sets anything, so that they can be put back without the folder. Standard library only, Python 3.6 and later.
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
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # the launcher waits for the runner's line only
    with open(lines, "rb") as source:
        documents = [json.loads(line.decode()) for line in source if line.endswith(b"\n")]
    runner.wait()
    if len(documents) == 1 and is_mine(folder, documents[0]):  # else it set nothing, or set it back itself
        left = setting.restore(folder, documents[0])
        if left:
            tell_left(folder, left)


def is_mine(folder, state):
    """Return whether this trial must still restore the setting. The start of another job may have restored it first, or
    a runner of the same job may have begun again.
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
    """Have the follower know, as the runner would have."""
    event = {"e": "finish", "state": ("left: " + "; ".join(left))[:1000], "t": time.time()}
    try:
        with open(os.path.join(folder, "events.jsonl"), "a") as out:
            out.write(json.dumps(event) + "\n")
    except OSError:
        sys.stderr.write(event["state"] + "\n")


if __name__ == "__main__":
    main()
