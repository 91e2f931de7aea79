"""s and a_E cut into slots of equal width, as the paper's discretised baselines do."""
