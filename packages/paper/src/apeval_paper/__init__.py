"""The environments of the paper, and the pendulum of its literature: one package each."""
