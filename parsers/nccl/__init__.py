"""What NCCL-tests, RCCL-tests and their relatives print: read, checked and turned into measurements for all of them."""
