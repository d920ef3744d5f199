"""Collect the output and files of a step within size limits, and report discarded files.

Imported by the job runner on the host. Standard library only, Python 3.6 and later.
"""

import glob
import os
import stat

from steps import is_kept

OUTPUT_CAP = 256 << 20  # maximum output in bytes; a tool that prints more is broken
FLOODED = "printed more than %d MiB" % (OUTPUT_CAP >> 20)
FILE_CAP = 256 << 20  # maximum size of one file of a tool
STEP_CAP = 1 << 30  # maximum size of all files of a step
MOST_FILES = 1000  # maximum number of files of a step


def output_size(out):
    """Return the number of bytes that a step and its server have printed so far."""
    return sum(os.lstat(os.path.join(out, name)).st_size for name in os.listdir(out))


def cut_outputs(out):
    """Truncate each output stream of a step to the size limit of a file."""
    for name in os.listdir(out):
        info = os.lstat(os.path.join(out, name))
        if stat.S_ISREG(info.st_mode) and info.st_size > FILE_CAP:
            os.truncate(os.path.join(out, name), FILE_CAP)


def collect(step, scratch, out):
    """Move a step's files from ``scratch`` to ``out``. Return one sentence for each file that is not kept."""
    left_out = []
    room, count = STEP_CAP - output_size(out), 0
    inside = os.path.realpath(scratch) + os.sep
    for pattern in step.get("files", ()):
        for path in sorted(glob.glob(os.path.join(scratch, pattern))):
            name = os.path.basename(path)
            shown = ascii(name)[1:-1][:100]
            info = os.lstat(path)
            if not stat.S_ISREG(info.st_mode) or not os.path.realpath(path).startswith(inside):
                left_out.append("%s is not a plain file in the run's own folder, and is not kept" % shown)
            elif not is_kept(step, name):
                left_out.append("%s has a name that is not kept" % shown)
            elif info.st_size > min(FILE_CAP, room):
                cap, scope = (FILE_CAP, "a file") if info.st_size > FILE_CAP else (STEP_CAP, "all files of a run")
                sizes = (shown, info.st_size >> 20, cap >> 20, scope)
                left_out.append("%s has %d MiB: at most %d MiB of %s are kept" % sizes)
            elif count >= MOST_FILES:
                left_out.append("%s is one file too many: %d are kept" % (shown, MOST_FILES))
            else:
                os.rename(path, os.path.join(out, name))
                room, count = room - info.st_size, count + 1
    if len(left_out) > 20:
        left_out[20:] = ["%d more files are not kept" % (len(left_out) - 20)]
    return left_out
