"""Read inventories, run commands on hosts, and collect the hosts' facts."""
