"""Read and combine what was measured: campaigns, imports and references on disk."""
