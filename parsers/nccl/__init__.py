"""Parse the output of NCCL-tests, RCCL-tests and their relatives, with the same checks for all of them."""
