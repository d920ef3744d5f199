"""The steps of a job as its folder holds them: which are finished, which files are kept, which orders there are.

Imported by the agent's programs on a host. Standard library only, Python 3.6 and later.
"""

import fnmatch
import json
import os
import re

ORDERS = ("go", "skip", "fail", "cancel", "drop")  # the controller's orders for one step
OWN_FILES = ("result.json", "stdout", "stderr", "server.stdout", "server.stderr")  # of every step
PLAIN_NAME = re.compile(r"[A-Za-z0-9_+@,=:~ -][A-Za-z0-9_+@,=:~ .-]{0,199}$")


def work_of(folder):
    """Return the work directory of the job in ``folder``, which is WORK/jobs/CAMPAIGN/HOST."""
    return os.path.dirname(os.path.dirname(os.path.dirname(folder)))


def remaining(folder, job):
    """Return the steps of ``job`` that have no result in ``folder``."""
    return [s for s in job["steps"] if not os.path.exists(os.path.join(folder, "steps", s["id"], "result.json"))]


def stored_result(step_folder):
    """Return the result of a finished step; None if its file is damaged."""
    try:
        with open(os.path.join(step_folder, "result.json")) as source:
            result = json.load(source)
        times = [result["started"], result["wall_s"]]
        is_whole = isinstance(result["ended"], str) and all(isinstance(t, (int, float)) for t in times)
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return None
    return result if is_whole else None


def was_lost(step_folder):
    """Return whether a step with a stored result has to run again."""
    result = stored_result(step_folder)
    return result is None or result["ended"] == "lost"


def is_kept(step, name):
    """Return whether the archive keeps a file of that name: the runner's own, or one that the step's patterns name."""
    patterns = [os.path.basename(pattern) for pattern in step.get("files", ())]
    named = any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns)
    return name in OWN_FILES or (named and PLAIN_NAME.match(name) is not None and name != "step.json")
