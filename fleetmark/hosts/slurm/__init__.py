"""Hosts that Slurm lends: the cluster asked, a job submitted, processes on its nodes carried over a shared folder."""
