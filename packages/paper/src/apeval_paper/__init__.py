"""The paper's environments and methods, for apeval."""
