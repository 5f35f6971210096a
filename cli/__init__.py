"""The command line: one file per command; the only place that reads environment and terminal and prints."""
