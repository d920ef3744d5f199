"""Run a script with the Python that a user names: interpreter.py PYTHON SCRIPT WORD...

PYTHON is a command, the absolute path of an interpreter, the folder of a virtual environment, or a container:
"docker:IMAGE", "podman:IMAGE" or "enroot:NAME". Add a space and the interpreter in the container if it is not python3.
Nothing is downloaded, so the image must be on the host. "interpreter.py --check PYTHON" prints a line of JSON about its
torch, and "interpreter.py --image IMAGE" one about an image. Standard library only, Python 3.6 and later.
"""

import glob
import json
import os
import re
import shutil
import subprocess
import sys

ENGINES = ("docker", "podman", "enroot")
IMAGE = re.compile(r"/?[A-Za-z0-9][A-Za-z0-9._/:@+-]{0,300}$")
MORE_PATH = ":/usr/local/bin:/opt/conda/bin:/opt/venv/bin"
BRING = "bring it there (podman pull, docker load)"
PROBE = "fleetmark-probe"
# Variables to pass to a container: the mark by which Fleetmark ends processes, and settings of these libraries.
PASSED = re.compile(
    r"(FLEETMARK|OMP|MKL|KMP|ONEDNN|DNNL|TORCH|PYTORCH|GLOO|NCCL|RCCL|HCCL|CCL|CUDA|NVIDIA|ROCR|HIP|HSA|ASCEND|UCX|FI|MASTER|LOCAL)_"
    r"|(RANK|WORLD_SIZE)$"
)
# Files of Ascend's driver, which containers use from the host.
ASCEND_DEVICES = ("/dev/davinci[0-9]*", "/dev/davinci_manager", "/dev/devmm_svm", "/dev/hisi_hdc")
ASCEND_FILES = ("/usr/local/Ascend/driver", "/usr/local/dcmi", "/usr/local/bin/npu-smi", "/etc/ascend_install.info")

WRONG = re.compile(r"error|cannot|denied|no such|not found|unable", re.IGNORECASE)

CHECK = r"""
import json, os, platform, sys
about = {"python": sys.executable, "python_version": platform.python_version()}

def tell():
    sys.stdout.write("\nFLEETMARK" + json.dumps(about) + "\n")
    sys.stdout.flush()
    os._exit(0)

def first(call, *words):
    try:
        return call(*words)
    except Exception:
        return None

try:
    import torch
except Exception as error:
    absent = isinstance(error, ImportError) and error.name == "torch"
    about["error"] = "has no torch" if absent else "cannot import torch (%s)" % error
    tell()
try:
    import torch_npu
    about["torch_npu"] = torch_npu.__version__
except Exception:
    pass
about["version"] = str(torch.__version__)
try:
    accelerator = getattr(torch, "accelerator", None)
    if accelerator is not None:
        kind = accelerator.current_accelerator().type if accelerator.is_available() else "cpu"
        number = accelerator.device_count() if kind != "cpu" else 0
    else:  # torch before 2.6
        kinds = [k for k in ("cuda", "npu", "xpu") if hasattr(torch, k) and getattr(torch, k).is_available()]
        kind = (kinds + ["cpu"])[0]
        number = getattr(torch, kind).device_count() if kind != "cpu" else 0
    about["device"], about["devices"] = kind, number
    library = getattr(torch, kind, None) if kind != "cpu" else None
    about["names"] = [str(first(library.get_device_name, i) or kind) for i in range(number)] if library else []
    if library:
        about["memory"] = first(lambda: int(library.get_device_properties(0).total_memory))
    torch.ones(8, 8, device=kind).sum().item()
except Exception as error:
    about["error"] = "has torch %s, which cannot use its device (%s)" % (torch.__version__, error)
runtimes = (("CUDA", "cuda"), ("ROCm", "hip"), ("CANN", "cann"))
versions = [(name, getattr(torch.version, key, None)) for name, key in runtimes]
about["runtime"] = ", ".join("%s %s" % pair for pair in versions if pair[1])
about["isa"] = first(lambda: torch.backends.cpu.get_cpu_capability())
about["onednn_isa"] = os.environ.get("ONEDNN_MAX_CPU_ISA", "")
about["threads"] = first(torch.get_num_threads)
about["backends"] = []
distributed = first(lambda: __import__("torch.distributed").distributed)
for name in ("gloo", "nccl", "mpi", "xccl"):
    if first(lambda: getattr(distributed, "is_%s_available" % name)()):
        about["backends"].append(name)
if about.get("torch_npu"):
    about["backends"].append("hccl")
tell()
"""


class Wrong(Exception):
    """Report why the user's PYTHON cannot run, as a phrase to follow its name."""


def command_of(python, folders=()):
    """Return the command that runs the Python named ``python``. Raise Wrong if it cannot run.

    A container gets ``folders``, and starts in the first one.
    """
    engine, colon, rest = python.partition(":")
    if colon and engine in ENGINES:
        image, _, inside = rest.strip().partition(" ")
        if not IMAGE.match(image):
            raise Wrong("names no image")
        return container(engine, image, inside.strip() or "python3", folders)
    path = os.path.expanduser(python)
    if os.path.isdir(path):
        for name in ("bin/python3", "bin/python"):
            if os.access(os.path.join(path, name), os.X_OK):
                return [os.path.join(path, name)]
        raise Wrong("is a folder without bin/python3")
    program = shutil.which(path, path=os.environ.get("PATH", os.defpath) + MORE_PATH)
    if program is None:
        raise Wrong("is not a program on this host")
    return [program]


