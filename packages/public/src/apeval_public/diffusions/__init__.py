"""Diffusions that must not reach a level in time: the examples of pyTAMS, a code for splitting."""
