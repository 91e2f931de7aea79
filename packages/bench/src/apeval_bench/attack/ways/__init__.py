"""Users' code that misbehaves, each way beside the same problem written properly.

These files are copied out of the package before they run, for they stand for a user's own: they
import nothing of apeval but what a user imports.
"""
