"""Which hosts, links and settings are not what their peers are: pure functions on arrays and frames."""
