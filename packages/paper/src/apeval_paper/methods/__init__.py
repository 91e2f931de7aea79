"""The methods of the paper that learn with networks, and its baselines on slots."""
