"""Read the steps of a job from its folder: which are finished, which files to keep, and the controller's orders.

The agent's programs on a host import it. Standard library only, Python 3.6 and later.
"""

import fnmatch
import json
import os
import re

ORDERS = ("go", "skip", "fail", "cancel", "drop")  # the controller's orders for one step
OWN_FILES = ("result.json", "stdout", "stderr", "server.stdout", "server.stderr")  # files of every step
PLAIN_NAME = re.compile(r"[A-Za-z0-9_+@,=:~ -][A-Za-z0-9_+@,=:~ .-]{0,199}$")


def work_of(folder):
    """Return the work directory of the job in ``folder``; the folder is WORK/jobs/CAMPAIGN/HOST."""
    return os.path.dirname(os.path.dirname(os.path.dirname(folder)))


def remaining(folder, job):
    """Return the steps of ``job`` without a result in ``folder``."""
    return [s for s in job["steps"] if not os.path.exists(os.path.join(folder, "steps", s["id"], "result.json"))]


def stored_result(step_folder):
    """Return the result of a finished step; None if the file is damaged."""
    try:
        with open(os.path.join(step_folder, "result.json")) as source:
            result = json.load(source)
        times = [result["started"], result["wall_s"]]
        is_whole = isinstance(result["ended"], str) and all(isinstance(t, (int, float)) for t in times)
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return None
    return result if is_whole else None


def was_lost(step_folder):
    """Return whether a step with a stored result must run again."""
    result = stored_result(step_folder)
    return result is None or result["ended"] == "lost"


def is_kept(step, name):
    """Return whether the archive keeps a file with this name: a file of the runner, or one that matches the step."""
    patterns = [os.path.basename(pattern) for pattern in step.get("files", ())]
    named = any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns)
    return name in OWN_FILES or (named and PLAIN_NAME.match(name) is not None and name != "step.json")
