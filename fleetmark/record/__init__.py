"""What was measured: campaigns, imports and references on disk, read, chosen from and brought together."""
