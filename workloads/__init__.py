"""Define what is measured: one manifest per workload, suites of them, and the code that reads both."""

from fleetmark.workloads.manifest import Manifest, load, names
from fleetmark.workloads.suite import Choice, Suite, load_suite, suite_names
from fleetmark.workloads.variant import case_of, entry_of, plain_case, workload_of

__all__ = [
    "Choice",
    "Manifest",
    "Suite",
    "case_of",
    "entry_of",
    "load",
    "load_suite",
    "names",
    "plain_case",
    "suite_names",
    "workload_of",
]
