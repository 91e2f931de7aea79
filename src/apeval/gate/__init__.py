"""A gate for continuous integration: pytest fails where a policy is not shown to be rare enough."""
