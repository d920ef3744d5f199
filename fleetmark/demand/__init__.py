"""A question of capacity as a planner writes it: YAML, CSV sheets or a workbook, every fault with its place."""
