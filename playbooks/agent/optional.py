"""Parts of the job runner that only some jobs need: trials, containers, accelerators. Each is loaded where it is.

Imported by the runner on the host. Standard library only, Python 3.6 and later.
"""

import os
import shutil
from functools import lru_cache

MORE_PATH = ":/usr/sbin:/sbin:/usr/local/sbin:/opt/rocm/bin"


def trial_of(job, folder, keeper):
    """The trial of a job that tries a setting; None for others, which load nothing of it."""
    if not job.get("setting"):
        return None
    from trial import Trial

    return Trial(folder, job["setting"], keeper)


class Bare(object):
    """A step's command as it is, on the host itself: what ``container`` says of a step that names none."""

    @staticmethod
    def command_of(step, argv, env, scratch):
        return argv

    @staticmethod
    def remove(step, env):
        pass

    @staticmethod
    def is_counted(step):
        return True


def container_of(step):
    """Who makes a step's command: the module ``container``, loaded where the step names one."""
    if not step.get("container"):
        return Bare
    import container

    return container


def has_accelerators():
    """Whether there may be any of those that ``accelerators`` watches: else nothing is loaded, and no thread asks."""
    names = ("/dev/nvidiactl", "/dev/dxg", "/dev/davinci_manager", "/sys/module/nvidia", "/sys/module/amdgpu")
    return any(map(os.path.exists, names)) or has_their_programs()


@lru_cache(maxsize=None)  # nobody installs one while a job runs
def has_their_programs():
    path = os.environ.get("PATH", os.defpath) + MORE_PATH
    return any(shutil.which(name, path=path) for name in ("nvidia-smi", "npu-smi"))


class Nothing(object):
    """Samples no accelerators."""

    def start(self):
        pass

    def stop(self):
        return None


def watch_of(interval):
    """Samples the host's accelerators from now on."""
    if not has_accelerators():
        return Nothing()
    from accelerators import Watch

    return Watch(interval=interval)
