"""Review a plan after a delivery: the measured worth, the supplier's shortfall, and the plan from then on."""
