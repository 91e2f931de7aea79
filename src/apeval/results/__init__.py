"""The run folder, and what is drawn from it."""
