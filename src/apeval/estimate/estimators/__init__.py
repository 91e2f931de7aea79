"""Interval constructions, one file for each; `apeval.estimate.estimator` finds them by name."""
