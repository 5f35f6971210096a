"""The version of gsum, readable without importing anything else. Pure."""

VERSION = "0.1.0"
