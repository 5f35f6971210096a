"""Queries over the target graph."""
