"""From a number to a better policy: training against the adversary that was learned."""
