"""A setting of this host that a trial sets and puts back. What it was is on disk before anything is changed.

Imported by the runner, its keeper, the follower and the start of a job. Standard library only, Python 3.6 and later.
``setting.json`` in the job's folder holds the old values, and the boot in which they were read: after another boot the
kernel has its own values again, and the file says nothing about them. The runner and its keeper hold the same in
memory, for where the folder goes.
"""

import glob
import json
import os
import re
import subprocess
import time

NAME = "setting.json"
BOOT = "/proc/sys/kernel/random/boot_id"
PATIENCE_S = 30  # of a command that reads or sets something
GRACE_S = 5  # of a command that was killed
WORD = 200  # characters of a value that are kept
UNREADABLE = (ValueError, KeyError, TypeError, AttributeError, OSError)  # what a damaged file raises
MOST = 1 << 20  # characters of a damaged file that are looked through
MOST_PARTS = 4096  # that are taken from it
UNCHANGED = re.compile(r"\bno\b.*\bchanged\b")  # ethtool's words, and an error to it, where a value is set already


class CannotSet(Exception):
    """A setting cannot be read or written; the message says which, and why."""


def begin(folder, items):
    """Store what is set now, and return it. Raises CannotSet, with nothing changed, where something cannot be read or
    written, or where all of it is so already.
    """
    refuse_dependents(items)
    parts = concrete(items)
    if not parts:
        raise CannotSet("this host has no %s" % " or ".join(item["path"] for item in items))
    for part in parts:
        part["old"] = current(part)
        rehearse(part)
    if all(same(part, part["old"], part["value"]) for part in parts):
        raise CannotSet("%s is %s already, so there is nothing to try" % (name(parts[0]), parts[0]["value"]))
    state = {"boot": boot(), "by": "%d %r" % (os.getpid(), time.time()), "items": parts}
    store(folder, state)
    return state


def refuse_dependents(items):
    """Raises CannotSet where something else follows an item's value and would keep it (``unless``: files that show
    it).
    """
    for item in items:
        shown = sorted(glob.glob(item["unless"])) if item.get("unless") else []
        if shown:
            raise CannotSet(
                "%s shows that something else follows %s, and would not come back with it" % (shown[0], name(item))
            )


def rehearse(part):
    """Write the value that it has, which shows whether it can be written."""
    try:
        put(part, part["old"])
    except CannotSet as error:
        if part.get("path") or not UNCHANGED.search(str(error)):
            raise


def concrete(items):
    """A part per file that an item's pattern names, and per command."""
    parts = []
    for item in items:
        if item.get("path"):
            parts += [{"path": path, "value": item["value"]} for path in sorted(glob.glob(item["path"]))]
        else:
            parts.append(dict(item))
    return parts


def turn(folder, state, on):
    """Set the new values, or the old ones again. Raises CannotSet where a value does not read as it was set; the old
    values are set again then.
    """
    if on and not os.path.exists(os.path.join(folder, NAME)):
        store(folder, state)  # something that removes old files was here
    parts = state["items"]
    try:
        for part in parts:
            wanted = part["value"] if on else part["old"]
            if not same(part, current(part), wanted):
                put(part, wanted)
                check(part, wanted)
    except CannotSet:
        for part in parts:
            try:
                put(part, part["old"])
            except CannotSet:
                pass  # the first failure is told; ``restore`` tells what stayed
        raise


def values(state):
    """The different values that are set now, in order."""
    return sorted({current(part) for part in state["items"]})


def restore(folder, state=None):
    """Set the old values, and forget them. ``state``: what the caller holds of them in memory, which needs no file.
    Returns one sentence for each that could not be set, and keeps all then.
    """
    try:
        state = state or load(folder)
    except FileNotFoundError:
        return []
    except UNREADABLE:
        return [salvage(folder)]
    try:
        left = restore_parts(state) if state["boot"] == boot() else []
    except UNREADABLE:
        return [salvage(folder)]
    try:
        if not left:
            forget(folder, state)
        elif not os.path.exists(os.path.join(folder, NAME)):
            os.makedirs(folder, mode=0o700, exist_ok=True)
            store(folder, state)  # the next job of this host tries again
    except OSError as error:
        left.append("%s cannot be written (%s)" % (os.path.join(folder, NAME), reason(error)))
    return left


def restore_parts(state):
    """Set the old values. One sentence for each that could not be set."""
    left = []
    for part in state["items"]:
        try:
            if not same(part, current(part), part["old"]):
                put(part, part["old"])
                check(part, part["old"])
        except CannotSet as error:
            left.append("%s was %s and could not be put back: %s" % (name(part), part["old"], error))
    return left


def salvage(folder):
    """Set the old values that can still be read of a damaged file. One sentence: what was set, and that there may have
    been more, so that the file stays.

    Where the file does not say of which boot it is, a value counts as the trial's where it is the one that was tried.
    """
    path = os.path.join(folder, NAME)
    try:
        with open(path, errors="replace") as source:
            text = source.read(MOST)
        booted = re.search(r'"boot": *"([^"]+)"', text)
        old = [] if booted and booted.group(1) != boot() else readable_parts(text)
    except OSError as error:
        return "%s cannot be read (%s), so what a trial set cannot be put back from it" % (path, reason(error))
    back, left = [], []
    for part in old:
        try:
            if same(part, current(part), part["value"]):
                put(part, part["old"])
                check(part, part["old"])
                back.append("%s = %s" % (name(part), part["old"]))
        except CannotSet as error:
            left.append("%s was %s and could not be put back: %s" % (name(part), part["old"], error))
    words = ["%s is damaged" % path]
    words += ["put back what could be read of it: %s" % ", ".join(back[:4])] if back else []
    words += left[:4] or ([] if old else ["so what a trial set cannot be put back from it"])
    return ", ".join(words)


