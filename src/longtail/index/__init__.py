"""Maximum inner product search over the rows of a matrix: exact, or through a neighbour graph."""

from __future__ import annotations

from longtail.index.exact import ExactIndex, recall_against_exact
from longtail.index.graph import GraphIndex
from longtail.index.protocol import VectorIndex

__all__ = ["ExactIndex", "GraphIndex", "VectorIndex", "recall_against_exact"]
