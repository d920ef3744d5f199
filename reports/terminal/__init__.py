"""Tables that only a terminal shows, a module per subject."""
