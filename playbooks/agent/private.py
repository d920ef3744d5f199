"""Check from the root of the file system down that no other user can change or replace a folder.

Hosts check their work directory, Slurm nodes the shared folder, and the controller the shared folder before it submits
a Slurm job. Standard library only, Python 3.6 and later.
"""

import errno
import os
import stat

MOST_LINKS = 40  # the kernel's limit on symlinks in one path


class NotPrivate(RuntimeError):
    """Report that another user can change or replace a folder. The message names the folder and says what to do."""


def open_private(path, create=True):
    """Return a descriptor of the folder ``path`` (absolute), which only this user can access.

    Open every folder above it by descriptor, and require that other users cannot rename its entries: this user or root
    must own the folder, and if others can write in it, it must have the sticky bit. Symlinks above ``path`` are
    followed under the same rule, but ``path`` itself must not be a symlink. ``create``: create missing folders. Raise
    NotPrivate and OSError.
    """
    here = os.open("/", os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    trusted = {0, os.geteuid(), os.fstat(here).st_uid}
    names, place, links = parts(path), "/", 0
    try:
        while names:
            name = names.pop()
            if name == "..":
                here, place = replace(here, enter("..", here)), os.path.dirname(place)
                continue
            info = stat_of(name, here, (0o755 if names else 0o700) if create else None)
            refuse_replaceable(os.path.join(place, name), info, os.fstat(here), trusted)
            if stat.S_ISLNK(info.st_mode) and names:
                links += 1
                if links > MOST_LINKS:
                    raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), path)
                target = os.readlink(name, dir_fd=here)
                names += parts(target)
                if target.startswith("/"):
                    here, place = replace(here, enter("/")), "/"
                continue
            place = os.path.join(place, name)
            if not stat.S_ISDIR(info.st_mode):
                raise NotPrivate("%s: not a folder; remove it, or choose another folder" % place)
            here = replace(here, enter(name, here))
        refuse_shared(place, os.fstat(here))
    except BaseException:
        os.close(here)
        raise
    return here


def parts(path):
    """Return the components of a path in reverse order."""
    return [name for name in reversed(path.split("/")) if name not in ("", ".")]


def enter(name, folder=None):
    """Open a folder without following a symlink. O_PATH works without permission to list the folder."""
    return os.open(name, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder)


def replace(old, new):
    os.close(old)
    return new


def stat_of(name, folder, mode):
    """Return the stat of an entry of ``folder``, not of its target; create a folder first if ``mode`` is set."""
    try:
        return os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        if mode is None:
            raise
    try:
        os.mkdir(name, mode, dir_fd=folder)
    except FileExistsError:
        pass  # another process created it first
    return os.stat(name, dir_fd=folder, follow_symlinks=False)


def refuse_replaceable(path, info, parent, trusted):
    """Raise NotPrivate if another user can rename the entry ``path`` (stat ``info``) of a folder (stat ``parent``)."""
    above = os.path.dirname(path)
    if parent.st_uid not in trusted:
        problem = "%s: uid %d owns it and can replace %s; choose a folder whose parents only you and root can change"
        raise NotPrivate(problem % (above, parent.st_uid, path))
    if not parent.st_mode & 0o022:
        return
    if not parent.st_mode & stat.S_ISVTX:
        owner, bits = ("every user", "o") if parent.st_mode & 0o002 else ("every member of its group", "g")
        problem = "%s: %s can replace %s; run `chmod %s-w %s` or `chmod +t %s`, or choose another folder"
        raise NotPrivate(problem % (above, owner, path, "go" if bits == "o" else bits, above, above))
    if info.st_uid not in trusted:
        raise NotPrivate("%s: it belongs to uid %d; remove it, or choose another folder" % (path, info.st_uid))


def refuse_shared(path, info):
    """Raise NotPrivate unless only this user can access the folder ``path`` (stat ``info``)."""
    if info.st_uid != os.geteuid():
        raise NotPrivate("%s: it belongs to uid %d; remove it, or choose another folder" % (path, info.st_uid))
    if info.st_mode & 0o022:
        problem = "%s: other users can write in it; run `chmod go-w %s`, or choose another folder"
        raise NotPrivate(problem % (path, path))
