"""Parse the output of NCCL-tests, RCCL-tests and related benchmarks, with the same checks for all of them."""
