"""``python -m benchmarks.faults``."""

from benchmarks.faults import main

main()
