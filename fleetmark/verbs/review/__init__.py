"""``fleetmark plan review``: what a delivery is worth, and the plan that follows from it."""
