"""Start the job of a host on that host: store it, and launch its runner detached.

keeper.py starts a job that tries a setting. Settings left by an interrupted trial are restored before another job
starts.

Standard library only, Python 3.6 and later. A host runs one job at a time (``lock``).
"""

import glob
import json
import os
import shutil
import sys

from files import BARE, FULL, write_atomic
from groups import command, environment
from groups import remove as remove_groups
from lock import lock_holder, other_user
from private import open_private
from steps import remaining, was_lost


def start(payload):
    """Launch ``payload["job"]`` with ``payload["source"]`` (file name to text). Return the answer to the controller.

    The answer has ``state``; ``holder`` if another job holds the lock; and ``warning`` if another user's job may run at
    the same time, or if the end of a session can end the job. If an interrupted trial left a setting changed,
    ``cleared`` describes what was restored. If a setting could not be restored, ``left`` names it, and the job does not
    start, because it would measure with that setting. Raise RuntimeError if the disk is full or the work directory is
    not private, and OSError.
    """
    try:
        return launch(payload)
    except OSError as error:
        if error.errno in FULL:
            raise RuntimeError("the disk of %s is full: free some space" % payload["job"]["work"]) from error
        raise


def launch(payload):
    """Launch the job like ``start``, but raise OSError if the disk is full."""
    job = payload["job"]
    work = job["work"]
    os.close(open_private(work))
    folder = job["folder"]
    holder = lock_holder(work)
    if holder:
        state = "running" if holder.get("dir") == folder else "busy"
        return {"state": state, "dir": folder, "holder": holder}
    of_trials = put_back(work, payload["source"])
    if "left" in of_trials:
        error = "a setting changed by a trial was not restored: %s; restore it by hand, then run on the host: rm %s"
        answer = {"state": "error", "dir": folder, "error": error % (of_trials["left"], of_trials.pop("files"))}
    else:
        answer = begin(payload, folder)
    return dict(answer, **of_trials)


def put_back(work, source):
    """Restore the settings of jobs that no longer run.

    Return sentences about restored settings (``cleared``) and settings that could not be restored (``left``), if any,
    with the ``files`` that store the latter, quoted for a shell.
    """
    paths = glob.glob(os.path.join(work, "jobs", "*", "*", "setting.json"))
    if not paths:
        return {}
    import shlex  # few jobs need it

    names = {"__name__": "setting"}
    exec(source["setting.py"], names)  # the files of this job are not stored yet
    each = [(path, *names["clear"](os.path.dirname(path))) for path in paths]
    sentences = {"cleared": ". ".join(filter(None, (done for _, done, _ in each)))}
    sentences["left"] = "; ".join(filter(None, (left for _, _, left in each)))
    sentences["files"] = " ".join(shlex.quote(path) for path, _, left in each if left)
    return {kind: text[:800] for kind, text in sentences.items() if text}


def begin(payload, folder):
    """Store the job and start its runner. No other job runs here."""
    job = payload["job"]
    clear_over(job["work"])
    clear_leftovers(job["work"])
    for sub in ("steps", "go", "scratch"):
        os.makedirs(os.path.join(folder, sub), exist_ok=True)
    for name, text in payload["source"].items():  # without sync: the controller can resend them
        with open(os.path.join(folder, name), "wb") as out:
            out.write(text.encode())
    write_atomic(os.path.join(folder, "job.json"), json.dumps(job).encode())
    for name in os.listdir(os.path.join(folder, "go")):  # releases from before an interruption are stale
        os.unlink(os.path.join(folder, "go", name))
    for step in job["steps"]:  # servers start again, and lost steps run again
        done = os.path.join(folder, "steps", step["id"])
        if os.path.exists(done) and (step.get("serves") or was_lost(done)):
            shutil.rmtree(done, ignore_errors=True)
    if not remaining(folder, job):
        return {"state": "finished", "dir": folder}
    events = os.path.join(folder, "events.jsonl")
    if os.path.exists(events):
        os.unlink(events)  # old events are no longer valid; finished steps are in the folder steps
    words, warning = command(job.get("shares"))
    pid, first = detach(folder, job.get("setting"), words)
    with os.fdopen(first, "rb") as source:
        first_line = source.readline().decode().strip()
    if first_line != "started":
        os.waitpid(pid, 0)
        holder = lock_holder(job["work"])
        if holder:
            return {"state": "busy", "dir": folder, "holder": holder}
        if first_line == "busy":
            first_line = "another job of this host was starting at the same moment; resume the campaign"
        return {
            "state": "error",
            "dir": folder,
            "error": first_line or "the runner ended at once (%s); see %s/runner.log" % (last_line(folder), folder),
        }
    warning = ". ".join(filter(None, (other_user(), warning)))
    return {"state": "started", "dir": folder, **({"warning": warning} if warning else {})}


