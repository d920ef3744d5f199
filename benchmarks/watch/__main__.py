"""Run the benchmark of the watch."""

from benchmarks.watch import main

main()
