"""The controlled corpus: its phrases, its generator, its texts and its gold. Nothing else in gsum imports it."""
