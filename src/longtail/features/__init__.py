"""Module I architectures: from a point to its features. The encoders that serve need no torch."""
