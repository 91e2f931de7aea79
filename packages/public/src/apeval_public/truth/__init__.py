"""Truths: stored values with where they come from, and the ways to compute them again."""
