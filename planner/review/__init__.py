"""Review a plan after a delivery: the worth that was measured, what the supplier owes, and the plan from then on."""
