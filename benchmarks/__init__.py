"""Measurements of longtail: see README.md."""
