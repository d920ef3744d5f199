"""Read and combine the measurements on disk: campaigns, imports and references."""
