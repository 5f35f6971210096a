"""The local model: fetch, verify, load, decode. The only place that imports torch and transformers."""
