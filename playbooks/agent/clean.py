"""Remove Fleetmark's files from a host: the work directory, and the distribution packages that Fleetmark installed.

install.sh records each package that it adds in the file ``packages`` of the work directory. Only those are removed,
and only if no other package needs them. Standard library only, Python 3.6 and later.
"""

import os
import re
import shutil
import subprocess

from job import clear_leftovers, is_over, jobs_in, put_back
from lock import Busy, Lock, lock_holder
from private import NotPrivate, open_private

RECORD = "packages"  # in the work directory: a line for each package, FAMILY ACTION NAME
COMMAND_S = 600.0
APT = ["apt-get", "-q", "-y", "-o", "DPkg::Lock::Timeout=300", "-o", "APT::Get::AutomaticRemove=0"]
# By family: the command that succeeds if a package is installed,
INSTALLED = {"rhel": ["rpm", "-q"], "suse": ["rpm", "-q"], "alpine": ["apk", "info", "-e"], "arch": ["pacman", "-Q"]}
# and a command that fails if another package needs one of these, with the command that removes them.
REMOVALS = {
    "rhel": (["rpm", "-e", "--test"], ["rpm", "-e"]),
    "suse": (["rpm", "-e", "--test"], ["rpm", "-e"]),
    "alpine": (["true"], ["apk", "del", "--no-progress"]),
    "arch": (["true"], ["pacman", "-R", "--noconfirm"]),  # this command itself refuses if a package is needed
}


def clean(request):
    """Remove the work directory ``request["work"]`` and the packages recorded in it. Return what was found.

    The answer has ``bytes`` of the folder, names of ``packages``, and campaigns with ``results`` that no controller has
    collected. With ``dry_run``, nothing changes. ``discard``: also remove such results. ``error``: why nothing was
    removed; ``kept``: the items that could not be removed, with reasons.
    """
    work = request["work"]
    if not os.path.lexists(work):
        return {"absent": True}
    answer = {}
    try:
        os.close(open_private(work, create=False))
        answer = contents(work)
        refuse(work, answer, request)
        if not request["dry_run"]:
            remove(work, answer, request["source"])
    except (NotPrivate, RuntimeError, OSError, subprocess.TimeoutExpired) as error:
        answer["error"] = str(error)
    return answer


def contents(work):
    """Return what ``clean`` would remove."""
    size = 0
    for folder, _, names in os.walk(work):
        for name in names:
            try:
                size += os.lstat(os.path.join(folder, name)).st_blocks * 512
            except OSError:
                pass  # it is gone
    jobs = [path for path in jobs_in(work) if not is_over(path)]
    results = sorted({os.path.basename(os.path.dirname(os.path.dirname(path))) for path in jobs})
    return {"bytes": size, "packages": [name for _, _, name in recorded(work)], "results": results}


def refuse(work, answer, request):
    """Raise RuntimeError if nothing may be removed from the host."""
    holder = lock_holder(work)
    if holder:
        problem = "a job of campaign %s is running; wait for its end, or stop it with Ctrl-C in its terminal"
        raise RuntimeError(problem % holder.get("campaign", "of another user"))
    for place in mounted(work):
        raise RuntimeError("a file system is mounted on %s; unmount it first" % place)
    if answer["results"] and not request["discard"]:
        problem = "it contains results of %s; collect them with `fleetmark run --resume`, or delete them with --discard"
        raise RuntimeError(problem % ", ".join(answer["results"]))


def mounted(work):
    """Return the mount points at ``work`` and below."""
    top = os.path.realpath(work)
    with open("/proc/self/mountinfo") as source:
        places = [line.split()[4].replace("\\040", " ") for line in source]
    return [place for place in places if place == top or place.startswith(top + "/")]


