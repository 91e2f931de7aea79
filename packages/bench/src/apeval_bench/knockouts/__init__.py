"""What the default method is made of: every heuristic of `ape` replaced by something plainer, alone
and in groups, on tuning problems (`apeval bench ablation --methods ape --tuning`)."""
