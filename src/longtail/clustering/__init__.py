"""Clusters of vectors: of equal size, and around means."""
