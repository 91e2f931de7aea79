"""Turns weights into an estimate, its interval and its diagnostics; never sees a learner."""
