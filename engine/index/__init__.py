"""The stat index: what was unchanged and served at the last build, so that a null build looks at nothing else."""
