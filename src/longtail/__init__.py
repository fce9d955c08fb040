"""longtail: extreme multi-label classification of short text.

Raw text in, the most relevant few of up to millions of label names out::

    from longtail import LongtailClassifier, load

    LongtailClassifier().fit(texts, labels).save("model")
    load("model").predict("some text", k=5)

Importing `longtail` alone loads neither torch nor scikit-learn: recipes are imported when they are
first asked for.
"""

from __future__ import annotations

import importlib
import os
from typing import TYPE_CHECKING

# Torch's threads and ours take turns: while one kind waits, or another process computes, it must
# not keep a core busy (on crowded cores training took four times as long). OpenMP reads it once,
# when torch is loaded.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

from longtail.data.dataset import Dataset
from longtail.data.vectorizer import TextVectorizer
from longtail.errors import MissingExtraError
from longtail.metrics import evaluate
from longtail.predictor import Predictor, load

if TYPE_CHECKING:
    from longtail.recipes.astec import Astec, Astec3
    from longtail.recipes.deepxml import DeepXML
    from longtail.recipes.longtail import LongtailClassifier

__version__ = "0.1.0"

__all__ = [
    "Astec",
    "Astec3",
    "Dataset",
    "DeepXML",
    "LongtailClassifier",
    "Predictor",
    "TextVectorizer",
    "__version__",
    "evaluate",
    "load",
]

_NEEDS_TRAINING = {
    "Astec": "longtail.recipes.astec",
    "Astec3": "longtail.recipes.astec",
    "LongtailClassifier": "longtail.recipes.longtail",
    "DeepXML": "longtail.recipes.deepxml",
}


def __getattr__(name: str) -> object:
    if name not in _NEEDS_TRAINING:
        raise AttributeError(f"module 'longtail' has no attribute {name!r}")
    try:
        return getattr(importlib.import_module(_NEEDS_TRAINING[name]), name)
    except ModuleNotFoundError as error:
        if error.name not in {"torch", "sklearn"}:
            raise
        raise MissingExtraError(
            f"longtail.{name} trains models and needs {error.name}. Install it with "
            "`pip install 'longtail[train]'`."
        ) from error
