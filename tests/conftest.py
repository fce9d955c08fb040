"""A small model that several test files ask."""

from __future__ import annotations

import pytest

from longtail import LongtailClassifier

HOSTILE = '<img src=x onerror="window.hacked=1">'


@pytest.fixture(scope="session")
def text_model_path(tmp_path_factory):
    """The folder of a default model of drinks and cars."""
    texts, labels = [], []
    for adjective in ("red", "white", "dry", "sweet"):
        texts.append(f"{adjective} wine in a glass")
        labels.append(
            ["drink", adjective, HOSTILE] if adjective == "sweet" else ["drink", adjective]
        )
    for adjective in ("fast", "old", "new", "small"):
        texts.append(f"{adjective} car on a road")
        labels.append(["vehicle", adjective])
    model = LongtailClassifier(dimension=16, epochs=3, batch_size=64, held_out=0.5)
    path = tmp_path_factory.mktemp("served") / "model"
    model.fit(texts * 5, labels * 5).save(path)
    return path
