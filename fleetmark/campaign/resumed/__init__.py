"""A campaign on record that goes on: whose it is, its credentials, its jobs, and the steps that it still owes."""
