"""SSH to a host: where the connection goes, logging in, and the connection itself."""
