"""Run HPCC in the current folder: run.py --memory BYTES --block NB --ranks R HPCC MPIRUN WORD...

Writes hpccinf.txt, runs "MPIRUN WORD... HPCC" and prints which BLAS it was linked with, then hpccoutf.txt. The
reference BLAS is 40 times slower than OpenBLAS and does not show the performance of a machine, so it is refused.
Standard library only, Python 3.6 and later.
"""

import argparse
import math
import os
import re
import subprocess
import sys

# HPL's lines define one problem, one grid and one variant of each step. PTRANS's lines follow, without further
# problems.
INPUT = """HPLinpack benchmark input file
Fleetmark
HPL.out
8
1
{n}
1
{block}
0
1
{p}
{q}
16.0
1
2
1
4
1
2
1
1
1
1
1
1
2
64
0
0
1
8
##### ignored
0
0
0
0
"""


def grid(ranks):
    """Return P and Q with P x Q = ranks and P <= Q, as close to square as possible."""
    p = max(d for d in range(1, int(math.sqrt(ranks)) + 1) if ranks % d == 0)
    return p, ranks // p


def order(memory, block):
    """Return the order of the largest matrix of doubles that fits into ``memory`` bytes, as a multiple of the block
    size.
    """
    return max(block, int(math.sqrt(memory / 8)) // block * block)


def blas(program):
    """Return the BLAS library that ``program`` is linked with; None if unknown."""
    with open(program, "rb") as file:
        script = file.read(2) == b"#!"
    if script:  # our own wrapper around an unpacked program
        with open(program) as file:
            match = re.search(r'LD_LIBRARY_PATH="([^"$]*).*exec "([^"]+)"', file.read())
        libraries, program = (match.group(1), match.group(2)) if match else ("", program)
    else:
        libraries = os.environ.get("LD_LIBRARY_PATH", "")
    ran = subprocess.run(["ldd", program], stdout=subprocess.PIPE, env={"LD_LIBRARY_PATH": libraries}, check=False)
    lines = re.findall(r"lib\w*blas\w*\.so\S* => (/\S+)", ran.stdout.decode(errors="replace"))
    # Debian's libblas.so.3 of OpenBLAS is a shell around libopenblas.so.0.
    best = sorted(lines, key=lambda path: "libopenblas" not in path)
    return os.path.realpath(best[0]) if best else None


def version(library):
    """Return OpenBLAS's version from the strings of the library."""
    with open(library, "rb") as file:
        match = re.search(rb"OpenBLAS (\d+\.\d+(?:\.\d+)?)", file.read())
    return match.group(1).decode() if match else "of unknown version"


def is_openblas(library):
    with open(library, "rb") as file:
        return b"openblas_get_config" in file.read()


def main():
    parser = argparse.ArgumentParser()
    for name in ("memory", "block", "ranks"):
        parser.add_argument("--" + name, type=int, required=True)
    parser.add_argument("program")
    parser.add_argument("launch", nargs=argparse.REMAINDER)
    chosen = parser.parse_args()
    library = blas(chosen.program)
    if library is None or not is_openblas(library):
        sys.exit(
            "hpcc is linked with %s, not with OpenBLAS: set hpcc.path to one that is" % (library or "no known BLAS")
        )
    print("fleetmark: OpenBLAS %s" % version(library))
    p, q = grid(chosen.ranks)
    with open("hpccinf.txt", "w") as file:
        file.write(INPUT.format(n=order(chosen.memory, chosen.block), block=chosen.block, p=p, q=q))
    if os.path.exists("hpccoutf.txt"):
        os.unlink("hpccoutf.txt")  # hpcc appends
    sys.stdout.flush()
    status = subprocess.run([*chosen.launch, chosen.program], check=False).returncode
    if os.path.exists("hpccoutf.txt"):
        with open("hpccoutf.txt") as file:
            sys.stdout.write(file.read())
    sys.exit(status)


if __name__ == "__main__":
    main()
