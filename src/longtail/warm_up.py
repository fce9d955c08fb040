"""Answering once in every way, so that code is compiled and pages are read before anybody waits."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy.sparse import csr_array

if TYPE_CHECKING:
    from longtail.predictor import Predictor

__all__ = ["warm_up"]

N_ANSWERED = 20


def warm_up(model: Predictor) -> None:
    """Answer single points, a batch, and an explanation."""
    if model.vectorizer is None:
        rows = csr_array(np.eye(min(2, model.n_features), model.n_features, dtype=np.float32))
        for points in (rows[:1], rows):
            model.predict_topk(points, 5)
        return
    step = max(1, model.n_labels // N_ANSWERED)
    texts = [model.label_space.name(label) for label in range(0, model.n_labels, step)]
    for text in texts:
        model.predict(text, k=5)
    model.predict([*texts, *texts], k=5)  # a batch is other compiled code than one text
    model.explain(texts[0], k=1)  # so is the search for near points
