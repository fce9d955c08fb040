"""The named algorithms, each a short page of parts; `names` finds them."""

from __future__ import annotations

from longtail.recipes import names

__all__ = ["names"]
