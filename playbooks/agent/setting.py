"""Change a setting of this host for a trial, and restore it. The old value is on disk before any change.

Imported by the runner, its keeper, the follower and the start of a job. Standard library only, Python 3.6 and later.
``setting.json`` in the job's folder contains the old values and the id of the boot in which they were read. After a
reboot, the kernel has its own values again, and the file no longer applies. The runner and its keeper also store the
old values in memory, in case the folder is removed.
"""

import glob
import json
import os
import re
import subprocess
import time

NAME = "setting.json"
BOOT = "/proc/sys/kernel/random/boot_id"
PATIENCE_S = 30  # timeout of a command that reads or sets a value
GRACE_S = 5  # timeout for a killed command to end
WORD = 200  # maximum number of characters of a value
UNREADABLE = (ValueError, KeyError, TypeError, AttributeError, OSError)  # errors that a damaged file can raise
MOST = 1 << 20  # maximum characters of a damaged file to search
MOST_PARTS = 4096  # maximum parts to read from a damaged file
UNCHANGED = re.compile(r"\bno\b.*\bchanged\b")  # ethtool's error message if the value is already set


class CannotSet(Exception):
    """Report which setting cannot be read or written, and why."""


def begin(folder, items):
    """Store the current values, and return them.

    Raise CannotSet, with nothing changed, if a value cannot be read or written, or if all values are already set.
    """
    refuse_dependents(items)
    parts = concrete(items)
    if not parts:
        raise CannotSet("this host has no %s" % " or ".join(item["path"] for item in items))
    for part in parts:
        part["old"] = current(part)
        rehearse(part)
    if all(is_equal(part, part["old"], part["value"]) for part in parts):
        raise CannotSet("%s is already %s, so there is nothing to try" % (name(parts[0]), parts[0]["value"]))
    state = {"boot": boot(), "by": "%d %r" % (os.getpid(), time.time()), "items": parts}
    store(folder, state)
    return state


def refuse_dependents(items):
    """Raise CannotSet if another value depends on an item's value and would not be restored.

    The files in an item's ``unless`` show such dependents.
    """
    for item in items:
        shown = sorted(glob.glob(item["unless"])) if item.get("unless") else []
        if shown:
            raise CannotSet(
                "%s shows that another value depends on %s and would not be restored" % (shown[0], name(item))
            )


def rehearse(part):
    """Write the current value, to test whether it can be written."""
    try:
        put(part, part["old"])
    except CannotSet as error:
        if part.get("path") or not UNCHANGED.search(str(error)):
            raise


def concrete(items):
    """Return one part per file that an item's pattern matches, and one per command."""
    parts = []
    for item in items:
        if item.get("path"):
            parts += [{"path": path, "value": item["value"]} for path in sorted(glob.glob(item["path"]))]
        else:
            parts.append(dict(item))
    return parts


def turn(folder, state, is_on):
    """Set the new values (``on``) or the old ones.

    Raise CannotSet if a value differs after it was set. The old values are restored in this case.
    """
    if is_on and not os.path.exists(os.path.join(folder, NAME)):
        store(folder, state)  # a cleaner of old files has removed the file
    parts = state["items"]
    try:
        for part in parts:
            wanted = part["value"] if is_on else part["old"]
            if not is_equal(part, current(part), wanted):
                put(part, wanted)
                check(part, wanted)
    except CannotSet:
        for part in parts:
            try:
                put(part, part["old"])
            except CannotSet:
                pass  # report the first failure; ``restore`` reports values that remain
        raise


def values(state):
    """Return the distinct current values in order."""
    return sorted({current(part) for part in state["items"]})


def restore(folder, state=None):
    """Restore the old values, and remove their file. ``state``: the old values in memory, if the caller has them.

    Return one sentence for each value that could not be restored. In this case, the file stays.
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
            store(folder, state)  # the next job on this host tries again
    except OSError as error:
        left.append("%s cannot be written (%s)" % (os.path.join(folder, NAME), reason(error)))
    return left


def restore_parts(state):
    """Restore the old values. Return one sentence for each value that could not be restored."""
    left = []
    for part in state["items"]:
        try:
            if not is_equal(part, current(part), part["old"]):
                put(part, part["old"])
                check(part, part["old"])
        except CannotSet as error:
            left.append("%s was %s and could not be restored: %s" % (name(part), part["old"], error))
    return left


def salvage(folder):
    """Restore the old values that are still readable in a damaged file. Keep the file, because there may be more.

    Return a sentence about the restored values. Only values that still equal the tried ones are restored, because the
    file may lack the boot id.
    """
    path = os.path.join(folder, NAME)
    try:
        with open(path, errors="replace") as source:
            text = source.read(MOST)
        booted = re.search(r'"boot": *"([^"]+)"', text)
        old = [] if booted and booted.group(1) != boot() else readable_parts(text)
    except OSError as error:
        return "%s cannot be read (%s), so it cannot be used to restore the old value of a trial" % (
            path,
            reason(error),
        )
    back, left = [], []
    for part in old:
        try:
            if is_equal(part, current(part), part["value"]):
                put(part, part["old"])
                check(part, part["old"])
                back.append("%s = %s" % (name(part), part["old"]))
        except CannotSet as error:
            left.append("%s was %s and could not be restored: %s" % (name(part), part["old"], error))
    words = ["%s is damaged" % path]
    words += ["restored the readable part: %s" % ", ".join(back[:4])] if back else []
    words += left[:4] or ([] if old else ["so the old value of a trial cannot be restored from it"])
    return ", ".join(words)


def readable_parts(text):
    """Return the complete parts in the text of a damaged file. They have an old value, and how to set it."""
    parts, position, decoder = [], text.find("{", 1), json.JSONDecoder()
    while position >= 0 and len(parts) < MOST_PARTS:
        end = position + 1
        try:
            part, end = decoder.raw_decode(text, position)
            if is_part(part):
                parts.append(part)
        except (ValueError, RecursionError):
            pass  # truncated, or not an object
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
    """Restore the settings of a job whose runner and keeper have ended.

    Return a sentence about restored values and one about failures. Either may be empty.
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
        return "an interrupted trial had changed a setting, which a reboot of this host restored (%s)" % shown, ""
    return "restored the setting of an interrupted trial: %s" % shown, ""


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
    """Remove the file, unless another runner has stored its own file meanwhile."""
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
    """Sync the folder's entry to disk, which must happen before the setting changes."""
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


def is_equal(part, one, other):
    """Return whether two values are equal. Lists of CPUs may be written as ranges."""
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
    """Return the current value. In ``always [madvise] never``, this is the word in brackets."""
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
            raise CannotSet("%s does not show the current value" % " ".join(part["read"]))
        value = match.group(1)
    if not value or len(value) > WORD or "\n" in value:
        raise CannotSet("%s does not have a single value" % name(part))
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
    if not is_equal(part, got, wanted):
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
            pass  # the command hangs in the kernel
        raise CannotSet("%s did not end within %d s" % (" ".join(argv), PATIENCE_S)) from error
    if child.returncode:
        words = (err or out).decode(errors="replace").strip().splitlines() or ["exit status %d" % child.returncode]
        raise CannotSet("%s: %s" % (" ".join(argv), words[-1][:WORD]))
    return out.decode(errors="replace")
