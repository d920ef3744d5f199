"""Report a dry run as a test plan: the runs, their hosts, duration and requirements."""
