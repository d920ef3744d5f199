"""What is measured: one manifest per workload, suites of them, and the code that reads both."""

from workloads.manifest import Manifest, load, names
from workloads.suite import Choice, Suite, load_suite, suite_names

__all__ = ["Choice", "Manifest", "Suite", "load", "load_suite", "names", "suite_names"]
