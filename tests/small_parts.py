"""Parts of somebody else's, and what trains with them in a moment."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from longtail import DeepXML
from longtail.features.bag_encoder import BagEncoder
from longtail.features.bag_of_tokens import BagOfTokens
from longtail.negatives.nearest_labels import NearestLabels
from longtail.scorers.deepxml import Ranker
from longtail.scorers.label_vectors import LabelVectors
from longtail.training.schedule import Schedule
from longtail.transfer.block import TransferBlock
from longtail.transfer.transform import Unchanged

TEXTS = ["red wine", "white wine", "fast car", "old car"] * 10
LABELS = [["drink"], ["drink"], ["vehicle"], ["vehicle"]] * 10
BRIEF = Schedule(epochs=2, learning_rate=0.05)
BAGS = BagOfTokens(dimension=16)


@dataclass(frozen=True)
class Clusters:
    """Meta-labels, whatever they are."""

    found: Any

    def assign(self, features, labels, *, seed, n_threads):
        return self.found


@dataclass(frozen=True)
class Negatives(NearestLabels):
    """Negatives, whatever they are."""

    found: Any = None

    def mine(self, shortlister, features, labels, *, seed, n_threads):
        return self.found


@dataclass(frozen=True)
class Learns:
    """A surrogate or a classifier, whatever it has learnt; of features and labels, if asked."""

    found: Any

    def learn(self, first, second, *rest):
        return self.found(first, second) if callable(self.found) else self.found


def encoded(encoder=BagEncoder, *, n_tokens=0, clusters=(0, 1)):
    """Return what a surrogate returns: so many token vectors too many or too few."""

    def found(_, data):
        vectors = np.ones((data.features.shape[1] + n_tokens, 4), np.float32)
        return encoder(vectors), np.asarray(clusters)

    return found


def fit(**parts):
    return DeepXML(**parts, n_threads=1).fit(TEXTS, LABELS)


class Unfrozen(TransferBlock):
    """A block that says nothing of what becomes of it."""

    def forward(self, features):
        return features


@dataclass
class OwnTransfer:
    """A transfer whose trained block is whatever it is."""

    found: Any

    def block(self, dimension, device):
        block = Unfrozen(dimension, 0.1)
        if self.found is not Unfrozen:
            block.__class__ = type("Own", (Unfrozen,), {"frozen": lambda _: self.found})
        return block


def ranking(n_tokens=0, *, n_labels=2, dimension=4, transform=Unchanged()):  # noqa: B008 - never changed
    """Return what learns a ranker for so many tokens more or fewer, and so many labels."""

    def found(data, _):
        vectors = np.ones((data.features.shape[1] + n_tokens, 4), np.float32)
        classifier = LabelVectors(np.ones((n_labels, dimension)), np.ones(n_labels))
        return Ranker(BagEncoder(vectors), transform, classifier)

    return found
