"""Find the host, link, border or uplink that slows a case between hosts, with few runs."""