def readable_parts(text):
    """The parts that are whole in the text of a damaged file: those with an old value, and with the way to set it."""
    parts, position, decoder = [], text.find("{", 1), json.JSONDecoder()
    while position >= 0 and len(parts) < MOST_PARTS:
        end = position + 1
        try:
            part, end = decoder.raw_decode(text, position)
            if is_part(part):
                parts.append(part)
        except (ValueError, RecursionError):
            pass  # cut, or no object
        position = text.find("{", end)
    return parts


def is_part(part):
    texts = all(isinstance(part.get(key), str) for key in ("old", "value"))
    if not texts or "path" in part:
        return texts and isinstance(part["path"], str) and os.path.isabs(part["path"])
    lists = [part.get("read"), part.get("write")]
    words = all(isinstance(words, list) and words and all(isinstance(w, str) for w in words) for words in lists)
    return words and isinstance(part.get("match"), str) and isinstance(part.get("words", {}), dict)


def clear(folder):
    """Put back what a job whose runner and keeper are gone has left. Returns two sentences: what was done, and what
    could not be; each empty where there is none.
    """
    try:
        state = load(folder)
        shown = "; ".join("%s = %s" % (name(part), part["old"]) for part in state["items"][:4])
        booted = state["boot"] != boot()
    except FileNotFoundError:
        return "", ""
    except UNREADABLE:
        return "", salvage(folder)
    left = restore(folder, state)
    if left:
        return "", "; ".join(left)
    if booted:
        return "an interrupted trial had left a setting; this host has booted since, which put it back (%s)" % shown, ""
    return "put back what an interrupted trial had left: %s" % shown, ""


def load(folder):
    with open(os.path.join(folder, NAME)) as source:
        return json.load(source)


def store(folder, state):
    path = os.path.join(folder, NAME)
    with open(path + ".part", "w") as out:
        json.dump(state, out)
        out.flush()
        os.fsync(out.fileno())
    os.rename(path + ".part", path)
    sync(folder)


def forget(folder, state):
    """Remove the file, unless another runner has begun since and stored its own."""
    try:
        if load(folder)["by"] != state.get("by"):
            return
    except FileNotFoundError:
        return  # another process was first
    except UNREADABLE:
        pass
    try:
        os.unlink(os.path.join(folder, NAME))
    except FileNotFoundError:
        return  # another process was first
    sync(folder)


def sync(folder):
    """Have the folder's own entry on disk, which must not come later than the setting."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def boot():
    with open(BOOT) as source:
        return source.read().strip()


def name(part):
    return part.get("path") or " ".join(word for word in part["write"] if word != "{}")


def same(part, one, other):
    """Whether two values are one: lists of CPUs read as ranges."""
    if one == other:
        return True
    lists = name(part).endswith("_list")
    return lists and numbers(one) is not None and numbers(one) == numbers(other)


def numbers(text):
    result = set()
    for word in text.split(","):
        match = re.match(r"(\d{1,5})(?:-(\d{1,5}))?$", word)
        if not match:
            return None
        result.update(range(int(match.group(1)), int(match.group(2) or match.group(1)) + 1))
    return result


def current(part):
    """What is set now. Of ``always [madvise] never`` it is the word in brackets."""
    if part.get("path"):
        try:
            with open(part["path"]) as source:
                text = source.read(4096).strip()
        except (OSError, UnicodeDecodeError) as error:
            raise CannotSet("%s cannot be read (%s)" % (part["path"], reason(error))) from error
        match = re.search(r"\[([^\]\s]+)\]", text)
        value = match.group(1) if match else text
    else:
        match = re.search(part["match"], command(part["read"]), re.MULTILINE)
        if not match or not match.groups():
            raise CannotSet("%s does not say what is set" % " ".join(part["read"]))
        value = match.group(1)
    if not value or len(value) > WORD or "\n" in value:
        raise CannotSet("%s reads as no single value" % name(part))
    return value


def put(part, value):
    if part.get("path"):
        try:
            handle = os.open(part["path"], os.O_WRONLY | os.O_TRUNC)
            try:
                os.write(handle, value.encode())
            finally:
                os.close(handle)
        except OSError as error:
            raise CannotSet("%s cannot be set to %s (%s)" % (part["path"], value, reason(error))) from error
    else:
        word = part.get("words", {}).get(value, value)
        command([word if argument == "{}" else argument for argument in part["write"]])


def check(part, wanted):
    got = current(part)
    if not same(part, got, wanted):
        raise CannotSet("%s was set to %s and reads %s" % (name(part), wanted, got))


def reason(error):
    return getattr(error, "strerror", None) or str(error)


def command(argv):
    env = {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL": "C"}
    try:
        child = subprocess.Popen(
            argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=env
        )
    except OSError as error:
        raise CannotSet("%s cannot be started (%s)" % (argv[0], reason(error))) from error
    try:
        out, err = child.communicate(timeout=PATIENCE_S)
    except subprocess.TimeoutExpired as error:
        child.kill()
        try:
            child.wait(GRACE_S)
        except subprocess.TimeoutExpired:
            pass  # it hangs in the kernel
        raise CannotSet("%s did not end within %d s" % (" ".join(argv), PATIENCE_S)) from error
    if child.returncode:
        words = (err or out).decode(errors="replace").strip().splitlines() or ["exit status %d" % child.returncode]
        raise CannotSet("%s: %s" % (" ".join(argv), words[-1][:WORD]))
    return out.decode(errors="replace")
