"""Build the command that runs a step in a container of this host: the image's programs, on the host's own folders.

Imported by the job runner on the host. Standard library only, Python 3.6 and later. Network, IPC and devices are those
of the host, because the workload is measured and not a container network. The engine's security profile is unchanged.
"""

import os
import re
import shutil
import stat
import subprocess

from interpreter import MORE_PATH, accelerators, engine_of

# Folders of programs and of the kernel, which an image provides itself.
OWN = ("bin", "boot", "dev", "etc", "lib", "lib32", "lib64", "proc", "run", "sbin", "sys", "usr")
PATIENCE_S = 20.0  # timeout for the engine to remove a container
MARK = "fleetmark="
OF_IMAGE = ("PATH", "HOME", "PWD")  # of the environment
# Variables by which the user configures the engine. The programs in a container do not get them.
OF_ENGINE = (
    "CONTAINERS_CONF",
    "CONTAINERS_REGISTRIES_CONF",
    "CONTAINERS_STORAGE_CONF",
    "DOCKER_CONFIG",
    "DOCKER_HOST",
    "XDG_RUNTIME_DIR",
)


def command_of(step, argv, env, scratch):
    """Return the ``argv`` of ``step`` in its container, or unchanged if the step has no container."""
    if not step.get("container") or not argv:
        return argv
    engine, image = engine_of(step["container"])
    words = [program_of(engine), "run", "--rm", "--pull=never", "--network=host", "--ipc=host"]
    words += ["--label", MARK + env.get("FLEETMARK_CAMPAIGN", "")]
    folders, devices = named(argv)
    tools = os.path.join(os.path.dirname(os.path.abspath(__file__)), *[os.pardir] * 3, "tools")
    folders |= {scratch, os.path.normpath(tools)}
    words += [word for folder in sorted(folders) if os.path.isdir(folder) for word in ("-v", folder + ":" + folder)]
    words += [word for device in sorted(devices) for word in ("--device", device)]
    words += [word for name in sorted(env) if name not in (*OF_IMAGE, *OF_ENGINE) for word in ("-e", name)]
    if engine == "docker" and os.geteuid() != 0:
        words += ["--user", "%d:%d" % (os.geteuid(), os.getegid())]
    return words + accelerators(engine) + ["-w", scratch, "--entrypoint", argv[0], image, *argv[1:]]


def program_of(engine):
    return shutil.which(engine, path=os.environ.get("PATH", os.defpath) + MORE_PATH) or engine


def remove(step, env):
    """Stop and remove the campaign's containers on this host. A container may outlive the engine's client, because
    its first process may ignore signals.
    """
    if not step.get("container"):
        return
    program = program_of(engine_of(step["container"])[0])
    words = ["ps", "-aq", "--filter", "label=" + MARK + env.get("FLEETMARK_CAMPAIGN", "")]
    pipes = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL, "env": env}
    try:
        ids = subprocess.run([program, *words], check=False, timeout=PATIENCE_S, **pipes).stdout.decode().split()
        for order in (["kill"], ["rm", "-f"]):  # rm alone first waits for the container to exit
            if ids:
                subprocess.run([program, *order, *ids], check=False, timeout=PATIENCE_S, **pipes)
    except (OSError, UnicodeDecodeError, subprocess.TimeoutExpired):
        pass  # the engine is missing or hangs; processes with the campaign's mark are killed later


def named(argv):
    """Return the folders and block devices of the host that the words of a command mention."""
    folders, devices = set(), set()
    for word in argv:
        for match in re.finditer(r"(?:^|[=:,])(/[^=:,]+)", word):
            path = os.path.normpath(match.group(1))
            try:
                if stat.S_ISBLK(os.stat(path).st_mode):
                    devices.add(path)
                    continue
            except OSError:
                pass  # a file that the command will write
            folder = path if os.path.isdir(path) else os.path.dirname(path)
            if os.path.isdir(folder) and folder.split("/")[1] not in ("", *OWN):
                folders.add(folder)
    return folders, devices


def is_counted(step):
    """Return whether the step's processes are the runner's children, so that their CPU time counts. Below docker's
    daemon they are not.
    """
    return not step.get("container") or engine_of(step["container"])[0] != "docker"
