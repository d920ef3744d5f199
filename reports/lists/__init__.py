"""Present lists as documents, such as campaigns, workloads or imports. Each module covers one subject."""
