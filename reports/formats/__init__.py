"""Render documents in every format. The formats depend only on exhibits, not on campaigns, comparisons or plans."""
