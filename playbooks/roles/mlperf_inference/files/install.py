"""Copy the harness into a folder on a host, with LoadGen's Python packages: install.py DEST PYTHON

DEST/packages.tar.gz is unpacked and tested if it exists. Standard input contains the harness's files as base64 of JSON,
name to text. harness.py is written last, so the other files are complete if it exists. The last line of standard error
describes the problem and what to do. Python 3.6 and later, so that an old Python can print this message.
"""

import base64
import json
import os
import shutil
import subprocess
import sys
import tarfile

WANTED = "import mlperf_loadgen, numpy, onnx, onnxruntime"


def unpack(dest, archive):
    folder, part = os.path.join(dest, "packages"), os.path.join(dest, "packages.part")
    shutil.rmtree(part, ignore_errors=True)
    shutil.rmtree(folder, ignore_errors=True)
    with tarfile.open(archive, "r:gz") as tar:
        safe = {"filter": "data"} if hasattr(tarfile, "data_filter") else {}
        tar.extractall(os.path.join(part, "py"), **safe)
    env = dict(os.environ, PYTHONPATH=os.path.join(part, "py"), PYTHONNOUSERSITE="1")
    tried = subprocess.run([sys.executable, "-c", WANTED], env=env, stderr=subprocess.PIPE, check=False)
    if tried.returncode:
        errors = tried.stderr.decode(errors="replace").strip() or "killed by signal %d" % -tried.returncode
        sys.exit("the packages do not work with %s on this host: %s" % (sys.executable, errors.splitlines()[-1]))
    os.rename(part, folder)
    os.unlink(archive)


def main(dest, python):
    here = "%d.%d" % sys.version_info[:2]
    if here != python:
        sys.exit("%s is Python %s: set mlperf_inference.python_version to that" % (sys.executable, here))
    files = json.loads(base64.b64decode(sys.stdin.read()).decode())
    archive = os.path.join(dest, "packages.tar.gz")
    try:
        os.makedirs(dest, exist_ok=True)
        if os.path.exists(archive):
            unpack(dest, archive)
        for name in sorted(files, key="harness.py".__eq__):
            path = os.path.join(dest, name)
            with open(path + ".part", "w", encoding="utf-8") as out:
                out.write(files[name])
            os.rename(path + ".part", path)
    except (OSError, EOFError, tarfile.TarError) as error:
        sys.exit("the harness could not be put into %s: %s" % (dest, " ".join(str(error).split())))


if __name__ == "__main__":
    main(*sys.argv[1:])
