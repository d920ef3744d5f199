"""What could be set differently on a host: small rules on its facts, and the peaks of its hardware."""
