"""Find settings of a host that could be better, with small rules on its facts and the peaks of its hardware."""
