"""The formats of a document. They know exhibits only, not what a campaign, a comparison or a plan is."""
