"""Show frontiers in reports: find the recorded points, and build the section that shows and compares them."""