def last_line(folder):
    with open(os.path.join(folder, "runner.log"), "rb") as log:
        log.seek(max(0, os.fstat(log.fileno()).st_size - 2000))
        lines = log.read().decode("utf-8", "replace").strip().splitlines()
    return lines[-1][:300] if lines else "it printed nothing"


def clear_over(work):
    """Remove the folders of jobs that Slurm ended while this node was off, and whose campaigns have ended since."""
    for path in jobs_in(work):
        if is_over(path):
            folder = os.path.dirname(path)
            shutil.rmtree(folder, ignore_errors=True)
            try:
                os.rmdir(os.path.dirname(folder))
            except OSError:
                pass  # another name of this machine is in the campaign's folder


def jobs_in(work):
    """Return the job.json of each job in the work directory."""
    return glob.glob(os.path.join(work, "jobs", "*", "*", "job.json"))


def is_over(path):
    """Return whether the campaign of a job has ended without this node, so that only its shared folder is missing."""
    try:
        with open(path) as source:
            shared = json.load(source).get("shared")
    except (OSError, ValueError, AttributeError):
        return False
    return bool(shared) and os.path.isdir(os.path.dirname(shared)) and not os.path.lexists(shared)


def clear_leftovers(work):
    """Remove unfinished files and groups of killed jobs from the work directory: the lock is free, so no job runs."""
    for folder in glob.glob(os.path.join(work, "jobs", "*", "*")):
        remove_groups(folder)
    for kind in ("scratch", "reserve", "*.part", os.path.join("steps", "*.part"), os.path.join("go", "*.part")):
        for path in glob.glob(os.path.join(work, "jobs", "*", "*", kind)):
            if os.path.isdir(path) and not os.path.islink(path):
                shutil.rmtree(path, ignore_errors=True)
            else:
                remove(path)


def remove(path):
    try:
        os.unlink(path)
    except OSError:
        pass  # it no longer exists, or its folder is not writable


def detach(folder, is_trial, scope):
    """Start the runner in its own session. For a trial, start the keeper, which starts the runner.

    ``scope``: words before its command. Return the process and a pipe with its first line. Without a scope, the runner
    is a fork of this process, because starting Python again would take 25 ms.
    """
    reading, writing = os.pipe()
    sys.stdout.flush()
    sys.stderr.flush()
    pid = os.fork()
    if pid:
        os.close(writing)
        return pid, reading
    status = 1
    try:
        os.setsid()
        os.chdir("/")
        log = os.open(os.path.join(folder, "runner.log"), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        for source, standard in ((os.open(os.devnull, os.O_RDONLY), 0), (writing, 1), (log, 2)):
            os.dup2(source, standard)
        close_others()
        if is_trial or scope:
            program = os.path.join(folder, "keeper.py" if is_trial else "runner.py")
            words = [*scope, sys.executable, *BARE, program, folder]
            os.execvpe(words[0], words, environment() if scope else os.environ)
        sys.path.insert(0, folder)
        sys.dont_write_bytecode = True
        import runner

        runner.main(folder)
        sys.stdout.flush()  # _exit discards the buffer, which contains the reason for the missing lock
        status = 0
    except BaseException:  # noqa: BLE001
        sys.excepthook(*sys.exc_info())
    finally:
        os._exit(status)  # callers on the stack wait for threads that exist only in the parent process


def close_others():
    """Close all descriptors except the standard streams: the connection, and pipes of commands that did not answer."""
    for number in map(int, os.listdir("/proc/self/fd")):
        if number > 2:
            try:
                os.close(number)
            except OSError:
                pass  # the descriptor of the listing itself
