"""Run HPL or HPCG in the current folder: run.py --ranks R --memory BYTES --block NB [--dat FILE] hpl|hpcg COMMAND...

Write HPL.dat or hpcg.dat, or copy the user's file, run COMMAND, and print the program's result files. Standard library
only, Python 3.6 and later.
"""

import argparse
import glob
import math
import shutil
import subprocess
import sys

# Device 6 is stdout. There is one problem, grid and variant. L1 is not transposed, as NVIDIA's program requires.
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
BYTES_A_POINT = 800  # HPCG 3.1 needs 720 to 800 bytes per equation


def grid(ranks):
    """Return P and Q with P x Q = ranks and P <= Q, as close to square as possible."""
    p = max(d for d in range(1, int(math.sqrt(ranks)) + 1) if ranks % d == 0)
    return p, ranks // p


def order(memory, block):
    """Return the order of the largest matrix of doubles that fits ``memory`` bytes, a multiple of the block size."""
    return max(block, int(math.sqrt(memory / 8)) // block * block)


def edge(memory, ranks, block):
    """Return the edge length in points of each process's cube for ``memory`` bytes in all; HPCG needs at least 16."""
    return max(16, int((memory / ranks / BYTES_A_POINT) ** (1 / 3) + 1e-9) // block * block)


def text(chosen):
    """Return the content of the input file."""
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
