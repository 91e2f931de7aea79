"""The paper's tables and figures, and the benchmarks, as data."""
