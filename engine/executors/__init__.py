"""Executors: the protocol and the processes that generate."""
