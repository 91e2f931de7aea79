"""Rolls episodes; knows nothing of learning."""
