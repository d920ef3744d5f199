"""Programs that hold predictions to published results."""
