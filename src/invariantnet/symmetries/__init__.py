"""Symmetries as data: groups by name or by generators, their orbits, and what they leave invariant."""
