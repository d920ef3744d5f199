"""HPL or HPCG in the current folder: run.py --ranks R --memory BYTES --block NB [--dat FILE] hpl|hpcg COMMAND...

Writes HPL.dat or hpcg.dat, or copies the user's, runs COMMAND and prints the files in which the program leaves its
results. Standard library only, Python 3.6 and later.
"""

import argparse
import glob
import math
import shutil
import subprocess
import sys

# Device 6 is stdout; one problem, one grid, one way of each step; L1 is not transposed, as NVIDIA's program needs it.
HPL = """HPLinpack benchmark input file
Fleetmark
HPL.out
6
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
1
0
1
8
"""
HPCG = """HPCG benchmark input file
Fleetmark
{edge} {edge} {edge}
{seconds}
"""
BYTES_A_POINT = 800  # HPCG 3.1 takes 720 to 800 bytes for each equation


def grid(ranks):
    """Return P and Q with P x Q = ranks, as square as can be, P the smaller."""
    p = max(d for d in range(1, int(math.sqrt(ranks)) + 1) if ranks % d == 0)
    return p, ranks // p


def order(memory, block):
    """Return the order of the largest matrix of doubles within ``memory`` bytes, a multiple of the block size."""
    return max(block, int(math.sqrt(memory / 8)) // block * block)


def edge(memory, ranks, block):
    """Return the points in each direction of a process's cube, all within ``memory`` bytes; HPCG takes 16 at least."""
    return max(16, int((memory / ranks / BYTES_A_POINT) ** (1 / 3) + 1e-9) // block * block)


def text(chosen):
    """Return the contents of the input file."""
    if chosen.benchmark == "hpcg":
        return HPCG.format(edge=edge(chosen.memory, chosen.ranks, chosen.block), seconds=chosen.seconds)
    p, q = grid(chosen.ranks)
    return HPL.format(n=order(chosen.memory, chosen.block), block=chosen.block, p=p, q=q)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("benchmark", choices=("hpl", "hpcg"))
    for name in ("ranks", "memory", "block"):
        parser.add_argument("--" + name, type=int, required=True)
    parser.add_argument("--seconds", type=int, default=60)
    parser.add_argument("--dat")
    parser.add_argument("command", nargs=argparse.REMAINDER)
    chosen = parser.parse_args()
    name = "HPL.dat" if chosen.benchmark == "hpl" else "hpcg.dat"
    if chosen.dat:
        shutil.copyfile(chosen.dat, name)
    else:
        with open(name, "w") as file:
            file.write(text(chosen))
    sys.stdout.flush()
    status = subprocess.run(chosen.command, check=False).returncode
    for path in sorted(glob.glob("HPL.out") + glob.glob("HPCG-Benchmark*.txt") + glob.glob("HPCG-Benchmark*.yaml")):
        with open(path, errors="replace") as file:
            sys.stdout.write("\n" + file.read())
    sys.exit(status)


if __name__ == "__main__":
    main()
