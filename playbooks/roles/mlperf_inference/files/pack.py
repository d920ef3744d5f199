"""Pack Python packages on the controller for a host's Python and CPU, if the host cannot reach a package index:

    pack.py ARCHIVE PYTHON ARCH WHEELS REQUIREMENT...

WHEELS is a folder with packages to use instead of the package index, or empty. If there are several REQUIREMENTs for a
package, the last one counts. Any onnxruntime-NAME replaces onnxruntime. Prints the archive's SHA-256. An existing
archive is reused. On failure, the last line of standard error describes the problem and what to do.
"""

from __future__ import annotations

import gzip
import hashlib
import re
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

LIBC = ("manylinux_2_28", "manylinux_2_27", "manylinux_2_26", "manylinux_2_24", "manylinux_2_17", "manylinux2014")
UNREACHABLE = re.compile(
    r"Retrying|Max retries|Failed to establish|NewConnectionError|Temporary failure|ProxyError|timed out"
)
LACKING = re.compile(r"No matching distribution found for (\S+)")


def settled(requirements: list[str]) -> list[str]:
    """Return one requirement for each package."""
    chosen: dict[str, str] = {}
    for requirement in requirements:
        name = re.sub(r"[-_.]+", "-", re.split(r"[\[=<>!~; ]", requirement, maxsplit=1)[0]).lower()
        chosen["onnxruntime" if name.startswith("onnxruntime-") else name] = requirement
    return list(chosen.values())


class Failure(Exception):
    """Report a failure in one sentence: what is wrong, and what to do."""


def pack(archive: Path, python: str, arch: str, wheels: str, requirements: list[str]) -> None:
    """Write ``archive`` atomically."""
    folder = Path(wheels).expanduser() if wheels else None
    if folder and not folder.is_dir():
        raise Failure(f"mlperf_inference.wheels: there is no folder {folder} on the machine that runs fleetmark")
    if subprocess.run([sys.executable, "-P", "-m", "pip", "--version"], capture_output=True, check=False).returncode:
        raise Failure(
            f"the Python that runs fleetmark has no pip to fetch packages with: {sys.executable} -m ensurepip, or "
            f"install fleetmark into a virtual environment that has it"
        )
    archive.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=archive.parent, prefix=".pack-") as scratch:
        target, part = Path(scratch) / "packages", Path(scratch) / "archive"
        _install(target, python, arch, folder, requirements)
        with part.open("wb") as out, gzip.GzipFile(fileobj=out, mode="wb", compresslevel=4, mtime=0) as packed:
            with tarfile.open(fileobj=packed, mode="w|") as tar:
                tar.add(target, arcname=".", filter=_plain)
        part.rename(archive)


def _install(target: Path, python: str, arch: str, folder: Path | None, requirements: list[str]) -> None:
    words = ["--no-deps", "--only-binary=:all:", "--implementation", "cp", "--python-version", python]
    words += [f"--platform={libc}_{arch}" for libc in LIBC]
    if folder:
        words += ["--no-index", f"--find-links={folder}"]
    install = ["install", "--quiet", "--no-compile", "--retries=1", f"--target={target}"]
    command = [sys.executable, "-P", "-m", "pip", *install, *words, *requirements]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode == 0:
        return
    sys.stderr.write(done.stdout + done.stderr)
    errors_text = done.stderr
    errors = [line for line in errors_text.splitlines() if line.startswith("ERROR")]
    lacking = LACKING.search(errors_text)
    if folder and lacking:
        raise Failure(
            f"mlperf_inference.wheels: {folder} has no {lacking[1]} for Python {python} on {arch}: put that wheel there"
        )
    if UNREACHABLE.search(errors_text):
        raise Failure(
            f"pip reaches no package index from the machine that runs fleetmark: where it does, run pip download "
            f"-d wheels {' '.join(words)} {' '.join(requirements)}, and set mlperf_inference.wheels to that folder"
        )
    if lacking:
        raise Failure(
            f"no wheel of {lacking[1]} for Python {python} on {arch}: build it on such a machine (pip wheel --no-deps "
            f"{lacking[1]}), put it and the others into a folder, and set mlperf_inference.wheels to that"
        )
    raise Failure(f"pip could not fetch {' '.join(requirements)}: {errors[-1] if errors else 'see above'}")


def _plain(entry: tarfile.TarInfo) -> tarfile.TarInfo:
    """Remove the owner and time of an entry, so that the archive is reproducible."""
    entry.uid = entry.gid = entry.mtime = 0
    entry.uname = entry.gname = ""
    return entry


def main(archive: str, python: str, arch: str, wheels: str, *requirements: str) -> int:
    path = Path(archive).expanduser()
    try:
        if not path.exists():
            pack(path, python, arch, wheels, settled(list(requirements)))
        with path.open("rb") as packed:
            digest = hashlib.sha256()
            while piece := packed.read(1 << 20):
                digest.update(piece)
    except (Failure, OSError) as error:
        sys.stderr.write(f"{error}\n")
        return 1
    sys.stdout.write(digest.hexdigest() + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