def remove(work, answer, source):
    """Restore changed settings, then remove the packages and the work directory. A new job cannot start meanwhile."""
    settings = put_back(work, source)
    if "left" in settings:
        raise RuntimeError("a setting that a trial changed is not restored: %s" % settings["left"])
    try:
        lock = Lock(work)
    except Busy:
        raise RuntimeError("a job is starting; try again after its end") from None
    clear_leftovers(work)
    kept = remove_packages(recorded(work))
    if kept:
        answer["kept"] = kept
        for name in os.listdir(work):  # the record stays with the packages
            if name != RECORD:
                discard(os.path.join(work, name))
    else:
        shutil.rmtree(work)
    del lock


def discard(path):
    if os.path.isdir(path) and not os.path.islink(path):
        shutil.rmtree(path)
    else:
        os.unlink(path)


def recorded(work):
    """Return the family, action and name of each recorded package that is still installed."""
    try:
        with open(os.path.join(work, RECORD)) as source:
            lines = [line.split() for line in source]
    except FileNotFoundError:
        return []
    rows = [tuple(words) for words in lines if len(words) == 3 and not words[2].startswith("-")]
    return [row for row in dict.fromkeys(rows) if is_installed(row[0], row[2])]


def is_installed(family, name):
    if family != "debian":
        return family not in INSTALLED or run([*INSTALLED[family], name]).returncode == 0
    done = run(["dpkg-query", "-W", "-f", "${db:Status-Status}", name])
    return done.returncode == 0 and done.stdout.strip() == "installed"


def remove_packages(rows):
    """Remove the packages. Return why they could not be removed; empty on success."""
    for family in sorted({family for family, _, _ in rows}):
        names = [name for other, _, name in rows if other == family]
        if os.geteuid() != 0:
            return "%s: removing packages needs root; use --become" % ", ".join(names)
        if family == "debian":
            kept = remove_debian([row for row in rows if row[0] == family])
        elif family in REMOVALS:
            trial, command = REMOVALS[family]
            kept = failure(trial + names) or failure(command + names) or still_installed(family, names)
        else:
            kept = "Fleetmark does not support the package manager of %s" % family
        if kept:
            return "%s: %s" % (", ".join(names), kept)
    return ""


def still_installed(family, names):
    """Return which packages a package manager left in place without an error, as apk does for needed ones."""
    left = [name for name in names if is_installed(family, name)]
    return "other packages need %s" % ", ".join(left) if left else ""


def remove_debian(rows):
    """Purge packages, or only remove those whose configuration is older than Fleetmark's installation."""
    names = [name for _, _, name in rows]
    trial = run([*APT, "-s", "remove", *names])
    lines = [line.split() for line in trial.stdout.splitlines()]
    known = {name.partition(":")[0] for name in names}
    others = sorted({words[1] for words in lines if words[:1] in (["Remv"], ["Inst"])} - known)
    if others:
        return "other packages need them: %s" % ", ".join(others[:5])
    kept = failure([*APT, "remove", *names])
    unused = [name for _, action, name in rows if action == "purge"]
    return kept or (failure(["dpkg", "--purge", *unused]) if unused else "")


def failure(words):
    """Run a command. If it fails, return the line of its output that gives the reason."""
    done = run(words)
    if done.returncode == 0:
        return ""
    lines = (done.stderr.strip() or done.stdout.strip()).splitlines() or ["exit status %d" % done.returncode]
    dependent = [line for line in (done.stderr + done.stdout).splitlines() if re.search("(needed|required) by ", line)]
    return "%s: %s" % (words[0], (dependent or lines[-1:])[0].strip()[:300])


def run(words):
    environment = dict(os.environ, LC_ALL="C", DEBIAN_FRONTEND="noninteractive", NEEDRESTART_MODE="l")
    environment["PATH"] = os.environ.get("PATH", "/usr/bin:/bin") + ":/usr/sbin:/sbin"
    return subprocess.run(
        words,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        universal_newlines=True,
        timeout=COMMAND_S,
        env=environment,
        check=False,
    )
