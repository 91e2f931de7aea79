"""Policies in simulators: frozen networks and fixed controllers under noise at every step."""
