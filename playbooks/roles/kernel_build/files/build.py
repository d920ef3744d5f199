"""Build a copy of a source tree and print how long this took: build.py TREE JOBS CONFIGURE BUILD

Standard library only, Python 3.6 and later.
"""

import os
import resource
import shutil
import subprocess
import sys
import time

LOG = "build.log"


def run(command, folder, title):
    """Run a shell command in the folder. If it fails, exit with the last line of its log."""
    with open(LOG, "wb") as log:
        status = subprocess.call(["sh", "-c", command], cwd=folder, stdout=log, stderr=subprocess.STDOUT)
    if status:
        with open(LOG, "rb") as log:
            lines = [line for line in log.read()[-4096:].decode(errors="replace").splitlines() if line.strip()]
        sys.exit("%s failed with exit status %d: %s" % (title, status, lines[-1] if lines else "it printed nothing"))


def main():
    source, jobs, configure, build = sys.argv[1:]
    shutil.rmtree("copy", ignore_errors=True)
    shutil.copytree(source, "copy", symlinks=True)  # every build starts with the same files, cached in memory
    compiler = subprocess.run(["gcc", "--version"], stdout=subprocess.PIPE, check=False).stdout.decode(errors="replace")
    print("fleetmark: compiler %s" % (compiler.splitlines() or ["none"])[0][:80])
    run(configure, "copy", "configuring")
    os.sync()  # do not count the copy's pending writes to disk in the build
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    run("%s -j %d" % (build, int(jobs)), "copy", "the build")
    wall, after = time.monotonic() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    print("fleetmark: 1 build in %.3f s, %.3f s of CPU, with %d jobs" % (wall, cpu, int(jobs)))
    shutil.rmtree("copy", ignore_errors=True)


if __name__ == "__main__":
    main()
