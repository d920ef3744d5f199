"""One host's job on that host: stored, launched detached, located later. Shared by runner.py and follow.py.

A job that tries a setting is started by keeper.py; what an interrupted one left is put back before any other begins.

Standard library only, Python 3.6 and later. A host runs one job at a time: the lock is an abstract Unix socket, which
the kernel frees when the runner dies. A client that connects gets the holder's identity, then a byte at every event.
"""

import errno
import fnmatch
import glob
import json
import os
import re
import shutil
import socket
import stat
import struct
import sys

FULL = (errno.ENOSPC, errno.EDQUOT)
LOCK = b"\0fleetmark-host-job"
BARE = ("-E", "-s", "-S")  # without the modules and settings of the user and the site: twice as fast to start
ORDERS = ("go", "skip", "fail", "cancel", "drop")  # the controller's orders for one step
OWN_FILES = ("result.json", "stdout", "stderr", "server.stdout", "server.stderr")  # of every step
PLAIN_NAME = re.compile(r"[A-Za-z0-9_+@,=:~ -][A-Za-z0-9_+@,=:~ .-]{0,199}$")
GONE = (ConnectionRefusedError, ConnectionResetError, BrokenPipeError)  # the lock is free, or its holder is ending


def start(payload):
    """Launch ``payload["job"]`` with ``payload["source"]`` (file name to text). Returns state, holder if busy, and
    where an interrupted trial had left a setting: what was put back (``cleared``), and what could not be (``left``).
    Nothing starts then, as it would measure with that setting. Raises RuntimeError where its disk is full.
    """
    try:
        return launch(payload)
    except OSError as error:
        if error.errno in FULL:
            raise RuntimeError("the disk of %s is full: make room there" % payload["job"]["work"]) from error
        raise


def launch(payload):
    """As ``start``, but with a full disk as the OSError that it is."""
    job = payload["job"]
    work = job["work"]
    make_private(work)
    folder = job["folder"]
    holder = lock_holder()
    if holder:
        state = "running" if holder.get("dir") == folder else "busy"
        return {"state": state, "dir": folder, "holder": holder}
    of_trials = put_back(work, payload["source"])
    if "left" in of_trials:
        error = "a setting that a trial left is still there: %s; see that it is as it should be, then type there: rm %s"
        answer = {"state": "error", "dir": folder, "error": error % (of_trials["left"], of_trials.pop("files"))}
    else:
        answer = begin(payload, folder)
    return dict(answer, **of_trials)


def put_back(work, source):
    """Put back the settings of jobs that no longer run. Returns sentences: what was done (``cleared``), and what could
    not be (``left``), where there is any, with the ``files`` that keep it, as words for a shell.
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
    """Store the job and start its runner, as nothing else runs here."""
    job = payload["job"]
    for other in glob.glob(os.path.join(job["work"], "jobs", "*", "*", "scratch")):
        shutil.rmtree(other, ignore_errors=True)  # of a killed job: the lock is free, so none runs
    for sub in ("steps", "go", "scratch"):
        os.makedirs(os.path.join(folder, sub), exist_ok=True)
    for name, text in payload["source"].items():  # they come again with the job where this host loses its power
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
        os.unlink(events)  # old events no longer hold; finished steps are in the folder steps
    pid, first = detach(folder, job.get("setting"))
    with os.fdopen(first, "rb") as source:
        first_line = source.readline().decode().strip()
    if first_line != "started":
        os.waitpid(pid, 0)
        holder = lock_holder()
        if holder:
            return {"state": "busy", "dir": folder, "holder": holder}
        return {
            "state": "error",
            "dir": folder,
            "error": first_line or "the runner ended at once; see %s/runner.log" % folder,
        }
    return {"state": "started", "dir": folder}


def detach(folder, is_trial):
    """Start the runner in a session of its own, for a trial its keeper, which starts it. Returns the process and a pipe
    with its first line. The runner is a copy of this process: to load a Python again would take a host 25 ms.
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
        for own, standard in ((os.open(os.devnull, os.O_RDONLY), 0), (writing, 1), (log, 2)):
            os.dup2(own, standard)
        close_others()
        if is_trial:
            os.execv(sys.executable, [sys.executable, *BARE, os.path.join(folder, "keeper.py"), folder])
        sys.path.insert(0, folder)
        sys.dont_write_bytecode = True
        import runner

        runner.main(folder)
        status = 0
    except BaseException:  # noqa: BLE001
        sys.excepthook(*sys.exc_info())
    finally:
        os._exit(status)  # what is below on the stack, and waits for its threads, belongs to the process above


def close_others():
    """Close all but the standard streams: the connection's, and those of commands that did not answer."""
    for number in map(int, os.listdir("/proc/self/fd")):
        if number > 2:
            try:
                os.close(number)
            except OSError:
                pass  # that of the listing itself


def was_lost(step_folder):
    """Whether a step with a stored result has to run again."""
    try:
        with open(os.path.join(step_folder, "result.json")) as source:
            return json.load(source)["ended"] == "lost"
    except (OSError, ValueError, KeyError, TypeError):
        return True  # damaged


def make_private(path):
    """Create ``path`` as our own folder. /var/tmp is shared, so a folder of another user is refused."""
    os.makedirs(path, mode=0o700, exist_ok=True)
    info = os.lstat(path)
    if not stat.S_ISDIR(info.st_mode) or info.st_uid != os.geteuid() or info.st_mode & 0o022:
        raise RuntimeError("%s is not a folder of this user alone: remove it, or choose --work-dir" % path)


def lock_holder():
    """The holder of the lock on this host, or None; ``pid`` and ``uid`` are the kernel's, the rest the runner's."""
    try:
        with connect() as sock:
            return greeting_of(sock)
    except GONE:
        return None


def greeting_of(sock):
    """The greeting of the lock's holder. Its folder is only trusted from our own user or root."""
    pid, uid = peer_of(sock)
    received = b""
    while b"\n" not in received:
        more = sock.recv(4096)
        if not more:
            raise ConnectionRefusedError("it is just ending")
        received += more
    holder = json.loads(received.partition(b"\n")[0].decode())
    if uid not in (0, os.geteuid()):
        holder["dir"] = None
    return dict(holder, pid=pid, uid=uid)


def peer_of(sock):
    """The process at the other end and its user, as the kernel has them."""
    pid, uid, _ = struct.unpack("3i", sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
    return pid, uid


def connect():
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    sock.settimeout(30)
    sock.connect(LOCK)
    return sock


def write_atomic(path, data):
    with open(path + ".part", "wb") as out:
        out.write(data)
        out.flush()
        os.fsync(out.fileno())
    os.rename(path + ".part", path)


def hold(file, size):
    """Take so many bytes of the disk, without writing them where the file system can: a MiB takes 5 ms."""
    try:
        os.posix_fallocate(file.fileno(), 0, size)
    except OSError as error:
        if error.errno in FULL:
            raise
        file.write(b"\0" * size)


def remaining(folder, job):
    return [s for s in job["steps"] if not os.path.exists(os.path.join(folder, "steps", s["id"], "result.json"))]


def is_kept(step, name):
    """Whether a file of that name goes to the archive: the runner's own, or one that the step's patterns name."""
    patterns = [os.path.basename(pattern) for pattern in step.get("files", ())]
    named = any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns)
    return name in OWN_FILES or (named and PLAIN_NAME.match(name) is not None and name != "step.json")
