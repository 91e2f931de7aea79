"""What counts as a failure, in a small temporal language: its reading, and its online monitor."""
