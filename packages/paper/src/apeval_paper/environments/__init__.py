"""The environments of the paper, and a pendulum of its literature: one package each."""
