"""Folders that no other user can change or replace, checked from the root of the file system down.

Used on hosts (work directory) and nodes of Slurm (shared folder), and by the controller before it submits a Slurm job.
Standard library only, Python 3.6 and later.
"""

import errno
import os
import stat

MOST_LINKS = 40  # symbolic links in one path, as the kernel allows


class NotPrivate(RuntimeError):
    """Another user can change or replace a folder; the message names the folder and says what to do."""


def open_private(path, create=True):
    """Return a descriptor of the folder ``path`` (absolute), which belongs to this user alone.

    Every folder above it is opened by descriptor, and must keep other users from renaming the next one: it belongs to
    this user or root, and others may write in it only if it is sticky. Links above ``path`` are followed under the same
    rule; ``path`` itself must not be one. ``create``: create missing folders. Raises NotPrivate and OSError.
    """
    here = os.open("/", os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    trusted = {0, os.geteuid(), os.fstat(here).st_uid}
    names, where, links = parts(path), "/", 0
    try:
        while names:
            name = names.pop()
            if name == "..":
                here, where = replace(here, enter("..", here)), os.path.dirname(where)
                continue
            info = stat_of(name, here, (0o755 if names else 0o700) if create else None)
            refuse_replaceable(os.path.join(where, name), info, os.fstat(here), trusted)
            if stat.S_ISLNK(info.st_mode) and names:
                links += 1
                if links > MOST_LINKS:
                    raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), path)
                target = os.readlink(name, dir_fd=here)
                names += parts(target)
                if target.startswith("/"):
                    here, where = replace(here, enter("/")), "/"
                continue
            where = os.path.join(where, name)
            if not stat.S_ISDIR(info.st_mode):
                raise NotPrivate("%s: not a folder; remove it, or choose another folder" % where)
            here = replace(here, enter(name, here))
        refuse_shared(where, os.fstat(here))
    except BaseException:
        os.close(here)
        raise
    return here


def parts(path):
    """Return the names in a path, the last one first."""
    return [name for name in reversed(path.split("/")) if name not in ("", ".")]


def enter(name, folder=None):
    """Open a folder without following a link. O_PATH needs no permission to list it."""
    return os.open(name, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder)


def replace(old, new):
    os.close(old)
    return new


def stat_of(name, folder, mode):
    """Return the stat of an entry of ``folder``, not of what it links to; create a folder first if ``mode`` is set."""
    try:
        return os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        if mode is None:
            raise
    try:
        os.mkdir(name, mode, dir_fd=folder)
    except FileExistsError:
        pass  # another process was first
    return os.stat(name, dir_fd=folder, follow_symlinks=False)


def refuse_replaceable(path, info, parent, trusted):
    """Raise NotPrivate if another user can rename the entry ``path`` (stat ``info``) of a folder (stat ``parent``)."""
    above = os.path.dirname(path)
    if parent.st_uid not in trusted:
        problem = "%s: uid %d owns it and can replace %s; choose a folder below those that only you and root can change"
        raise NotPrivate(problem % (above, parent.st_uid, path))
    if not parent.st_mode & 0o022:
        return
    if not parent.st_mode & stat.S_ISVTX:
        who, bits = ("every user", "o") if parent.st_mode & 0o002 else ("every member of its group", "g")
        problem = "%s: %s can replace %s; run `chmod %s-w %s` or `chmod +t %s`, or choose another folder"
        raise NotPrivate(problem % (above, who, path, "go" if bits == "o" else bits, above, above))
    if info.st_uid not in trusted:
        raise NotPrivate("%s: it belongs to uid %d; remove it, or choose another folder" % (path, info.st_uid))


def refuse_shared(path, info):
    """Raise NotPrivate unless the folder ``path`` (stat ``info``) belongs to this user alone."""
    if info.st_uid != os.geteuid():
        raise NotPrivate("%s: it belongs to uid %d; remove it, or choose another folder" % (path, info.st_uid))
    if info.st_mode & 0o022:
        problem = "%s: other users can write in it; run `chmod go-w %s`, or choose another folder"
        raise NotPrivate(problem % (path, path))
