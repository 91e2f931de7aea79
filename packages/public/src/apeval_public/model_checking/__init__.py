"""Rare instances of the Quantitative Verification Benchmark Set (QVBS), whose truths model checkers
computed.

Hartmanns, Klauck, Parker, Quatmann and Ruijters, "The Quantitative Verification Benchmark Set",
TACAS 2019; https://qcomp.org/benchmarks.
"""
