"""The loop: learning, then the frozen stage; the only place where learn and estimate meet."""
