"""Adversaries and value models: what a method knows, and how it learns."""
