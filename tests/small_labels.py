"""Texts of two labels each, for tests that add labels to a model and remove them."""

from __future__ import annotations

import numpy as np

WORDS = ["wine", "beer", "cars", "buses", "roses", "oaks", "trains", "ferns"]
NEW = "roses"


def texts_and_labels(n, seed):
    random = np.random.default_rng(seed)
    pairs = [random.choice(len(WORDS), 2) for _ in range(n)]
    texts = [f"{WORDS[a]} {WORDS[b]} noise{random.integers(30)}" for a, b in pairs]
    return texts, [sorted({WORDS[a], WORDS[b]}) for a, b in pairs]


TEXTS, NAMES = texts_and_labels(300, 0)
EXAMPLES = [text for text, names in zip(TEXTS, NAMES, strict=True) if NEW in names][:6]