def container(engine, image, inside, folders):
    """Return the command that runs ``inside`` in a container with ``folders`` and the host's accelerators."""
    program = shutil.which(engine, path=os.environ.get("PATH", os.defpath) + MORE_PATH)
    if program is None:
        raise Wrong("needs %s, which is not on this host" % engine)
    here = folders[0] if folders else "/tmp"
    mounts = ["%s:%s" % (folder, folder) for folder in sorted(set(folders))]
    passed = sorted(name for name in os.environ if PASSED.match(name))
    if engine == "enroot":
        words = [program, "start", "--rw"]
        words += [word for mount in mounts for word in ("--mount", mount)]
        words += [word for name in passed for word in ("--env", name)]
        return [*words, image, "sh", "-c", 'cd "$1" && shift && exec "$@"', "sh", here, inside]
    words = [program, "run", "--rm", "--pull=never", "--network=host", "--ipc=host", "--ulimit=memlock=-1"]
    words += [word for mount in mounts for word in ("-v", mount)]
    words += [word for name in passed for word in ("-e", name)]
    if engine == "docker" and os.geteuid() != 0:
        words += ["--user", "%d:%d" % (os.geteuid(), os.getegid()), "-e", "HOME=" + here]
    return words + accelerators(engine) + ["-w", here, "--entrypoint", inside, image]


def accelerators(engine):
    """Return the options that give a container access to this host's accelerators."""
    words = []
    if os.path.exists("/dev/nvidiactl"):
        words += ["--gpus", "all"] if engine == "docker" else ["--device", "nvidia.com/gpu=all"]
    if os.path.exists("/dev/kfd"):
        words += ["--device", "/dev/kfd", "--security-opt", "seccomp=unconfined"]
        groups = {str(os.stat(path).st_gid) for path in ["/dev/kfd", *glob.glob("/dev/dri/renderD*")]}
        words += ["--group-add", "keep-groups"] if engine == "podman" else []
        words += [word for group in sorted(groups) if engine == "docker" for word in ("--group-add", group)]
    if os.path.exists("/dev/dri") and not os.path.exists("/dev/nvidiactl"):
        words += ["--device", "/dev/dri"]
    if os.path.exists("/dev/davinci_manager"):
        words += [
            word for pattern in ASCEND_DEVICES for path in sorted(glob.glob(pattern)) for word in ("--device", path)
        ]
        words += [word for path in ASCEND_FILES if os.path.exists(path) for word in ("-v", "%s:%s:ro" % (path, path))]
    return words


def check(python):
    """Return what the Python named ``python`` reports about its torch, or an ``error`` if torch does not work."""
    try:
        words = command_of(python)
    except Wrong as wrong:
        return {"error": str(wrong)}
    ran = subprocess.run(
        [*words, "-c", CHECK], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False
    )
    for line in reversed(ran.stdout.decode("utf-8", "replace").splitlines()):
        if line.startswith("FLEETMARK{"):
            return json.loads(line[len("FLEETMARK") :])
    return {"error": "does not start (exit status %d: %s)" % (ran.returncode, reason(ran.stderr or ran.stdout))}


def engine_of(name):
    """Split "podman:IMAGE" or "docker:IMAGE" into (engine, image). Without an engine, use the one on this host."""
    engine, colon, image = name.partition(":")
    if colon and engine in ("docker", "podman"):
        return engine, image
    path = os.environ.get("PATH", os.defpath) + MORE_PATH
    return next((engine for engine in ("podman", "docker") if shutil.which(engine, path=path)), "docker"), name


def check_image(name):
    """Return the id of the image ``name`` and the version of its engine, or an ``error`` if it cannot be used.

    It is started once with a program that it does not have, because an engine may have an image and start nothing.
    """
    engine, image = engine_of(name)
    program = shutil.which(engine, path=os.environ.get("PATH", os.defpath) + MORE_PATH)
    if not IMAGE.match(image):
        return {"error": "names no image"}
    if program is None:
        return {"error": "needs %s, which is not on this host" % engine}
    described = {"engine": engine}
    for key, words in (("version", ["--version"]), ("image", ["image", "inspect", "--format", "{{.Id}}", image])):
        pipes = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        ran = subprocess.run([program, *words], check=False, **pipes)
        if ran.returncode:
            wrong = (engine, reason(ran.stderr or ran.stdout))
            return {"error": "is not an image that %s has on this host (%s); %s" % (*wrong, BRING)}
        described[key] = ran.stdout.decode("utf-8", "replace").strip()[:200]
    words = ["run", "--rm", "--pull=never", "--network=host", "--ipc=host", "--entrypoint", PROBE, image]
    ran = subprocess.run([program, *words], check=False, **pipes)
    output = ran.stderr or ran.stdout
    if ran.returncode not in (126, 127) or PROBE.encode() not in output:  # an image has no program of that name
        return {"error": "cannot be started by %s on this host (%s)" % (engine, reason(output))}
    return described


def reason(output):
    """Return the line of ``output`` that describes the error, or else the last line."""
    lines = [line.strip() for line in output.decode("utf-8", "replace").splitlines() if line.strip()] or [
        "it printed nothing"
    ]
    return next((line for line in lines if WRONG.search(line)), lines[-1])[:300]


def main():
    if sys.argv[1:2] in (["--check"], ["--image"]):
        check_of = {"--check": check, "--image": check_image}[sys.argv[1]]
        sys.stdout.write(json.dumps(check_of(sys.argv[2])) + "\n")
        return
    try:
        folders = (os.getcwd(), os.path.dirname(os.path.abspath(sys.argv[0])))
        words = command_of(sys.argv[1], folders)
    except Wrong as wrong:
        sys.exit("%s %s" % (sys.argv[1], wrong))
    sys.stdout.flush()
    os.execv(words[0], words + sys.argv[2:])


if __name__ == "__main__":
    main()
