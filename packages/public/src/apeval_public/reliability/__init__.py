"""Structural reliability: functions of a random vector, from the collection of otbenchmark."""
