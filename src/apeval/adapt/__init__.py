"""A user's own environment and policy as a `Problem`, with no glue code."""
