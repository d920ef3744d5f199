"""Documents that consist of a list, such as campaigns, workloads or imports. Each module covers one subject."""
