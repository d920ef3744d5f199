"""Use the nodes of a Slurm job as hosts: query the cluster, submit a job, and run processes over a shared folder."""
